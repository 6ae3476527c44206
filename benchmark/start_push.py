#!/usr/bin/env python3
"""What an observer makes of a push that has been there since before its first sample, and what is left once it ends.

    python benchmark/start_push.py [--robot NAME] [--row WORD] [--seeds N ...] [--anywhere] [--save]

A hand pushes the TCP in a random direction from before the first sample on, for four seconds; then it lets go within
0.3 s. The arm rests, or moves and the hand follows it. Recordings are those of :mod:`rigid_body_recording`; friction,
stiffness and noise differ from seed to seed. No observer is told a torque bias.

Columns: error of the force while pushed, from a second on, RMSE of a run [N], median and worst, beside that of
``momentum_calibrated``; runs in which the default observer is ``free`` for more than half of that time; least share [%]
of such a run's ``free`` time in which ``mismatch`` says that a push cannot be distinguished; after the end, time until
the error stays below a quarter of the push [s], median and worst; the ``nothing pushes`` rows: share [%] of the time in
which ``mismatch`` says so, and largest force [N]. ``--save`` writes start_push.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
from contact_worlds import SENSORS, random_posture, world  # a neighbour of this script
from report import add_save_argument, heading, publish
from rigid_body_recording import RATE, Push, Recording, RigidBodyArm, pushes, random_motion, record

from contact_estimation.filters.registry import open_stream

#: [N] Sizes of pushes. [s] When one has begun, when it ends, how long that takes, and when the recording ends.
SIZE = {"fr3": (15.0, 60.0), "ur16e": (30.0, 90.0)}
BEGAN, END, FALL, LAST, SETTLED = -2.0, 4.0, 0.3, 8.0, 1.0
#: Amplitude of the motion [rad], and whether something pushes.
ROWS = {"rests": (0.0, True), "moves": (0.15, True), "nothing pushes, rests": (0.0, False)}
ROWS["nothing pushes, moves"] = (0.15, False)
#: What ``mismatch`` says where nothing tells a push from friction and torque bias.
UNDECIDED = ("cannot be distinguished", "likelier than free space")


def recording(robot: str, row: str, seed: int, anywhere: bool = False) -> tuple[Recording, float]:
    """Return the recording of a row for a seed, and the size of the push [N]; ``anywhere``: a posture of that seed."""
    rng, (amplitude, pushed) = np.random.default_rng([seed, len(robot)]), ROWS[row]
    arm = RigidBodyArm(robot, random_posture(robot, seed) if anywhere else None)
    t = np.arange(round(LAST * RATE)) / RATE
    direction, size = rng.normal(size=3), float(rng.uniform(*SIZE[robot])) * pushed
    plan = [Push(BEGAN, END, size * direction / np.linalg.norm(direction))] if pushed else []
    return record(arm, random_motion(arm, t, rng, amplitude, 1.0), pushes(arm, plan, t), world(seed, rng)), size


def run(robot: str, made: Recording, observer: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return error of the force (N,) [N], whether it is free (N,), and whether a push cannot be distinguished (N,)."""
    stream = open_stream(robot, observer, SENSORS[robot])
    found = [stream.push(*sample) for sample in zip(made.stamps.tolist(), made.q, made.dq, made.tau)]
    error = np.linalg.norm([e.force_tcp for e in found] - made.force, axis=1)
    return (
        error,
        np.array([e.mode == "free" for e in found]),
        np.array([any(words in e.mismatch for words in UNDECIDED) for e in found]),
    )


def cells(robot: str, row: str, seeds: list[int], anywhere: bool) -> str:
    """Return a line's cells."""
    rows: list[list[float]] = []
    for seed in seeds:
        made, size = recording(robot, row, seed, anywhere)
        t = np.arange(len(made.q)) / RATE
        held, (error, free, said) = (t > SETTLED) & (t < END - FALL), run(robot, made, "contact_imm")
        if not size:
            rows.append([100 * float(np.mean(said)), float(np.nanmax(error[t > SETTLED]))])
            continue
        other = run(robot, made, "momentum_calibrated")[0]
        late = np.flatnonzero(~(error < 0.25 * size) & (t > END))
        silent = held & free
        told = float(np.mean(said[silent])) if silent.any() else np.nan
        gone = t[late[-1]] - END if len(late) else 0.0
        rows.append([_rms(error[held]), _rms(other[held]), float(np.mean(free[held])), told, gone])
    table = np.array(rows).T
    if len(table) == 2:
        return f"- | - | - | - | - | {np.median(table[0]):.0f}, {table[0].max():.0f} | {table[1].max():.1f}"
    (imm, momentum, silent, told, gone), worst = table, "{:.1f}, {:.1f}".format
    words = f"{100 * told[silent > 0.5].min():.0f}" if (silent > 0.5).any() else "-"
    pair = f"{np.median(gone):.2f}, {gone.max():.2f}"
    errors = f"{worst(np.median(imm), imm.max())} | {worst(np.median(momentum), momentum.max())}"
    return f"{errors} | {np.sum(silent > 0.5)} of {len(seeds)} | {words} | {pair} | - | -"


def _rms(error: np.ndarray) -> float:
    return float(np.sqrt(np.nanmean(error**2)))


def main() -> None:
    """Simulate, replay, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", action="append", choices=tuple(SENSORS), help="repeatable; default all")
    parser.add_argument("--row", default="", help="only rows whose name has this")
    parser.add_argument("--seeds", type=int, nargs="+", default=[*range(401, 413)])
    parser.add_argument("--anywhere", action="store_true", help="a posture of its own per seed")
    add_save_argument(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = heading("A push since before the first sample")
    columns = ["robot", "the arm", "error [N]: median, worst", "momentum observer [N]", "counts as free", "said [%]"]
    columns += ["gone after [s]", "said without a push [%]", "force without a push [N]"]
    lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for robot in args.robot or SENSORS:
        for row in ROWS:
            if args.row in row:
                lines.append(f"| {robot} | {row} | {cells(robot, row, args.seeds, args.anywhere)} |")
                print(lines[-1], file=sys.stderr, flush=True)
    publish(lines, args.save)


if __name__ == "__main__":
    main()
