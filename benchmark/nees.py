#!/usr/bin/env python3
"""Whether the covariance of the force is that of its error: the default observer in many worlds.

    python benchmark/nees.py [--robot NAME] [--row WORD] [--runs N] [--first SEED] [--save]

Friction, hysteresis, bias and direction are constant in a run, and so is most of the error of a touch. Its normalised
square e^T P^-1 e is then hardly more than one draw. A consistent filter with four touches has all of them in the 95 %
band in 81 % of the cases, and one outside, 75 % of the time, in 17 %. Shares near 95 % need many runs: this script
makes the rows of ``any_contact.py`` once per seed and pools them. Figures:

- in, below, above: share [%] of the held time in the two-sided 95 % band of chi-square with three degrees of freedom,
  below and above it. Below: the covariance is too wide.
- 95 %: interval of the first, by bootstrap over the runs (Efron, 1979; 2000 samples).
- of two runs: 5th and 95th percentile of the share that two of the runs show.
- median: of e^T P^-1 e (2.37 where consistent).

``--save`` writes nees.md beside this file: all robots and rows.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from any_contact import BAND, HELD, estimates, normalised_square, touches  # neighbours of this script
from contact_worlds import ROWS, SENSORS, Case, make_case
from report import check_whole, command
from rigid_body_recording import RATE

OBSERVER, RESAMPLED = "contact_imm", 2000
HEADINGS = ("robot", "row", "in [%]", "95 % [%]", "below [%]", "above [%]", "of two runs [%]", "median", "runs")


def squares(case: Case) -> np.ndarray:
    """Return e^T P^-1 e of every sample in which a touch is held."""
    found, rise, parts = estimates(case, OBSERVER), round(case.rise * RATE), []
    for start, end in touches(case.recording.touched):
        held = slice(start + rise + round(HELD * RATE), end - rise)
        error = (found["force"] - case.recording.force)[held]
        parts.append(normalised_square(error, found["covariance"][held]))
    return np.concatenate(parts)


def row(robot: str, name: str, runs: list[np.ndarray]) -> str:
    """Return the row of the table of ``runs``, each the squares of its samples."""
    rng, below = np.random.default_rng(0), [float(np.mean(run < BAND[0])) for run in runs]
    above = [float(np.mean(run > BAND[1])) for run in runs]
    inside = 100 * (1 - np.array(below) - above)
    resampled = rng.choice(inside, (RESAMPLED, len(runs))).mean(axis=1)
    two = np.array([rng.choice(inside, 2, replace=False).mean() for _ in range(RESAMPLED)])
    low, high = np.percentile(resampled, [2.5, 97.5])
    few, many = np.percentile(two, [5, 95])
    cells = [robot, name, f"{inside.mean():.1f}", f"{low:.0f} to {high:.0f}"]
    cells += [f"{100 * np.mean(below):.1f}", f"{100 * np.mean(above):.1f}", f"{few:.0f} to {many:.0f}"]
    return "| " + " | ".join([*cells, f"{np.median(np.concatenate(runs)):.2f}", str(len(runs))]) + " |"


def main() -> None:
    """Simulate, replay, pool, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", action="append", choices=tuple(SENSORS), help="repeatable; default all")
    parser.add_argument("--row", help="only rows whose name has this word")
    parser.add_argument("--runs", type=int, default=20, help="seeds per row (at least two)")
    parser.add_argument("--first", type=int, default=401, help="the first seed")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    check_whole(parser, args, "robot", "row")
    warnings.simplefilter("ignore")
    names = [n for n, made in ROWS.items() if made.kind in ("tool", "surface") and (not args.row or args.row in n)]
    text = ["# Consistency of the force's covariance", ""]
    text += [f"`{command()}`; the figures are explained in the script.", ""]
    text += ["| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
    for robot in args.robot or SENSORS:
        for name in names:
            cases = (make_case(robot, name, args.first + k) for k in range(args.runs))
            text.append(row(robot, name, [squares(case) for case in cases]))
            print(text[-1], file=sys.stderr, flush=True)
    print("\n".join(text))
    if args.save:
        (Path(__file__).parent / "nees.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
