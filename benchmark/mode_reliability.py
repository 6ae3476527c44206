#!/usr/bin/env python3
"""Reliability diagram of the mode probabilities of ``contact_imm``.

    python benchmark/mode_reliability.py [--robot NAME] [--row WORD] [--seeds N ...] [--save [FILE.md]]

The recordings are those of ``any_contact.py``. Every 10 ms a published probability falls into a bin. In a calibrated
filter the observed share of a bin equals its mean probability. Three statements are judged:

- ``contact``: the arm is touched (one minus the probability of ``free``).
- ``contact_1``: what touches it is the configured contact, a floor under the tool.
- ``unknown``: what touches it is a push, a wall or a ceiling.

Planes of 45 degrees and springs may be either, so that they count for ``contact`` only. The expected calibration error
is the mean of |observed - expected| over all samples (Naeini, Cooper and Hauskrecht, Obtaining well calibrated
probabilities using Bayesian binning, 2015). The worlds are touched for about half of the time, the base rate.
``--save`` also draws docs/pictures/mode_reliability.png.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from contact_worlds import ROWS, SENSORS, Case, make_case  # a neighbour of this script
from report import ROOT, add_save_argument, heading, publish
from rigid_body_recording import RATE

from contact_estimation.filters.registry import open_stream
from contact_estimation.viz.style import COLOURS, figure

#: One probability in so many seconds; an observer may settle in the first second.
EVERY, SETTLE = 0.01, 1.0
EDGES = np.array([0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0])
STATEMENTS = ("contact", "contact_1", "unknown")
PICTURE = ROOT / "docs" / "pictures" / "mode_reliability.png"


class Judged(NamedTuple):
    """Probabilities of a statement and whether it was true, (N,) each."""

    probability: np.ndarray
    true: np.ndarray


def true_mode(case: Case, row: str) -> str:
    """Return the mode that a touch of this row should have, "" where it may be either."""
    if row.startswith("floor"):
        return "contact_1"
    return "unknown" if case.kind != "surface" or row in ("wall", "ceiling") else ""


def judge(case: Case, row: str) -> dict[str, Judged]:
    """Return what a recording adds to every statement."""
    recording, mode = case.recording, "" if row.startswith("spring") else true_mode(case, row)
    stream, modes, touched = open_stream(case.robot, "contact_imm", SENSORS[case.robot]), [], []
    samples = zip(recording.stamps.tolist(), recording.q, recording.dq, recording.tau, recording.touched.tolist())
    for k, (stamp, q, dq, tau, touch) in enumerate(samples):
        stream.push_fast(stamp, q, dq, tau)
        if k > SETTLE * RATE and k % round(EVERY * RATE) == 0:
            modes.append(stream.estimate().modes)
            touched.append(touch)
    true = np.array(touched)
    found = {"contact": Judged(1.0 - np.array([m["free"] for m in modes]), true)}
    for name in STATEMENTS[1:] if mode else ():
        found[name] = Judged(np.array([m[name] for m in modes]), true & (mode == name))
    return found


def joined(parts: list[Judged]) -> Judged:
    """Return all of them together."""
    return Judged(np.concatenate([p.probability for p in parts]), np.concatenate([p.true for p in parts]))


def bins(judged: Judged) -> list[tuple[int, float, float]]:
    """Return per bin the count, the mean probability and the observed share."""
    where = np.digitize(judged.probability, EDGES[1:-1], right=True)
    rows = []
    for k in range(len(EDGES) - 1):
        inside = where == k
        count = int(inside.sum())
        rows.append(
            (count, float(judged.probability[inside].mean()), float(judged.true[inside].mean()))
            if count
            else (0, np.nan, np.nan)
        )
    return rows


def calibration_error(judged: Judged) -> float:
    """Return the expected calibration error."""
    rows = [row for row in bins(judged) if row[0]]
    return float(sum(count * abs(share - expected) for count, expected, share in rows) / len(judged.true))


def table(robot: str, found: dict[str, Judged]) -> list[str]:
    """Return the Markdown table of one robot: per bin the count, expected and observed share of every statement."""
    lines = [f"## {robot}", "", "| bin | " + " | ".join(f"{name}: samples | expected | observed" for name in found)]
    lines[-1] += " |"
    lines.append("|---" * (1 + 3 * len(found)) + "|")
    columns = [bins(judged) for judged in found.values()]
    for k, (low, high) in enumerate(itertools.pairwise(EDGES)):
        cells = [cell for column in columns for cell in _cells(*column[k])]
        lines.append(f"| {low:g} to {high:g} | " + " | ".join(cells) + " |")
    errors = ", ".join(f"{name} {100 * calibration_error(judged):.2f} %" for name, judged in found.items())
    scores = ", ".join(f"{name} {np.mean((j.probability - j.true) ** 2):.4f}" for name, j in found.items())
    return [*lines, "", f"Expected calibration error: {errors}. Brier score: {scores}.", ""]


def _cells(count: int, expected: float, observed: float) -> list[str]:
    return [str(count), *("-" if np.isnan(v) else f"{v:.3f}" for v in (expected, observed))]


def draw(found: dict[str, dict[str, Judged]], path: Path) -> None:
    """Save the diagram: observed over expected share, the area of a point by the samples of its bin."""
    fig, axes = figure(1, len(found), width=4.5 * len(found), height=3.6)
    for axis, (robot, statements) in zip(np.ravel(axes), found.items()):
        axis.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for colour, (name, judged) in zip(COLOURS, statements.items()):
            rows = np.array([row for row in bins(judged) if row[0]])
            axis.plot(rows[:, 1], rows[:, 2], color=colour, linewidth=1, label=name)
            axis.scatter(rows[:, 1], rows[:, 2], s=8 * np.log10(rows[:, 0]) ** 2, color=colour)
        axis.set(title=robot, xlabel="published probability", ylabel="observed share")
        axis.legend()
    fig.savefig(path)


def main() -> None:
    """Simulate, replay, count, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", action="append", choices=tuple(SENSORS), help="repeatable; default all")
    parser.add_argument("--row", help="only rows whose name has this word")
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 21, 22, 31, 32])
    add_save_argument(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = heading("Reliability of the mode probabilities", "The script explains the figures.")
    found: dict[str, dict[str, Judged]] = {}
    for robot in args.robot or SENSORS:
        parts: dict[str, list[Judged]] = {name: [] for name in STATEMENTS}
        for row in [name for name in ROWS if not args.row or args.row in name]:
            for seed in args.seeds:
                for name, judged in judge(make_case(robot, row, seed), row).items():
                    parts[name].append(judged)
        found[robot] = {name: joined(some) for name, some in parts.items() if some}
        lines += table(robot, found[robot])
    publish(lines, args.save)
    if args.save:
        draw(found, PICTURE)


if __name__ == "__main__":
    main()
