#!/usr/bin/env python3
"""Faults of the signals, one at a time, and whether what is published under them is marked invalid.

    python benchmark/fault_matrix.py [--robot ur16e] [--observer contact_imm] [--fault "q frozen"] [--seed 3] [--save]

The recordings come from :mod:`rigid_body_recording`, which shares no code with the observers. The arm rests for 2 s,
moves for 4 s, rests and is pressed at the tool for 3 s, and moves again for 3 s. The seed draws motion, press, noise,
friction, and of every fault the joints and the size. A fault begins with the first sample or in mid run.

The force error is the distance from the true force, or from what the observer estimates without the fault, whichever
is less: an observer's own error is no fault's.

- good: share of the samples, from 0.2 s after the fault began, that are invalid or whose force error is below 15 N. A
  row passes at 95 %;
- silent: 95th percentile of the force error [N] of the samples that are valid then. No row may exceed 30 N;
- reason: what the stream said most often.

``--save`` writes fault_matrix.md beside this file. Rows of earlier runs that this one did not repeat stay there, so
that the matrix can be run in parts: one robot and observer takes some four minutes.
"""

from __future__ import annotations

import argparse
import copy
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pinocchio as pin
from report import kept_rows, row_name
from rigid_body_recording import RATE, Push, Recording, RigidBodyArm, World, pushes, random_motion, record, window

from contact_estimation import open_stream

SENSORS = {"ur16e": "ur16e_driver", "fr3": None}
OBSERVERS = ["contact_imm", "momentum_calibrated", "ekf"]
DURATION, MID_RUN = 12.0, (2.5, 5.0)  # [s]
NEAR, SILENT, LATE = 15.0, 30.0, 0.2  # [N], [N], [s]
#: Columns that name a row: robot, observer, fault, from.
NAMED_BY = (1, 2, 3, 4)
#: First line of the saved table.
MADE_BY = "`python benchmark/fault_matrix.py --save`; rows that were not run again stay."
EVERY = 5  #: samples between two estimates that are looked at


def clean_recording(robot: str, seed: int) -> Recording:
    """Make the recording of a robot: rest, motion, rest with a press of 20 to 60 N, motion."""
    arm, rng = RigidBodyArm(robot), np.random.default_rng([seed, 3])
    t = np.arange(round(DURATION * RATE)) / RATE
    share = window(t, 2.0, 6.0, 1.0) + window(t, 9.0, DURATION, 1.0)
    moving = random_motion(robot, t, rng, rng.uniform(0.2, 0.4), rng.uniform(1.2, 2.5))
    theta = moving[0] + share[:, None] * (moving - moving[0])
    direction = np.add(rng.normal(size=3), [0, 0, 2])
    force = rng.uniform(20, 60) * direction / np.linalg.norm(direction)
    world = World(rng.uniform(0.8, 1.2), rng.uniform(0.7, 1.4), rng.uniform(0.9, 1.1), seed)
    return record(arm, theta, pushes(arm, [Push(6.5, 8.7, force)], t), world)


class Draw:
    """The joints and sizes of a fault.

    Args:
        recording: the clean recording. rng: draws them.

    Attributes:
        joint, other: two different joints. rng: draws sizes.
    """

    def __init__(self, recording: Recording, rng: np.random.Generator) -> None:
        self.rng = rng
        self.joint, self.other = (int(j) for j in rng.choice(recording.q.shape[1], 2, replace=False))
        self.size = recording.tau.std(axis=0) + np.abs(recording.tau.mean(axis=0)) + 2.0  # [Nm]


#: (values (N, n) from the fault's first sample on, recording, rows, draw) -> faulty values.
Change = Callable[[np.ndarray, Recording, np.ndarray, Draw], np.ndarray]
Fault = tuple[str, Change]


def hold(v: np.ndarray, r: Recording, rows: np.ndarray, d: Draw) -> np.ndarray:
    """Return the first value, again and again."""
    return np.repeat(v[:1], len(v), axis=0)


def exchange(v: np.ndarray, r: Recording, rows: np.ndarray, d: Draw) -> np.ndarray:
    """Exchange two joints."""
    order = np.arange(v.shape[1])
    order[[d.joint, d.other]] = d.other, d.joint
    return v[:, order]


def rotate(v: np.ndarray, r: Recording, rows: np.ndarray, d: Draw) -> np.ndarray:
    """Put every joint in its neighbour's place."""
    return np.roll(v, 1, axis=1)


