#!/usr/bin/env python3
"""Every observer in one picture: accuracy of the force against cost per sample, on recordings and simulated scenarios.

    python benchmark/observers.py [--shared DIR] [--seconds S] [--seeds N ...] [--observers A,B,C] [--save]

Recordings: the presses as recorded, with the arm turned by 0.9 rad, and from the middle of a contact on; a free motion.
Scenarios: all that are shipped, on their own arm with its simulated sensors and friction. Observers run with their
shipped configuration and are told nothing. Errors are RMS lengths of the force error vector. Cost is the median time
from a sample to its estimate, in steps of the EKF on the same recording. ``--save`` writes observers.md beside this
file, and docs/figures/observers.png.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from press_scores import FILES, cropped, load, turned  # a neighbour of this script
from report import add_save_argument, heading, publish

from contact_estimation.commands.output import Progress
from contact_estimation.commands.simulate import as_recording
from contact_estimation.evaluation.find import find_recordings
from contact_estimation.evaluation.rows import Row, evaluate_all, make_tasks
from contact_estimation.evaluation.task import Options
from contact_estimation.io.npz import read_npz, write_npz
from contact_estimation.jobs import open_executor
from contact_estimation.jobs.results import Results
from contact_estimation.robot import load_arm
from contact_estimation.simulation.scenarios import scenario_names
from contact_estimation.simulation.session import open_simulation
from contact_estimation.viz.style import COLOURS, figure

HERE = Path(__file__).parent
OBSERVERS = ("momentum_manufacturer", "momentum_calibrated", "disturbance", "ekf", "contact_imm")
PARTS = {"contact": "in contact", "free": "in free space"}


def real_recordings(shared: Path, folder: Path) -> None:
    """Write the recorded presses with their variations, and the free motion with a true force of zero."""
    folder.mkdir(parents=True)
    for name in FILES:
        data = load(shared, name) | {"robot": np.array("ur16e")}
        for kind, changed in (("", data), (" turned", turned(data, 0.9)), (" from contact", cropped(data))):
            np.savez(folder / f"{name}{kind}.npz", **changed)
    panda = read_npz(shared / "data" / "panda_excitation" / "panda_excitation.npz", load_arm("panda").joint_names)
    half = slice(None, None, 2)  # from 1 kHz to the 500 Hz observers are configured for
    arrays = {name: getattr(panda, name)[half] for name in ("stamps_ns", "q", "dq", "tau")}
    truth = {"wrench_tcp": np.zeros((len(arrays["q"]), 6))}
    write_npz(folder / "panda free motion.npz", dataclasses.replace(panda, **arrays, truth=truth, robot="panda"))


def simulated_recordings(folder: Path, seconds: float, seeds: list[int]) -> None:
    """Write every scenario on its own arm."""
    for scenario in scenario_names():
        for seed in seeds:
            simulation = open_simulation(scenario, seed=seed)
            samples = list(simulation.run(min(seconds, simulation.scenario.duration)))
            recording = as_recording(samples, simulation.arm, scenario, simulation.imperfections)
            write_npz(folder / f"{scenario} {seed}.npz", recording)


def length(part: dict[str, float] | None) -> float | None:
    """RMS length [N] of the error vector; the figures have z, and x and y together per axis."""
    return None if part is None else float(np.hypot(part["rmse_z"], np.sqrt(2.0) * part["rmse_xy"]))


def scores(rows: list[Row]) -> Iterator[tuple[str, str, str, dict[str, float | None]]]:
    """Yield recording, robot, observer, and its scores: ``contact``, ``free`` [N], ``cost`` [steps of the EKF]."""
    for row in rows:
        unit = row["observers"]["ekf"]["step_us"]["p50"]
        for observer, figures in row["observers"].items():
            found = {part: length((figures["force"] or {}).get(part)) for part in PARTS}
            found["cost"] = figures["step_us"]["p50"] / unit
            found["valid"] = 100.0 * figures["valid"] / figures["samples"]
            yield Path(row["recording"]).stem, row["robot"], observer, found


def table(rows: list[Row], part: str, observers: list[str]) -> list[str]:
    """Return the Markdown table of one part: a line per recording, the best observer in bold."""
    lines = [f"| recording | robot | {' | '.join(observers)} |", "|---" * (len(observers) + 2) + "|"]
    found: dict[tuple[str, str], dict[str, float | None]] = {}
    for recording, robot, observer, score in scores(rows):
        found.setdefault((recording, robot), {})[observer] = score[part]
    for (recording, robot), errors in found.items():
        known = [error for error in errors.values() if error is not None]
        if known:
            cells = [cell(errors[observer], min(known)) for observer in observers]
            lines.append(f"| {recording} | {robot} | {' | '.join(cells)} |")
    return lines


def cell(error: float | None, best: float) -> str:
    """Return an error as text, in bold where it is within 5 % of the best."""
    if error is None:
        return "-"
    return f"**{error:.1f}**" if error <= 1.05 * best else f"{error:.1f}"


def totals(rows: list[Row], observers: list[str]) -> list[str]:
    """Return the table of medians and worst values over the recordings."""
    lines = ["| observer | in contact [N] | worst | free [N] | worst | valid [%], worst | cost |", "|---" * 7 + "|"]
    for observer in observers:
        own = [score for _, _, name, score in scores(rows) if name == observer]
        cells = []
        for part in PARTS:
            values = [score[part] for score in own if score[part] is not None]
            cells += [f"{np.median(values):.1f}", f"{max(values):.1f}"]
        cells += [f"{min(score['valid'] for score in own):.0f}", f"{np.median([score['cost'] for score in own]):.1f}"]
        lines.append(f"| {observer} | {' | '.join(cells)} |")
    return lines


def draw(rows: list[Row], observers: list[str], path: Path) -> None:
    """Draw error against cost: a dot per recording, a disk at the medians."""
    fig, axes = figure(1, len(PARTS), height=3.4, sharey=True)
    for axis, (part, words) in zip(axes[0], PARTS.items()):
        for colour, observer in zip(COLOURS[1:], observers):
            own = [(s["cost"], s[part]) for _, _, name, s in scores(rows) if name == observer and s[part] is not None]
            cost, error = np.array(own).T
            axis.plot(cost, error, ".", color=colour, alpha=0.35, markersize=5)
            axis.plot(np.median(cost), np.median(error), "o", color=colour, markersize=11, label=observer)
        axis.set(xlabel="cost per sample [steps of the EKF]", yscale="log", title=words)
    axes[0, 0].set_ylabel("RMS force error [N]")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(observers))
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path)


def main() -> None:
    """Make recordings, evaluate them, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(os.environ.get("CONTACT_ESTIMATION_SHARED") or HERE.parent.parent / "shared")
    parser.add_argument("--shared", type=Path, default=default)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each scenario, at most")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--observers", default=",".join(OBSERVERS), help="ekf must be among them")
    add_save_argument(parser)
    args = parser.parse_args()
    observers = args.observers.split(",")
    note = "RMS length of the force error, medians over the recordings; cost in steps of the EKF. The script explains "
    text = heading("Every observer", note + "the recordings and figures.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real_recordings(args.shared, folder / "1")
        simulated_recordings(folder / "2", args.seconds, args.seeds)
        tasks = make_tasks(find_recordings([name]), observers, Options(keep_going=True))
        bar = Progress(len(tasks), "recordings")
        rows = evaluate_all(tasks, open_executor(workers=1), Results(folder / "results"), progress=bar.update)
    for row in rows:
        if "error" in row:
            raise SystemExit(f"{row['recording']}: {row['error']}")
    text += [*totals(rows, observers), "", "![Force error against cost](../docs/figures/observers.png)"]
    for part, words in PARTS.items():
        text += ["", f"## {words.capitalize()} [N]", "", *table(rows, part, observers)]
    publish(text, args.save)
    if args.save:
        draw(rows, observers, HERE.parent / "docs" / "figures" / "observers.png")


if __name__ == "__main__":
    main()
