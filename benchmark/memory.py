#!/usr/bin/env python3
"""Peak memory of the verbs against the length of the recording.

    python benchmark/memory.py [--minutes A B] [--observer NAME] [--save]

Each verb runs in a process of its own, on a simulated press that is repeated to two lengths; the peak is the resident
set's. Growth is the difference per minute of recording at 500 Hz.
``--save`` writes memory.md beside this file.
"""

from __future__ import annotations

import argparse
import dataclasses
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from report import add_save_argument, heading, publish

from contact_estimation.commands.simulate import as_recording
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.npz import write_npz
from contact_estimation.io.recording import Recording
from contact_estimation.simulation.session import open_simulation

SECONDS = 10.0  # of the simulation that is repeated
PERIOD_NS = 2_000_000
#: Runs a verb and prints its peak resident set [kB]: VmHWM, because ru_maxrss starts with what the parent had.
PEAK = (
    "import sys; from contact_estimation.cli import main; code = main(sys.argv[1:]); "
    "peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')); "
    "print('peak', peak, file=sys.stderr); sys.exit(code)"
)


def repeated(recording: Recording, minutes: float) -> Recording:
    """Return the recording forwards and backwards, over and over, with stamps that go on."""
    count = round(minutes * 60e9 / PERIOD_NS)
    rows = np.arange(count) % (2 * len(recording))
    back = rows >= len(recording)
    rows[back] = 2 * len(recording) - 1 - rows[back]
    arrays = {name: getattr(recording, name)[rows] for name in ("q", "dq", "tau")}
    arrays["dq"][back] *= -1.0
    truth = {name: value[rows] for name, value in recording.truth.items()}
    wrench = None if recording.wrench_tcp is None else recording.wrench_tcp[rows]
    stamps = 1_000_000_000 + PERIOD_NS * np.arange(count)
    return dataclasses.replace(recording, stamps_ns=stamps, truth=truth, wrench_tcp=wrench, **arrays)


def peak(words: list[str]) -> float:
    """Return the peak resident set of a verb [MB]."""
    done = subprocess.run([sys.executable, "-c", PEAK, *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return float(done.stderr.rsplit("peak", 1)[1]) / 1024


def verbs(folder: Path, observer: str) -> dict[str, list[str]]:
    """Return what is measured: name -> words, for recordings press.npz and press (a bag) in ``folder``."""
    npz, bag, robot = str(folder / "press.npz"), str(folder / "press"), ["--robot", "ur16e"]
    replay = [*robot, "--observer", observer, "--keep-going", "--json"]
    results = ["--workers", "0", "--keep-going", "--results", str(folder / "results"), "--json"]
    return {
        "convert, bag to .npz": ["convert", bag, str(folder / "out.npz"), "--json"],
        "convert, .npz to bag": ["convert", npz, str(folder / "out"), "--json"],
        "replay": ["replay", bag, *replay],
        "replay --export": ["replay", bag, *replay, "--export", str(folder / "export.npz")],
        "replay --report": ["replay", bag, *replay, "--report", str(folder / "report")],
        "compare": ["compare", bag, *robot, "--observers", observer, "--json"],
        "compare --out": ["compare", bag, *robot, "--observers", observer, "--json", "--out", str(folder / "c.html")],
        "evaluate": ["evaluate", bag, "--observers", observer, *results],
    }


def memory_table(minutes: list[float], observer: str) -> list[str]:
    """Measure the verbs and return the Markdown table."""
    simulation = open_simulation("linear_contact")
    samples = list(simulation.run(SECONDS))
    recording = as_recording(samples, simulation.arm, "press", simulation.imperfections)
    found: dict[str, list[float]] = {}
    for length in minutes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            long = repeated(recording, length)
            write_npz(folder / "press.npz", long)
            write_bag(folder / "press", long)
            for verb, words in verbs(folder, observer).items():
                found.setdefault(verb, []).append(peak(words))
                print(f"{length:g} min, {verb}: {found[verb][-1]:.0f} MB", file=sys.stderr, flush=True)
    head = " | ".join(f"{length:g} min" for length in minutes)
    lines = [f"| verb, observer {observer} | {head} | growth [MB/min] |", "|---" * (len(minutes) + 2) + "|"]
    for verb, peaks in found.items():
        growth = (peaks[-1] - peaks[0]) / (minutes[-1] - minutes[0])
        lines.append(f"| {verb} | {' | '.join(f'{value:.0f}' for value in peaks)} | {growth:.1f} |")
    return lines


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, nargs=2, default=[0.5, 3.0])
    parser.add_argument("--observer", default="contact_imm")
    add_save_argument(parser)
    args = parser.parse_args()
    head = heading("Memory", "Peak resident set [MB] of each verb; recordings at 500 Hz.")
    publish([*head, *memory_table(args.minutes, args.observer)], args.save)


if __name__ == "__main__":
    main()
