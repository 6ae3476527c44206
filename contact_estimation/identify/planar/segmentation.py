"""Where a noisy drop bounces, and how noisy it is, before anything is known about the body: change points of free
flight."""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.planar.drop_model import DropProblem
from contact_estimation.identify.planar.stepping import gravity


def noise_levels(q, v, h: float) -> np.ndarray:
    """Noise (6,) of q [m, m, rad] and v by robust differences; impacts are outliers to them.

    Second differences of v vanish in free flight and where the body has come to rest, with or without gravity.
    """
    sigma_v = 1.4826 * np.median(np.abs(np.diff(v, n=2, axis=0)), axis=0) / np.sqrt(6.0)
    dq = np.diff(q, axis=0) - h * v[1:]
    sigma_q = np.sqrt(np.maximum((1.4826 * np.median(np.abs(dq), axis=0))**2 - (h * sigma_v)**2, 0.0) / 2.0)
    floor = 1e-5 * np.concatenate([np.ptp(q, axis=0), np.ptp(v, axis=0)]) + 1e-9
    return np.maximum(np.concatenate([sigma_q, sigma_v]), floor)


def position_noise(q) -> np.ndarray:
    """Noise (3,) of q [m, m, rad] alone, by third differences: flight and rest vanish in them, impacts are outliers."""
    sigma = 1.4826 * np.median(np.abs(np.diff(q, n=3, axis=0)), axis=0) / np.sqrt(20.0)
    return np.maximum(sigma, 1e-5 * np.ptp(q, axis=0) + 1e-9)


def segment(problem: DropProblem, most: int) -> list[int]:
    """Steps of up to ``most`` impacts, in order: greedy change points of free flight, each worth its description
    length."""
    steps = np.arange(len(problem.q))
    candidates = np.arange(1, len(steps) - 2)
    price = 3.0 * np.log(6.0 * len(steps)) + 2.0 * np.log(len(steps))
    bases, misfits, columns = [], [], []
    g, h = gravity(problem.slope), problem.h
    since = np.maximum(steps[:, None] - candidates, 0)
    for axis in range(3):
        weight_q, weight_v = 1.0 / problem.sigma[axis], 1.0 / problem.sigma[3 + axis]
        flight = np.vstack([np.stack([np.ones(len(steps)), h * steps], axis=1) * weight_q,
                            np.stack([np.zeros(len(steps)), np.ones(len(steps))], axis=1) * weight_v])
        values = np.concatenate([(problem.q[:, axis] - h * h * g[axis] * steps * (steps + 1) / 2.0) * weight_q,
                                 (problem.v[:, axis] - h * g[axis] * steps) * weight_v])
        basis = np.linalg.qr(flight)[0]
        bases.append(basis)
        misfits.append(values - basis @ (basis.T @ values))
        jump = np.vstack([h * since * weight_q, (since > 0) * weight_v])
        columns.append(jump - basis @ (basis.T @ jump))
    ks: list[int] = []
    while len(ks) < most:
        norms = [np.maximum((c * c).sum(axis=0), 1e-9) for c in columns]
        gain = sum((r @ c)**2 / n for r, c, n in zip(misfits, columns, norms))
        gain[np.isin(candidates, ks)] = 0.0
        best = int(np.argmax(gain))
        if gain[best] < price:
            break
        ks = sorted([*ks, int(candidates[best])])
        for axis in range(3):
            unit = columns[axis][:, best] / np.sqrt(norms[axis][best])
            misfits[axis] = misfits[axis] - unit * (unit @ misfits[axis])
            columns[axis] = columns[axis] - np.outer(unit, unit @ columns[axis])
    return ks