def late(low: float, high: float) -> Change:
    """Return the value of some time [s] ago."""

    def change(v: np.ndarray, r: Recording, rows: np.ndarray, d: Draw) -> np.ndarray:
        samples = round(d.rng.uniform(low, high) * RATE)
        return np.concatenate([np.repeat(v[:1], samples, axis=0), v[:-samples]])

    return change


def scaled(low: float, high: float) -> Change:
    """Apply a factor."""
    return lambda v, r, rows, d: v * d.rng.uniform(low, high)


def spikes(size: float, every: float = 0.5) -> Change:
    """Put one sample after each time [s] off by ``size``, with either sign."""

    def change(v: np.ndarray, r: Recording, rows: np.ndarray, d: Draw) -> np.ndarray:
        v = v.copy()
        v[:: round(every * RATE)] += size * d.rng.choice([-1, 1])
        return v

    return change


def alone(change: Change) -> Change:
    """Restrict a fault to one joint."""

    def apply(v: np.ndarray, r: Recording, rows: np.ndarray, d: Draw) -> np.ndarray:
        v, changed = v.copy(), change(v, r, rows, d)
        v[:, d.joint] = changed[:, d.joint]
        return v

    return apply


def offset(low: float, high: float, ramp: float = 0.0) -> Change:
    """Add an offset of either sign, which grows over ``ramp`` [s]."""

    def change(v: np.ndarray, r: Recording, rows: np.ndarray, d: Draw) -> np.ndarray:
        grown = np.clip(np.arange(1, len(v) + 1) / max(ramp * RATE, 1), 0, 1)[:, None]
        return v + d.rng.uniform(low, high) * d.rng.choice([-1, 1]) * grown

    return change


def torque_offset(v: np.ndarray, r: Recording, rows: np.ndarray, d: Draw) -> np.ndarray:
    """Add an offset of one to two times what the joint carries."""
    return v + d.rng.uniform(1, 2) * d.rng.choice([-1, 1]) * d.size


def noisy(size: float) -> Change:
    """Add white noise."""
    return lambda v, r, rows, d: v + d.rng.normal(0, size, v.shape)


