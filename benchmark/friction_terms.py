#!/usr/bin/env python3
"""What a calibrated UR10e leaves of its torque: how much of it other terms of friction and dynamics would explain.

    python benchmark/friction_terms.py [--shared DIR] [--save]

The calibration is that of ``ur10e_logs.py``, from four free excitations. Per joint and term, a robust regression of
what it leaves of these logs has the calibrated parameters as columns, and the term. It then predicts logs that it has
not seen: four Fourier excitations, and seven logs in which joints also rest. A figure is the squared error that is left
there, over that of the regression without the term: 1 is no use, more than 1 is harm. ``--save`` writes
friction_terms.md beside this file.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from calibration import ur10e_log  # neighbours of this script
from ur10e_logs import FREE, TAUGHT

from contact_estimation.commands.output import text_table
from contact_estimation.fit.calibration import CalibrationSettings
from contact_estimation.fit.calibration.identify import identify_designs
from contact_estimation.fit.calibration.model import Design, Layout, design, evaluate
from contact_estimation.fit.calibration.motion import prepare
from contact_estimation.fit.calibration.regression import huber_weights, robust_scale
from contact_estimation.robot import Arm, load_arm

#: Of ``FREE`` the first so many are Fourier excitations.
FOURIER = 4
#: Kinds of a joint's own parameters that are columns of every regression.
OWN = ("viscous", "asymmetry", "coulomb", "bias", "log_presliding", "gain", "armature")
_ITERATIONS, _RIDGE = 5, 1e-4


def terms(arm: Arm, d: Design, s: np.ndarray, j: int) -> dict[str, list[np.ndarray]]:
    """Columns (T,) of every term for joint ``j`` with the presliding state ``s`` (T,)."""
    m, q, dq, load, ratio = d.motion, d.motion.q[:, j], d.motion.dq[:, j], d.rigid[:, j], arm.motor.gear_ratio[j]
    slow = s * np.exp(-((dq / 0.02) ** 2))
    return {
        "none": [],
        "Coulomb friction by load, |tau_rigid| s": [np.abs(load) * s],
        "viscous friction by load, |tau_rigid| dq": [np.abs(load) * dq],
        "viscous friction less than linear, |dq|^0.5": [np.sign(dq) * np.abs(dq) ** 0.5],
        "both: |tau_rigid| s and |dq|^0.5": [np.abs(load) * s, np.sign(dq) * np.abs(dq) ** 0.5],
        "Stribeck, s exp(-(dq / 0.02 rad/s)^2)": [slow],
        "ripple, 1, 2, 4 per turn of the wave generator": [
            f(k * ratio * q) for k in (1, 2, 4) for f in (np.cos, np.sin)
        ],
        "ripple, 1, 2 per turn of the joint": [f(k * q) for k in (1, 2) for f in (np.cos, np.sin)],
        "late torque, d tau_rigid / dt": [np.gradient(load, m.t)],
        "drift over the log, t": [m.t - m.t[0]],
        "warmer oil over the log, t dq": [(m.t - m.t[0]) * dq],
        "inertial parameters of all links": list(d.links[:, j].T),
    }


def columns(layout: Layout, jacobian: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the calibrated parameters' columns (T, k) of joint ``j``, and its presliding state (T,)."""
    own = [layout[name].start + j for name in OWN] + list(range(layout.size))[layout["payload"]]
    return jacobian[:, j, own], jacobian[:, j, layout["coulomb"].start + j]


def fitted(rows: np.ndarray, residual: np.ndarray, outlier: float) -> np.ndarray:
    """Robust coefficients (k,) of ``residual`` (N,) on ``rows`` (N, k), with a ridge where columns are alike."""
    scale, weight = np.linalg.norm(rows, axis=0) + 1e-12, np.ones(len(rows))
    for _ in range(_ITERATIONS):
        scaled = rows / scale
        normal = (scaled * weight[:, None]).T @ scaled + _RIDGE**2 * np.eye(len(scale))
        found = np.linalg.solve(normal, (scaled * weight[:, None]).T @ residual) / scale
        left = (residual - rows @ found)[:, None]
        weight = huber_weights(left, robust_scale(left), outlier)[:, 0]
    return found


def main() -> None:
    """Calibrate, regress, predict, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("CONTACT_ESTIMATION_SHARED") or Path(__file__).resolve().parents[2] / "shared"
    parser.add_argument("--shared", type=Path, default=Path(default))
    parser.add_argument("--save", action="store_true", help="write friction_terms.md beside this file")
    args = parser.parse_args()
    arm, settings = load_arm("ur10e"), CalibrationSettings()
    archive = np.load(args.shared / "data" / "ur10e_identification" / "ur10e_logs.npz")
    names = [*(f"identification_data__ur-{name}" for name in TAUGHT), *FREE]
    designs = [design(arm, prepare(ur10e_log(archive, arm, name), settings.cutoff)) for name in names]
    found = identify_designs(arm, designs[: len(TAUGHT)], settings)
    told = [evaluate(found.layout, found.theta, d) for d in designs]
    left: dict[str, np.ndarray] = {}  # term -> (logs, n) squared error
    for j in range(arm.n):
        residual = [d.motion.tau[:, j] - torque[:, j] for d, (torque, _) in zip(designs, told)]
        own = [columns(found.layout, jacobian, j) for _, jacobian in told]
        extra = [terms(arm, d, s, j) for d, (_, s) in zip(designs, own)]
        for term in extra[0]:
            rows = [np.column_stack([base, *more[term]]) for (base, _), more in zip(own, extra)]
            taught = slice(len(TAUGHT))
            values = fitted(np.concatenate(rows[taught]), np.concatenate(residual[taught]), settings.outlier)
            errors = [np.mean((y - x @ values) ** 2) for x, y in zip(rows, residual)]
            left.setdefault(term, np.zeros((len(designs), arm.n)))[:, j] = errors
    text = "\n\n".join(
        f"{title}\n\n" + text_table(["term", *(f"joint {j + 1}" for j in range(arm.n))], table(left, logs))
        for title, logs in (
            ("Four Fourier excitations", slice(len(TAUGHT), len(TAUGHT) + FOURIER)),
            ("Seven logs in which joints also rest", slice(len(TAUGHT) + FOURIER, None)),
        )
    )
    print(text)
    if args.save:
        title = f"# {__doc__.splitlines()[0]}\n\n`python benchmark/friction_terms.py --save`\n\n```text\n"
        Path(__file__).with_suffix(".md").write_text(title + text + "\n```\n")


def table(left: dict[str, np.ndarray], logs: slice) -> list[list]:
    """Rows of the table: RMS error [Nm] without a term, then what every term leaves of its square."""
    base = left["none"][logs].mean(axis=0)
    rows = [["RMS without a term [Nm]", *np.sqrt(base)]]
    return rows + [[term, *values[logs].mean(axis=0) / base] for term, values in left.items() if term != "none"]


if __name__ == "__main__":
    main()
