#!/usr/bin/env python3
"""Faults of the signals, one at a time, and whether what is published under them is marked invalid.

    python benchmark/fault_matrix.py [--robot ur16e] [--robot fr3] [--observer contact_imm] [--save]

A recording is made here from rigid-body dynamics (Pinocchio), Coulomb and viscous friction, encoder and torque noise
and a press of 30 N: no code is shared with the observers or the simulated arms. The arm rests for 2 s, moves for 4 s,
rests and is pressed for 3 s, and moves again for 3 s. Every fault of :data:`FAULTS` begins with the first sample, or in
the middle of the first motion. Per fault, robot and observer:

- invalid: share of the samples, from 0.2 s after the fault began, that are marked invalid or whose force error is below
  15 N;
- silent: the 99th percentile of the force error [N] of samples that were marked valid then;
- reason: what the stream said most often.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_estimation import load_arm, open_stream

RATE = 500
STARTS = {"ur16e": [0.2, -1.6, 1.9, -1.8, -1.5, 0.3], "fr3": [0.1, -0.6, 0.2, -2.2, 0.1, 1.7, 0.8]}
COULOMB = {"ur16e": [2.0, 7.0, 4.5, 2.5, 0.6, 0.5], "fr3": [0.15] * 7}
NOISE = {"ur16e": [1.0, 1.5, 0.8, 0.4, 0.25, 0.2], "fr3": [0.05] * 7}
SENSORS = {"ur16e": "joint_torque", "fr3": None}
FAULT_TIME, NEAR, LATE = 4.0, 15.0, 0.2


@dataclass
class Recording:
    """Stamps [ns] (N,), q, dq, tau (N, n), and the true force (N, 3) [N] at the TCP in TCP axes."""

    stamps: np.ndarray
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    force: np.ndarray
    gravity: np.ndarray
    gain: np.ndarray


def record(robot: str, seed: int) -> Recording:
    """Make the recording of a robot."""
    arm, rng = load_arm(robot), np.random.default_rng(seed)
    model, n = arm.model, arm.n
    data, frame = model.createData(), model.getFrameId(arm.tcp_frame)
    t = np.arange(12 * RATE) / RATE
    window = np.where(t < 2, 0, np.where(t < 6, np.sin(np.pi * (t - 2) / 4) ** 2, 0))
    window += np.where(t > 9, np.sin(np.pi * (t - 9) / 3) ** 2, 0)
    phase, speed = rng.uniform(0, 6.28, n), rng.uniform(1.5, 2.5, n)
    q = np.array(STARTS[robot]) + 0.35 * window[:, None] * np.sin(np.outer(t, speed) + phase)
    dq, ddq = np.gradient(q, 1 / RATE, axis=0), np.zeros_like(q)
    ddq = np.gradient(dq, 1 / RATE, axis=0)
    press = np.where((t > 6.3) & (t < 8.7), 30 * np.clip(np.minimum((t - 6.3) / 0.5, (8.7 - t) / 0.5), 0, 1), 0)
    tau, force, gravity = np.zeros_like(q), np.zeros((len(t), 3)), np.zeros_like(q)
    for k in range(len(t)):
        tau[k] = pin.rnea(model, data, q[k], dq[k], ddq[k])
        gravity[k] = pin.computeGeneralizedGravity(model, data, q[k])
        jacobian = pin.computeFrameJacobian(model, data, q[k], frame, pin.LOCAL_WORLD_ALIGNED)
        rotation = pin.updateFramePlacement(model, data, frame).rotation
        pushed = np.array([0.0, 0.0, press[k]])
        tau[k] -= jacobian[:3].T @ pushed
        force[k] = rotation.T @ pushed
    tau += np.array(COULOMB[robot]) * np.tanh(dq / 5e-3) + arm.motor.viscous * dq
    tau += rng.normal(0, NOISE[robot], tau.shape)
    stamps = (np.arange(len(t)) * 1e9 / RATE).astype(np.int64) + 1_000_000_000
    gain = np.array([12.0] * n) if arm.motor.drive_gain is None else np.array(arm.motor.drive_gain)
    quantum = 1.2e-5
    q = np.round((q + rng.normal(0, quantum, q.shape)) / quantum) * quantum
    return Recording(stamps, q, dq + rng.normal(0, 2e-4, q.shape), tau, force, gravity, gain)


Change = Callable[[Recording, np.ndarray], None]


def columns(signal: str, change: Callable, joint: int | None = None) -> Change:
    """Return a fault that changes the rows of one signal, of one joint or all."""

    def apply(r: Recording, rows: np.ndarray) -> None:
        values = getattr(r, signal)
        where = slice(None) if joint is None else slice(joint, joint + 1)
        values[rows, where] = change(values[rows, where], r, rows)

    return apply


def held(v, r, rows):
    """Return the first value, again and again."""
    return np.repeat(v[:1], len(v), axis=0)


def swapped(i: int, j: int) -> Callable:
    """Two joints exchanged."""

    def change(v, r, rows):
        order = np.arange(v.shape[1])
        order[[i, j]] = j, i
        return v[:, order]

    return change


def delayed(samples: int) -> Callable:
    """Return the value of some samples ago."""
    return lambda v, r, rows: np.concatenate([np.repeat(v[:1], samples, axis=0), v[:-samples]])


def spikes(size: float) -> Callable:
    """One sample in 250 is ``size``."""

    def change(v, r, rows):
        v = v.copy()
        v[::250] = size
        return v

    return change


def noisy(std: float) -> Callable:
    """White noise on top."""
    return lambda v, r, rows: v + np.random.default_rng(5).normal(0, std, v.shape)


def stamps(change: Callable) -> Change:
    """Return a fault of the stamps: ``change`` of their intervals [ns]."""

    def apply(r: Recording, rows: np.ndarray) -> None:
        steps = np.diff(r.stamps, prepend=r.stamps[0] - 2_000_000)
        steps[rows] = change(steps[rows])
        r.stamps = np.cumsum(steps) + 1_000_000_000

    return apply


def gap(r: Recording, rows: np.ndarray) -> None:
    """One second is missing."""
    keep = np.ones(len(r.stamps), bool)
    keep[rows[0] + 1 : rows[0] + 501] = False
    for key in ("stamps", "q", "dq", "tau", "force", "gravity"):
        setattr(r, key, getattr(r, key)[keep])


FAULTS: dict[str, Change] = {
    "q frozen": columns("q", held),
    "q of joint 1 frozen": columns("q", held, 1),
    "q of joint 3 offset 0.1 rad": columns("q", lambda v, r, rows: v + 0.1, 3),
    "q of joint 1 scaled 1.5": columns("q", lambda v, r, rows: 1.5 * v, 1),
    "q of joint 2 reversed": columns("q", lambda v, r, rows: -v, 2),
    "q of joints 1, 2 exchanged": columns("q", swapped(1, 2)),
    "q 40 ms late": columns("q", delayed(20)),
    "q noisy, 2 mrad": columns("q", noisy(2e-3)),
    "q in degrees": columns("q", lambda v, r, rows: np.degrees(v)),
    "q not finite": columns("q", lambda v, r, rows: v * np.nan, 2),
    "dq zero": columns("dq", lambda v, r, rows: 0 * v),
    "dq of joint 1 zero": columns("dq", lambda v, r, rows: 0 * v, 1),
    "dq frozen": columns("dq", held),
    "dq reversed": columns("dq", lambda v, r, rows: -v),
    "dq of joint 2 reversed": columns("dq", lambda v, r, rows: -v, 2),
    "dq halved": columns("dq", lambda v, r, rows: 0.5 * v),
    "dq doubled": columns("dq", lambda v, r, rows: 2 * v),
    "dq of joints 1, 3 exchanged": columns("dq", swapped(1, 3)),
    "dq 40 ms late": columns("dq", delayed(20)),
    "dq spikes, 10 rad/s": columns("dq", spikes(10.0)),
    "dq in degrees": columns("dq", lambda v, r, rows: np.degrees(v)),
    "dq 1e160": columns("dq", spikes(1e160), 0),
    "tau reversed": columns("tau", lambda v, r, rows: -v),
    "tau of joint 1 reversed": columns("tau", lambda v, r, rows: -v, 1),
    "tau zero": columns("tau", lambda v, r, rows: 0 * v),
    "tau of joint 1 zero": columns("tau", lambda v, r, rows: 0 * v, 1),
    "tau halved": columns("tau", lambda v, r, rows: 0.5 * v),
    "tau doubled": columns("tau", lambda v, r, rows: 2 * v),
    "tau tenfold": columns("tau", lambda v, r, rows: 10 * v),
    "tau gravity-compensated": columns("tau", lambda v, r, rows: v - r.gravity[rows]),
    "tau external": columns("tau", lambda v, r, rows: r.gravity[rows] - v),
    "tau in A": columns("tau", lambda v, r, rows: v / r.gain),
    "tau in mNm": columns("tau", lambda v, r, rows: 1e3 * v),
    "tau of joints 0, 2 exchanged": columns("tau", swapped(0, 2)),
    "tau of joints 1, 3 exchanged": columns("tau", swapped(1, 3)),
    "tau in reverse order": columns("tau", lambda v, r, rows: v[:, ::-1]),
    "tau frozen": columns("tau", held),
    "tau of joint 1 frozen": columns("tau", held, 1),
    "tau 100 ms late": columns("tau", delayed(50)),
    "tau of joint 1 offset 40 Nm": columns("tau", lambda v, r, rows: v + 40, 1),
    "tau spikes, 1e4 Nm": columns("tau", spikes(1e4)),
    "tau not finite": columns("tau", lambda v, r, rows: v * np.nan, 0),
    "stamps doubled": stamps(lambda d: 2 * d),
    "stamps halved": stamps(lambda d: d // 2),
    "stamps frozen": stamps(lambda d: 0 * d),
    "stamps jump 1 s": gap,
}


def judge(stream, recording: Recording, begin: int) -> dict:
    """Push a recording and judge what was published from 0.2 s after ``begin``."""
    error, valid, reasons = [], [], Counter()
    for k, stamp in enumerate(recording.stamps):
        estimate = stream.push(int(stamp), recording.q[k], recording.dq[k], recording.tau[k])
        error.append(np.linalg.norm(estimate.force_tcp - recording.force[k]))
        valid.append(estimate.valid)
        if not estimate.valid:
            reasons[estimate.reason] += 1
    late = begin + int(LATE * RATE)
    error, valid = np.array(error[late:]), np.array(valid[late:])
    bad = valid & ~(error < NEAR)
    return {
        "good": 1 - bad.mean(),
        "silent": float(np.percentile(error[valid], 99)) if valid.any() else 0.0,
        "invalid": float(1 - valid.mean()),
        "reason": reasons.most_common(1)[0][0] if reasons else "",
    }


def main() -> None:
    """Run the matrix and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", action="append", choices=sorted(STARTS))
    parser.add_argument("--observer", action="append")
    parser.add_argument("--fault", action="append", choices=list(FAULTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true", help="write fault_matrix.md beside this file")
    args = parser.parse_args()
    lines = ["| robot | observer | fault | from | good | invalid | valid error [N] | reason |", "|" + "---|" * 8]
    total, passed = 0, 0
    for robot in args.robot or sorted(STARTS):
        clean = record(robot, args.seed)
        for observer in args.observer or ["momentum_calibrated", "ekf", "contact_bank"]:
            for fault in ["none", *(args.fault or FAULTS)]:
                for name, begin in (("start", 0), ("mid run", int(FAULT_TIME * RATE))):
                    recording = Recording(**{key: np.copy(value) for key, value in vars(clean).items()})
                    if fault != "none":
                        with np.errstate(invalid="ignore"):
                            FAULTS[fault](recording, np.arange(begin, len(recording.stamps)))
                    row = judge(open_stream(robot, observer, SENSORS[robot]), recording, begin)
                    ok = row["good"] >= 0.95 or row["silent"] < 30.0
                    total, passed = total + 1, passed + ok
                    lines.append(
                        f"| {robot} | {observer} | {fault} | {name} | {100 * row['good']:.0f} % | "
                        f"{100 * row['invalid']:.0f} % | {row['silent']:.0f} | {row['reason'][:110]} |"
                    )
                    print(lines[-1], flush=True)
    lines.append("")
    lines.append(f"{passed} of {total} within bounds: 95 % of samples invalid or within 15 N.")
    print(lines[-1])
    if args.save:
        Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