def quiet(v: np.ndarray, r: Recording, rows: np.ndarray, d: Draw) -> np.ndarray:
    """Sample at a twentieth of the rate and hold between."""
    return v[np.arange(len(v)) // 20 * 20]


def tilted(v: np.ndarray, r: Recording, rows: np.ndarray, d: Draw) -> np.ndarray:
    """Return the torque of an arm that is mounted on a wall."""
    arm = RigidBodyArm(d.robot)
    arm.model.gravity.linear = np.array([9.81, 0, 0])
    arm.data = arm.model.createData()
    return np.array(
        [
            tau - g + pin.computeGeneralizedGravity(arm.model, arm.data, q)
            for tau, g, q in zip(v, r.gravity[rows], r.q[rows])
        ]
    )


def steps_of(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Return a fault of the stamps, from their intervals [ns]."""

    def apply(v: np.ndarray, r: Recording, rows: np.ndarray, d: Draw) -> np.ndarray:
        steps = np.diff(v, prepend=v[0] - round(1e9 / RATE))
        return v[0] + np.cumsum(change(steps)) - change(steps)[0]

    return apply


FAULTS: dict[str, Fault] = {
    "q frozen": ("q", hold),
    "q of one joint frozen": ("q", alone(hold)),
    "q of one joint slips": ("q", alone(offset(0.02, 0.3))),
    "q of one joint scaled": ("q", alone(scaled(1.3, 2.0))),
    "q of one joint reversed": ("q", alone(scaled(-1, -1))),
    "q of two joints exchanged": ("q", exchange),
    "q late": ("q", late(0.03, 0.1)),
    "q noisy": ("q", noisy(2e-3)),
    "q in degrees": ("q", scaled(57.3, 57.3)),
    "q not finite": ("q", alone(lambda v, r, rows, d: v * np.nan)),
    "q spikes": ("q", alone(spikes(0.02))),
    "dq zero": ("dq", lambda v, r, rows, d: 0 * v),
    "dq of one joint zero": ("dq", alone(lambda v, r, rows, d: 0 * v)),
    "dq frozen": ("dq", hold),
    "dq of one joint frozen": ("dq", alone(hold)),
    "dq reversed": ("dq", scaled(-1, -1)),
    "dq of one joint reversed": ("dq", alone(scaled(-1, -1))),
    "dq halved": ("dq", scaled(0.4, 0.6)),
    "dq doubled": ("dq", scaled(1.6, 2.5)),
    "dq of two joints exchanged": ("dq", exchange),
    "dq late": ("dq", late(0.03, 0.1)),
    "dq spikes": ("dq", alone(spikes(10.0))),
    "dq small spikes": ("dq", alone(spikes(1.0))),
    "dq in degrees": ("dq", scaled(57.3, 57.3)),
    "dq 1e160": ("dq", alone(spikes(1e160))),
    "dq offset": ("dq", alone(offset(0.05, 0.3))),
    "tau reversed": ("tau", scaled(-1, -1)),
    "tau of one joint reversed": ("tau", alone(scaled(-1, -1))),
    "tau zero": ("tau", lambda v, r, rows, d: 0 * v),
    "tau of one joint zero": ("tau", alone(lambda v, r, rows, d: 0 * v)),
    "tau halved": ("tau", scaled(0.4, 0.6)),
    "tau doubled": ("tau", scaled(1.7, 2.5)),
    "tau tenfold": ("tau", scaled(8, 12)),
    "tau of one joint scaled": ("tau", alone(scaled(2, 4))),
    "tau gravity-compensated": ("tau", lambda v, r, rows, d: v - r.gravity[rows]),
    "tau external": ("tau", lambda v, r, rows, d: r.gravity[rows] - v),
    "tau in A": ("tau", lambda v, r, rows, d: v / r.gain),
    "tau in mNm": ("tau", scaled(1e3, 1e3)),
    "tau in kNm": ("tau", scaled(1e-3, 1e-3)),
    "tau of two joints exchanged": ("tau", exchange),
    "tau in reverse order": ("tau", lambda v, r, rows, d: v[:, ::-1]),
    "tau rotated by one joint": ("tau", rotate),
    "tau frozen": ("tau", hold),
    "tau of one joint frozen": ("tau", alone(hold)),
    "tau late": ("tau", late(0.08, 0.15)),
    "tau of one joint offset": ("tau", alone(torque_offset)),
    "tau of one joint drifts": ("tau", alone(offset(30, 60, 3.0))),
    "tau of all joints offset": ("tau", offset(20, 40)),
    "tau spikes": ("tau", spikes(1e4)),
    "tau of one joint spikes": ("tau", alone(spikes(300.0, 0.1))),
    "tau held between": ("tau", quiet),
    "tau noisy": ("tau", noisy(20.0)),
    "tau 1e160": ("tau", alone(spikes(1e160))),
    "tau not finite": ("tau", alone(lambda v, r, rows, d: v * np.nan)),
    "mounted on a wall": ("tau", tilted),
    "joints in reverse order": ("all", lambda v, r, rows, d: v[:, ::-1]),
    "two joints exchanged": ("all", exchange),
    "stamps doubled": ("stamps", steps_of(lambda s: 2 * s)),
    "stamps halved": ("stamps", steps_of(lambda s: s // 2)),
    "stamps 1.3 times": ("stamps", steps_of(lambda s: s * 13 // 10)),
    "stamps frozen": ("stamps", steps_of(lambda s: 0 * s)),
    "stamps in pairs": ("stamps", steps_of(lambda s: s * 2 * (np.arange(len(s)) % 2))),
    "stamps backwards": ("stamps", steps_of(lambda s: -s)),
    "stamps jump": ("stamps", steps_of(lambda s: s + 10**9 * (np.arange(len(s)) % 500 == 1))),
    "samples held": ("all", hold),
    "dq noisy": ("dq", noisy(0.05)),
}


def faulty(clean: Recording, robot: str, fault: str, begin: int, seed: int) -> Recording:
    """Return a copy of a recording with a fault from sample ``begin`` on."""
    recording = copy.deepcopy(clean)
    draw = Draw(clean, np.random.default_rng([seed, list(FAULTS).index(fault)]))
    draw.robot = robot
    signal, change = FAULTS[fault]
    rows = np.arange(begin, len(clean.stamps))
    for name in ("q", "dq", "tau") if signal == "all" else (signal,):
        values = getattr(recording, name)
        with np.errstate(all="ignore"):
            values[rows] = change(getattr(clean, name)[rows], clean, rows, draw)
    return recording


def published(robot: str, observer: str, recording: Recording) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Push a recording; of every :data:`EVERY`-th sample the force (N, 3) [N], its validity (N,) and the reason."""
    stream = open_stream(robot, observer, SENSORS[robot])
    force, valid, reasons = [], [], []
    for k, stamp in enumerate(recording.stamps):
        stream.push_fast(int(stamp), recording.q[k], recording.dq[k], recording.tau[k])
        if k % EVERY == 0:
            estimate = stream.estimate(int(stamp))
            force.append(estimate.force_tcp)
            valid.append(estimate.valid)
            reasons.append(estimate.reason)
    return np.array(force), np.array(valid), reasons


def judge(robot: str, observer: str, recording: Recording, begin: int, without: np.ndarray) -> dict:
    """Judge what is published from 0.2 s after ``begin``; ``without`` (N, 3) [N] is the estimate without the fault."""
    force, valid, said = published(robot, observer, recording)
    late = int(np.ceil((begin + LATE * RATE) / EVERY))
    truth = np.linalg.norm(force - recording.force[::EVERY], axis=1)[late:]
    error = np.fmin(truth, np.linalg.norm(force - without, axis=1)[late:])
    valid, reasons = valid[late:], Counter(reason for reason in said[late:] if reason)
    return {
        "good": 1 - (valid & ~(error < NEAR)).mean(),
        "silent": float(np.percentile(error[valid], 95)) if valid.any() else 0.0,
        "invalid": float(1 - valid.mean()),
        "reason": reasons.most_common(1)[0][0] if reasons else "",
    }


def rows_of(robot: str, observer: str, faults: list[str], seed: int) -> list[str]:
    """Return the table's rows of a robot and an observer; the first word of a row is its verdict."""
    clean, lines = clean_recording(robot, seed), []
    without, valid, said = published(robot, observer, clean)
    print(f"{robot} {observer}: {100 * valid.mean():.0f} % of the clean recording valid {Counter(said).most_common(1)}")
    middle = int(np.random.default_rng([seed, 5]).uniform(*MID_RUN) * RATE)
    for fault in faults:
        for name, begin in (("start", 0), ("mid run", middle)):
            row = judge(robot, observer, faulty(clean, robot, fault, begin, seed), begin, without)
            verdict = "SILENT" if row["silent"] > SILENT else "pass" if row["good"] >= 0.95 else "miss"
            lines.append(
                f"| {verdict} | {robot} | {observer} | {fault} | {name} | {100 * row['good']:.0f} % | "
                f"{100 * row['invalid']:.0f} % | {row['silent']:.0f} | {row['reason'][:110]} |"
            )
            print(lines[-1], flush=True)
    return lines


def summary(rows: list[str]) -> list[str]:
    """Count what rows say, per robot and observer."""
    verdicts: dict[str, Counter[str]] = {}
    for row in rows:
        _, verdict, robot, observer, *_ = (cell.strip() for cell in row.split("|"))
        verdicts.setdefault(f"{robot} {observer}", Counter())[verdict] += 1
    return [
        f"{name}: {count['pass']} of {count.total()} rows pass, {count['SILENT']} are silent above {SILENT:g} N."
        for name, count in verdicts.items()
    ]


def save(path: Path, found: list[str]) -> None:
    """Write rows to a table; rows there that are not among them stay."""
    rows = kept_rows(path, *NAMED_BY) | {row_name(row, *NAMED_BY): row for row in found}
    table = sorted(rows.values(), key=lambda row: row.split("|")[2:4])
    header = ["| verdict | robot | observer | fault | from | good | invalid | silent [N] | reason |", "|" + "---|" * 9]
    path.write_text("\n\n".join(["# Fault matrix", MADE_BY, *summary(table), "\n".join([*header, *table])]) + "\n")


def main() -> None:
    """Run the matrix and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", action="append", choices=sorted(SENSORS))
    parser.add_argument("--observer", action="append")
    parser.add_argument("--fault", action="append", choices=list(FAULTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--save", action="store_true", help="write fault_matrix.md beside this file")
    args = parser.parse_args()
    robots, observers = args.robot or list(SENSORS), args.observer or OBSERVERS
    cells = [(r, o, args.fault or list(FAULTS), args.seed) for r in robots for o in observers]
    with ProcessPoolExecutor(args.workers) as pool:
        found = [line for rows in pool.map(rows_of, *zip(*cells)) for line in rows]
    print("\n".join(summary(found)))
    if args.save:
        save(Path(__file__).with_suffix(".md"), found)


if __name__ == "__main__":
    main()
