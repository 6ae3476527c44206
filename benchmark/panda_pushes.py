#!/usr/bin/env python3
"""Pushes laid over the real motion of a Panda: how well the default observer tells them, and what it tells after them.

    python benchmark/panda_pushes.py [--seeds N ...] [--shared DIR] [--save]

The motion is a recorded identification motion of up to 1.8 rad/s on every joint. Twelve pushes of 30 N at the flange in
random directions last 0.7 s each, with ramps of 0.1 s; their torque J^T f is added to the recorded one. Figures per
seed: RMSE of the force while a push is held, of ``contact_imm`` and of ``momentum_calibrated``; share of that time in
which the mode is a contact; RMSE and 99th percentile of the force where nothing pushes, from 50 ms after a push on, and
the share of that time in contact. ``--save`` writes panda_pushes.md beside this file.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from report import command  # a neighbour of this script

from contact_estimation.filters.registry import open_stream
from contact_estimation.io.npz import read_npz
from contact_estimation.robot import Arm, load_arm

RECORDING = "data/panda_excitation/panda_excitation.npz"
#: [N], [s], [s] Size, duration and ramp of a push; every so often one begins [s]; released this long after it [s].
SIZE, DURATION, RAMP, EVERY, RELEASED = 30.0, 0.7, 0.1, 1.5, 0.05
#: Every second sample of 1 kHz.
STRIDE = 2


def pushed(arm: Arm, recording, seed: int) -> tuple[list[tuple], np.ndarray]:
    """Return the samples (stamp, q, dq, tau) of the motion with pushes, and their forces (N, 3) [N, base axes]."""
    rows, rng = slice(0, None, STRIDE), np.random.default_rng(seed)
    stamps, q, dq, tau = (x[rows] for x in (recording.stamps_ns, recording.q, recording.dq, recording.tau.copy()))
    t, force = (stamps - stamps[0]) * 1e-9, np.zeros((len(stamps), 3))
    for start in np.arange(EVERY, t[-1] - 1.0, EVERY):
        direction = rng.standard_normal(3)
        share = np.clip((t - start) / RAMP, 0, 1) * np.clip((start + DURATION - t) / RAMP, 0, 1)
        force += SIZE * share[:, None] * direction / np.linalg.norm(direction)
    for k in np.flatnonzero(force.any(axis=1)):
        tau[k] -= arm.tcp_jacobian(q[k])[:3].T @ force[k]
    return list(zip(stamps.tolist(), q, dq, tau)), force


def figures(arm: Arm, samples: list[tuple], force: np.ndarray, observer: str) -> dict[str, float]:
    """Return RMSE [N] and share in contact while pushed, and RMSE, 99th percentile [N] and that share while free."""
    stream = open_stream(arm, observer)
    found = [stream.push(*sample) for sample in samples]
    error = np.linalg.norm(np.array([e.force_base for e in found]) - force, axis=1)
    contact = np.array([e.mode != "free" for e in found])
    size = np.linalg.norm(force, axis=1)
    recent = np.convolve(size > 0, np.ones(round(RELEASED * 1000 / STRIDE)))[: len(size)] > 0
    held, free = size > 0.99 * SIZE, ~recent & (size == 0)
    return {
        "rmse": float(np.sqrt(np.mean(error[held] ** 2))),
        "seen": float(contact[held].mean()),
        "free_rmse": float(np.sqrt(np.mean(error[free] ** 2))),
        "free_p99": float(np.percentile(error[free], 99)),
        "free_contact": float(contact[free].mean()),
    }


def main() -> None:
    """Push, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("CONTACT_ESTIMATION_SHARED") or Path(__file__).resolve().parents[2] / "shared"
    parser.add_argument("--shared", type=Path, default=Path(default))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(6)))
    parser.add_argument("--save", action="store_true", help="write panda_pushes.md beside this file")
    args = parser.parse_args()
    arm = load_arm("panda")
    recording = read_npz(args.shared / RECORDING, arm.joint_names)
    lines = [
        "| seed | RMSE [N] | seen [%] | free RMSE [N] | free p99 [N] | contact in free [%] | momentum RMSE [N] |",
        "|---|---|---|---|---|---|---|",
    ]
    for seed in args.seeds:
        samples, force = pushed(arm, recording, seed)
        found = figures(arm, samples, force, "contact_imm")
        momentum = figures(arm, samples, force, "momentum_calibrated")["rmse"]
        cells = [found["rmse"], 100 * found["seen"], found["free_rmse"], found["free_p99"], 100 * found["free_contact"]]
        lines.append(f"| {seed} | " + " | ".join(f"{c:.1f}" for c in [*cells, momentum]) + " |")
        print(lines[-1], flush=True)
    if args.save:
        title = f"# {__doc__.splitlines()[0]}\n\n`{command()}`\n\n"
        Path(__file__).with_suffix(".md").write_text(title + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
