#!/usr/bin/env python3
"""What is left of a push that was told as a payload, and of a payload that is put down, once they end.

    python benchmark/payload_end.py [--robot NAME] [--row WORD] [--seeds N ...] [--save]

A hand pushes downwards at the TCP and follows the arm, in random motion, until the default observer counts it as a
payload. Then it lets go. Or a load of 2 kg, there from the start, is put down. Or a hand lifts such a load for two
seconds, by a part of its weight, all of it or more. Recordings are those of :mod:`rigid_body_recording`; friction,
stiffness and noise differ from seed to seed.

Columns: runs in which a payload was told before; error of the force in the last second before the end [N], mean of a
run, median and worst of these runs; after the end, time until the error stays below 6 N and below 3 N [s], and largest
error later than a second [N]. ``--save`` writes payload_end.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from contact_worlds import SENSORS, world  # a neighbour of this script
from report import add_save_argument, heading, publish
from rigid_body_recording import RATE, Recording, RigidBodyArm, random_motion, record

from contact_estimation.filters.registry import open_stream

MASS, CENTRE, GRAVITY = 2.0, (0.02, 0.0, 0.06), 9.81  # [kg], [m] in TCP axes, [m/s^2]
#: [N] How strongly a hand pushes.
PUSH = {"fr3": 25.0, "ur16e": 50.0}
#: [s] When things begin, how long they are held, and how long the arm is watched afterwards.
START, HELD, AFTER = {"push": 3.0, "load": 0.0, "lift": 12.0}, {"push": 12.0, "load": 14.0, "lift": 2.0}, 5.0


class Row(NamedTuple):
    """A line of the table: what is there (``push``, ``load``, ``lift``), how it comes and goes [s], and its share."""

    kind: str
    rise: float
    fall: float
    share: float = 1.0


ROWS = {
    "push, at once": Row("push", 0.3, 0.05),
    "push, in a second": Row("push", 0.3, 1.0),
    "push that grew for 5 s, at once": Row("push", 5.0, 0.05),
    "push that grew for 5 s, in a second": Row("push", 5.0, 1.0),
    "load put down, at once": Row("load", 0.05, 0.05),
    "load put down, in a second": Row("load", 0.05, 1.0),
    "load lifted by half of its weight": Row("lift", 0.3, 0.3, 0.5),
    "load lifted by its weight": Row("lift", 0.3, 0.3),
    "load lifted by three quarters of it": Row("lift", 0.3, 0.3, 0.75),
    "load lifted by five quarters of it": Row("lift", 0.3, 0.3, 1.25),
}


def recording(robot: str, row: Row, seed: int) -> tuple[Recording, float, float]:
    """Return the recording of a row for a seed, when what it is about begins to end, and when it has ended [s]."""
    rng, start = np.random.default_rng([seed, len(robot)]), START[row.kind]
    end = start + row.rise + HELD[row.kind]
    t = np.arange(round((end + row.fall + AFTER) * RATE)) / RATE
    share = row.share * np.clip(np.minimum((t - start) / row.rise, 1.0 - (t - end) / row.fall), 0.0, 1.0)
    arm, loaded = RigidBodyArm(robot), RigidBodyArm(robot)
    loaded.carry(MASS, CENTRE)
    upward = {"push": -PUSH[robot], "load": 0.0, "lift": MASS * GRAVITY}[row.kind]  # [N]
    carried = {"push": np.zeros(len(t)), "load": share, "lift": np.ones(len(t))}[row.kind]

    def act(k: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        force = np.array([0.0, 0.0, upward * share[k]])
        torque = arm.jacobian(q).T @ force
        if carried[k] > 0:
            weights = [pin.computeGeneralizedGravity(a.model, a.data, q) for a in (arm, loaded)]
            torque = torque + carried[k] * (weights[0] - weights[1])
        return torque, force

    made = record(arm, random_motion(robot, t, rng, 0.2, 1.0), act, world(seed, rng))
    return made, end, end + row.fall


def score(robot: str, row: Row, seed: int) -> tuple[float, float, float, float] | None:
    """Return the columns of a run but the first, None where no payload was told."""
    made, ends, end = recording(robot, row, seed)
    stream, told, error = open_stream(robot, "contact_imm", SENSORS[robot]), False, []
    before = START[row.kind] if row.kind == "lift" else ends
    for k, (stamp, *sample) in enumerate(zip(made.stamps.tolist(), made.q, made.dq, made.tau)):
        estimate = stream.push(stamp, *sample)
        told |= k < before * RATE and "payload of about" in estimate.mismatch
        error.append(float(np.linalg.norm(estimate.force_tcp - made.force[k])))
    if not told:
        return None
    held, later = np.mean(error[round((ends - 1.0) * RATE) : round(ends * RATE)]), np.array(error)[round(end * RATE) :]
    return float(held), _last(later > 6.0), _last(later > 3.0), float(later[RATE:].max())


def _last(wrong: np.ndarray) -> float:
    """Return the time [s] of the last sample that is ``wrong``, zero for none."""
    return float(np.flatnonzero(wrong)[-1] + 1) / RATE if wrong.any() else 0.0


def main() -> None:
    """Simulate, replay, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", action="append", choices=tuple(SENSORS), help="repeatable; default all")
    parser.add_argument("--row", default="", help="only rows whose name has this")
    parser.add_argument("--seeds", type=int, nargs="+", default=[401, 402, 403])
    add_save_argument(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = heading("What is left of a payload that ends")
    columns = ["robot", "what ends", "told before", "error before [N]: median, worst"]
    columns += ["below 6 N [s]: median, worst", "below 3 N [s]", "later [N]"]
    lines += ["| " + " | ".join(columns) + " |"]
    lines += ["|" + "---|" * len(columns)]
    for robot in args.robot or SENSORS:
        for name, row in ROWS.items():
            if args.row not in name:
                continue
            found = [f for f in (score(robot, row, seed) for seed in args.seeds) if f is not None]
            cells = [f"{len(found)} of {len(args.seeds)}", "-", "-", "-", "-"]
            if found:
                held, six, three, left = np.array(found).T
                times = [f"{np.median(x):.2f}, {x.max():.2f}" for x in (six, three)]
                cells[1:] = [f"{np.median(held):.1f}, {held.max():.1f}", *times, f"{left.max():.1f}"]
            lines.append(f"| {robot} | {name} | " + " | ".join(cells) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
    publish(lines, args.save)


if __name__ == "__main__":
    main()
