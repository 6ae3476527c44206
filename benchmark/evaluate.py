#!/usr/bin/env python3
"""What ``evaluate`` does to many recordings: scaling over workers, damaged recordings, a killed worker, a Dask cluster.

    python benchmark/evaluate.py [--recordings 1000] [--observers momentum,ekf] [--cluster ADDRESS] [--save]

The recordings are half seconds of simulated presses, each with noise and an offset of the torque of its own. One in a
hundred is damaged: cut off, not a number, stamps that run back, without torque. The clock includes the start of the
workers; the observers' code is compiled before.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from report import add_save_argument, heading, publish

from contact_estimation.commands.simulate import as_recording
from contact_estimation.evaluation.find import find_recordings
from contact_estimation.evaluation.rows import Row, evaluate_all, make_tasks
from contact_estimation.evaluation.task import Options
from contact_estimation.io.npz import write_npz
from contact_estimation.jobs import Executor, open_executor
from contact_estimation.jobs.executor import Serial
from contact_estimation.jobs.processes import Processes
from contact_estimation.jobs.results import Results
from contact_estimation.simulation.session import open_simulation

SAMPLES = 250  # half a second
SECONDS = 4.0  # of each simulation, of which recordings are parts
SEEDS = 3
#: One in so many recordings is damaged, in the ways below in turn.
DAMAGED = 100


def simulate(seed: int) -> dict[str, np.ndarray]:
    """Return the arrays of one simulated press."""
    simulation = open_simulation("linear_contact", seed=seed)
    recording = as_recording(list(simulation.run(SECONDS)), simulation.arm, "press", simulation.imperfections)
    with tempfile.TemporaryDirectory() as folder, np.load(write_npz(Path(folder) / "press.npz", recording)) as archive:
        return dict(archive)


def part(arrays: dict[str, np.ndarray], first: int) -> dict[str, np.ndarray]:
    """Return ``SAMPLES`` samples of a recording."""
    count = len(arrays["q"])
    return {k: v[first : first + SAMPLES].copy() if v.shape[:1] == (count,) else v for k, v in arrays.items()}


def damage(arrays: dict[str, np.ndarray], kind: int) -> dict[str, np.ndarray]:
    """Spoil a recording in one of four ways; the first one is left to :func:`make`, which cuts the file off."""
    if kind == 1:
        arrays["q"][SAMPLES // 2, 2] = np.nan
    elif kind == 2:
        arrays["stamps_ns"][SAMPLES // 2] = arrays["stamps_ns"][10]
    elif kind == 3:
        del arrays["tau"]
    return arrays


def make(folder: Path, count: int) -> int:
    """Write ``count`` recordings; returns how many are damaged."""
    presses, rng, damaged = [simulate(seed) for seed in range(SEEDS)], np.random.default_rng(0), 0
    for k in range(count):
        press = presses[k % SEEDS]
        arrays = part(press, int(rng.integers(len(press["q"]) - SAMPLES)))
        arrays["tau"] += rng.normal(0.0, 0.3, arrays["tau"].shape) + rng.normal(0.0, 1.0, 6)
        path = folder / f"press_{k:04d}.npz"
        if k % DAMAGED == DAMAGED - 1:
            arrays, damaged = damage(arrays, damaged % 4), damaged + 1
        np.savez(path, **arrays)
        if k % DAMAGED == DAMAGED - 1 and damaged % 4 == 1:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return damaged


def measure(folder: Path, executor: Executor, observers: list[str], most: int | None = None) -> tuple[float, list[Row]]:
    """Evaluate everything anew; returns wall-clock seconds and the rows."""
    tasks = make_tasks(find_recordings([str(folder)]), observers, Options())[:most]
    with tempfile.TemporaryDirectory() as kept:
        begin = time.perf_counter()
        rows = evaluate_all(tasks, executor, Results(Path(kept)))
        return time.perf_counter() - begin, rows


def same(a: list[Row], b: list[Row]) -> bool:
    """Whether two runs gave the same figures to the bit; the speed is not one of them."""

    def figures(rows: list[Row]) -> str:
        plain = json.loads(json.dumps(rows))
        for row in plain:
            for one in row["observers"].values():
                one.pop("step_us", None)
        return json.dumps(plain)

    return figures(a) == figures(b)


class Killing(Processes):
    """Two workers, of which one is killed as soon as a tenth of the recordings is done."""

    killed = 0

    def run(self, function, tasks):
        """Apply ``function`` to every task."""
        for done, outcome in enumerate(super().run(function, tasks), 1):
            if done == max(1, len(tasks) // 10):
                threading.Thread(target=self._kill).start()
            yield outcome

    def _kill(self) -> None:
        time.sleep(0.05)  # while it works
        own = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
        children = [int(pid) for pid in Path(own).read_text().split()]
        workers = [pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(workers[0], signal.SIGKILL)
        self.killed += 1


def main() -> None:
    """Make recordings, evaluate them in every way, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=1000)
    parser.add_argument("--observers", default="momentum,ekf")
    parser.add_argument("--rounds", type=int, default=1, help="of every number of workers, in turn; medians are told")
    parser.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler with workers")
    add_save_argument(parser)
    args = parser.parse_args()
    observers = args.observers.split(",")
    text = heading("Many recordings", f"Recordings of {SAMPLES} samples.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        damaged = make(folder, args.recordings)
        measure(folder, Serial(), observers, most=3)
        seconds: dict[str, list[float]] = {}
        ways = {"1 worker": lambda: Processes(1), "2 workers": lambda: Processes(2)}
        if args.cluster:
            ways["Dask, 2 workers"] = lambda: open_executor(cluster=args.cluster)
        reference: list[Row] = []
        equal = {}
        for _ in range(args.rounds):
            for way, executor in ways.items():
                duration, rows = measure(folder, executor(), observers)
                seconds.setdefault(way, []).append(duration)
                reference = reference or rows
                equal[way] = equal.get(way, True) and same(rows, reference)
                print(f"{way}: {duration:.1f} s", file=sys.stderr, flush=True)
        killing = Killing(2)
        duration, rows = measure(folder, killing, observers)
        seconds["2 workers, one killed"], equal["2 workers, one killed"] = [duration], same(rows, reference)
        with tempfile.TemporaryDirectory() as kept:
            tasks, results = make_tasks(find_recordings([name]), observers, Options()), Results(Path(kept))
            half = evaluate_all(tasks[: len(tasks) // 2], Processes(2), results)
            begin = time.perf_counter()
            evaluate_all(tasks[: len(tasks) // 2], Processes(2), results)
            again = time.perf_counter() - begin
            assert len(half) == len(tasks) // 2
    failed = sum("error" in row for row in reference)
    one = statistics.median(seconds["1 worker"])
    text += [
        f"{damaged} of {args.recordings} were damaged, and {failed} rows have an error. {killing.killed} worker was "
        "killed.",
        "",
        "| way | seconds | recordings/s | against 1 worker | same figures to the bit |",
        "|---|---|---|---|---|",
    ]
    for way, values in seconds.items():
        middle = statistics.median(values)
        rate = args.recordings / middle
        text.append(f"| {way} | {middle:.1f} | {rate:.1f} | {one / middle:.2f} | {'yes' if equal[way] else 'no'} |")
    text += ["", f"A second run over {args.recordings // 2} of them took {again:.2f} s and replayed none."]
    publish(text, args.save)


if __name__ == "__main__":
    main()
