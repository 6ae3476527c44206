#!/usr/bin/env python3
"""How long 60 s of 500 Hz joint states and wrenches take from an MCAP bag to exported estimates.

    python benchmark/replay_speed.py [--observer NAME ...] [--runs N] [--save]

Times, per observer: reading the bag, running the observer, writing the .npz (library), and the whole command
``contact-estimation replay BAG --robot ur16e --observer NAME --export FILE`` as a process of its own, from start to
exit. Each as processor time and as wall-clock time: everything here is one thread, so that the two agree on a machine
that does nothing else, and only the former means anything on one that does. ``--save`` writes replay_speed.md beside
this file.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from report import add_save_argument, heading, publish

from contact_estimation.filters.registry import open_stream
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.open import open_recording
from contact_estimation.io.recording import Recording
from contact_estimation.io.replay import replay
from contact_estimation.robot import load_arm

SECONDS, RATE = 60, 500
TARGET = 2.0
PARTS = ("read", "replay", "export", "sum", "command")


def make_bag(arm, folder: Path) -> Path:
    """Return a slow motion of a few millimetres with noise; what it holds does not change what it costs."""
    rng = np.random.default_rng(0)
    t = np.arange(SECONDS * RATE) / RATE
    start = np.array([0.9, -1.0, 2.2, -2.8, -1.5, 0.5])
    q = start + 5e-3 * np.sin(0.5 * t)[:, None] + rng.normal(0, 1.5e-5, (len(t), arm.n))
    dq = 2.5e-3 * np.cos(0.5 * t)[:, None] + rng.normal(0, 1e-4, (len(t), arm.n))
    tau = np.array([arm.gravity(row) for row in q]) + rng.normal(0, 0.3, q.shape)
    stamps = 1_700_000_000_000_000_000 + np.arange(len(t)) * (1_000_000_000 // RATE)
    recording = Recording(stamps, arm.joint_names, q, dq, tau, "benchmark", rng.normal(0, 1, (len(t), 6)))
    return write_bag(folder / "bag", recording)


def clocks() -> np.ndarray:
    """Processor time of this process and of its finished children, and wall-clock time [s]."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return np.array([time.process_time() + children.ru_utime + children.ru_stime, time.perf_counter()])


def time_once(arm, bag: Path, observer: str, export: Path) -> dict[str, np.ndarray]:
    """Processor and wall-clock seconds of every part, once."""
    stream = open_stream(arm, observer)  # compiled before: building it is not part of replaying
    marks = [clocks()]
    recording = open_recording(bag, arm.joint_names)
    marks.append(clocks())
    log = replay(recording, stream)
    marks.append(clocks())
    log.save(export)
    marks.append(clocks())
    command = [
        sys.executable,
        "-m",
        "contact_estimation",
        "replay",
        str(bag),
        "--robot",
        "ur16e",
        "--observer",
        observer,
        "--export",
        str(export),
        "--json",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    marks.append(clocks())
    parts = np.diff(marks, axis=0)
    return {"read": parts[0], "replay": parts[1], "export": parts[2], "sum": parts[:3].sum(axis=0), "command": parts[3]}


def main() -> None:
    """Time all observers and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observer", action="append", default=[], help="observer configuration; repeatable")
    parser.add_argument("--runs", type=int, default=5)
    add_save_argument(parser)
    args = parser.parse_args()
    arm = load_arm("ur16e")
    observers = args.observer or ["ekf", "momentum", "paper_online"]
    note = f"Processor / wall-clock seconds, medians of {args.runs} runs; target {TARGET:g} s."
    head, rows = heading("Replay of 60 s of 500 Hz, MCAP to exported estimates", note), []
    with tempfile.TemporaryDirectory() as folder:
        bag = make_bag(arm, Path(folder))
        for observer in observers:
            open_stream(arm, observer)
            runs = [time_once(arm, bag, observer, Path(folder) / "est.npz") for _ in range(args.runs)]
            cells = [" / ".join(f"{statistics.median(run[p][k] for run in runs):.2f}" for k in (0, 1)) for p in PARTS]
            rows.append(f"| {observer} | " + " | ".join(cells) + " |")
            print(rows[-1], flush=True)
    publish(
        [
            *head,
            "| observer | " + " | ".join(PARTS) + " |",
            "|---" * (len(PARTS) + 1) + "|",
            *rows,
            "",
            "`sum` is read + replay + export in a running process; `command` is the whole command line call, with "
            "starting Python, loading libraries and the figures it prints.",
        ],
        args.save,
    )


if __name__ == "__main__":
    main()
