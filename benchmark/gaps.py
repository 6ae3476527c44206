#!/usr/bin/env python3
"""What an observer makes of a push that begins, lasts or ends while no samples come, and of lost samples.

    python benchmark/gaps.py [--robot NAME] [--row WORD] [--seeds N ...] [--observer NAME] [--save]

The arm moves, or rests, and for a while no sample comes. A hand pushes the TCP in a random direction: from within the
gap on, from before it to after it, or until within it; or nothing does. Or the tool presses on a floor, which it
touches, leaves or stays on in the gap. In the rows of bursts no gap is long, but half of the samples are lost in bursts
of 40 ms. In the rows of many gaps one of 0.05 to 1.5 s comes every second or two. Recordings are those of
:mod:`rigid_body_recording` and :mod:`contact_worlds`; friction, stiffness and noise differ from seed to seed.

Columns, of two seconds after the gap, without the first tenth, or of all of a run with many gaps, over valid samples:
error of the force, RMSE of a run [N], median and worst; largest error of a run [N], median and worst; the same without
valid samples in which ``mismatch`` has a word [N]; share of time that is valid [%], median and least; share of time in
which more than 10 N are ``free`` [%], median and worst. ``--save`` writes gaps.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from contact_worlds import SENSORS, make_case, world  # a neighbour of this script
from report import add_save_argument, heading, publish
from rigid_body_recording import RATE, Push, Recording, RigidBodyArm, pushes, random_motion, record

from contact_estimation.filters.registry import open_stream

#: [N] Sizes of pushes.
SIZE = {"fr3": (15.0, 60.0), "ur16e": (30.0, 90.0)}
#: [s] When the gap begins, when the recording ends, how long is looked at, and how long a push takes to rise or fall.
GAP, LAST, LOOKED, RISE = 6.0, 11.0, 2.0, 0.1
#: [s] Samples are lost, and are not lost, for so long in turn.
BURST = 0.04
#: [s] Lengths of many gaps, and the least and the most time between two.
GAPS, APART = (0.05, 0.12, 0.3, 0.8, 1.5), (0.8, 2.5)
#: [N] What pushes less may be free.
FELT = 10.0


class Row(NamedTuple):
    """One row.

    Attributes:
        pushed: start and end [s] of the push after and before that of the gap's middle; None for no push.
        gap: [s].
        amplitude: of the motion [rad].
        recorded: row of :mod:`contact_worlds` that is recorded instead; empty for none.
        start: of the gap [s].
        many: many gaps.
    """

    pushed: tuple[float, float] | None
    gap: float
    amplitude: float = 0.15
    recorded: str = ""
    start: float = GAP
    many: bool = False


FLOOR = "floor, 30 kN/m"
ROWS = {
    "push begins in 0.15 s": Row((0.0, 9.0), 0.15),
    "push begins in 0.5 s": Row((0.0, 9.0), 0.5),
    "push begins in 2 s": Row((0.0, 9.0), 2.0),
    "push begins in 0.5 s, rests": Row((0.0, 9.0), 0.5, 0.0),
    "push lasts through 0.5 s": Row((-2.0, 9.0), 0.5),
    "push lasts through 0.5 s, rests": Row((-2.0, 9.0), 0.5, 0.0),
    "push ends in 0.5 s": Row((-2.0, 0.0), 0.5),
    "push ends in 0.5 s, rests": Row((-2.0, 0.0), 0.5, 0.0),
    "nothing pushes, 0.5 s": Row(None, 0.5),
    "nothing pushes, 2 s": Row(None, 2.0),
    "touches the floor in 0.7 s": Row(None, 0.7, recorded=FLOOR, start=7.8),
    "presses through 0.5 s": Row(None, 0.5, recorded=FLOOR, start=9.3),
    "leaves the floor in 0.9 s": Row(None, 0.9, recorded=FLOOR, start=5.2),
    "pushes, many gaps": Row(None, 0.0, recorded="tool push, moving", many=True),
    "slides, many gaps": Row(None, 0.0, recorded="floor, sliding, mu 0.4", many=True),
    "free and fast, many gaps": Row(None, 0.0, recorded="free, fast", many=True),
    "pushed, bursts": Row((-2.0, 9.0), 0.0),
    "presses, bursts": Row(None, 0.0, recorded=FLOOR, start=8.6),
}


def recording(robot: str, row: Row, seed: int) -> Recording:
    """Return the recording of a row for a seed, with all samples."""
    if row.recorded:
        return make_case(robot, row.recorded, seed).recording
    rng = np.random.default_rng([seed, len(robot)])
    arm, t = RigidBodyArm(robot), np.arange(round(LAST * RATE)) / RATE
    direction, size = rng.normal(size=3), float(rng.uniform(*SIZE[robot]))
    plan = []
    if row.pushed is not None:
        start, end = (GAP + 0.5 * row.gap + time for time in row.pushed)
        plan.append(Push(start, end, size * direction / np.linalg.norm(direction), RISE))
    return record(arm, random_motion(robot, t, rng, row.amplitude, 1.0), pushes(arm, plan, t), world(seed, rng))


def kept(row: Row, t: np.ndarray, seed: int) -> np.ndarray:
    """Return which samples (N,) come."""
    if row.gap:
        return (t < row.start) | (t >= row.start + row.gap)
    if not row.many:
        return np.asarray(t % (2.0 * BURST) < BURST)
    rng, come, begin = np.random.default_rng(seed), np.ones(len(t), bool), 1.5
    while begin < t[-1] - 1.0:
        end = begin + float(rng.choice(GAPS))
        come[(t >= begin) & (t < end)] = False
        begin = end + rng.uniform(*APART)
    return come


def run(robot: str, observer: str, row: Row, seed: int) -> list[float]:
    """Return the figures of a run, in the order of the columns."""
    made = recording(robot, row, seed)
    t = np.arange(len(made.q)) / RATE
    stream = open_stream(robot, observer, SENSORS[robot])
    where = np.flatnonzero(kept(row, t, seed))
    begin = 1.0 if row.many else row.start + row.gap + RISE
    where, found = where[t[where] < (np.inf if row.many else begin + LOOKED)], []
    for k in where:
        stream.push_fast(int(made.stamps[k]), made.q[k], made.dq[k], made.tau[k])
        if t[k] >= begin:
            found.append(stream.estimate())
    where = where[t[where] >= begin]
    error = np.linalg.norm([e.force_tcp for e in found] - made.force[where], axis=1)
    valid = np.array([e.valid for e in found])
    said, free = (np.array(values) for values in zip(*((bool(e.mismatch), e.mode == "free") for e in found)))
    pushed = np.linalg.norm(made.force[where], axis=1) > FELT
    return [
        _over(error[valid], lambda e: float(np.sqrt(np.mean(e**2)))),
        _over(error[valid], np.max),
        _over(error[valid & ~said], np.max),
        100.0 * float(valid.mean()),
        100.0 * float((pushed & valid & free).sum() / pushed.sum()) if pushed.any() else np.nan,
    ]


def _over(values: np.ndarray, figure: Callable[[np.ndarray], float]) -> float:
    return float(figure(values)) if len(values) else 0.0


def cells(robot: str, observer: str, row: Row, seeds: list[int]) -> str:
    """Return a line's cells."""
    table = np.array([run(robot, observer, row, seed) for seed in seeds]).T
    worst = [np.max, np.max, np.max, np.min, np.max]
    pairs = [f"{np.median(v):.1f}, {w(v):.1f}" if np.isfinite(v).all() else "-" for v, w in zip(table, worst)]
    return " | ".join(pairs)


def main() -> None:
    """Simulate, replay, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", action="append", choices=tuple(SENSORS), help="repeatable; default all")
    parser.add_argument("--row", default="", help="only rows whose name has this")
    parser.add_argument("--observer", default="contact_imm", help="default contact_imm")
    parser.add_argument("--seeds", type=int, nargs="+", default=[*range(401, 411)])
    add_save_argument(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = heading("Pushes across a gap")
    columns = ["robot", "row", "error [N]", "largest [N]", "largest without a word [N]", "valid [%]", "free [%]"]
    lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for robot in args.robot or SENSORS:
        for name, row in ROWS.items():
            if args.row in name:
                lines.append(f"| {robot} | {name} | {cells(robot, args.observer, row, args.seeds)} |")
                print(lines[-1], file=sys.stderr, flush=True)
    publish(lines, args.save)


if __name__ == "__main__":
    main()
