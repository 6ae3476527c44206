"""Change-point detection of the bounces of a noisy drop, and its noise, without a model of the body."""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.drop_model import DropProblem

_ROBUST = 1.4826  # standard deviation of a Gaussian over its median absolute value


def noise_levels(q: Array, v: Array, h: float) -> Array:
    """Noise (6,) of q [m, m, rad] and v by robust differences; impacts are outliers to them.

    Second differences of v vanish in free flight and where the body has come to rest, with or without gravity.
    """
    sigma_v = _ROBUST * np.median(np.abs(np.diff(v, n=2, axis=0)), axis=0) / np.sqrt(6.0)
    dq = np.diff(q, axis=0) - h * v[1:]
    sigma_q = np.sqrt(np.maximum((_ROBUST * np.median(np.abs(dq), axis=0)) ** 2 - (h * sigma_v) ** 2, 0.0) / 2.0)
    floor = 1e-5 * np.concatenate([np.ptp(q, axis=0), np.ptp(v, axis=0)]) + 1e-9
    return np.asarray(np.maximum(np.concatenate([sigma_q, sigma_v]), floor))


def position_noise(q: Array) -> Array:
    """Noise (3,) of q [m, m, rad] alone, by third differences: flight and rest vanish in them, impacts are outliers."""
    sigma = _ROBUST * np.median(np.abs(np.diff(q, n=3, axis=0)), axis=0) / np.sqrt(20.0)
    return np.asarray(np.maximum(sigma, 1e-5 * np.ptp(q, axis=0) + 1e-9))


def segment(problem: DropProblem, most: int) -> list[int]:
    """Return the steps of up to ``most`` impacts, in order.

    They are greedy change points of free flight. Each must lower the misfit by more than its description length: three
    jumps and a step index.
    """
    count = len(problem.q)
    candidates = np.arange(1, count - 2)
    price = 3.0 * np.log(6.0 * count) + 2.0 * np.log(count)
    misfits, columns = [], []
    for axis in range(3):
        rows, values = problem.weighted_rows(candidates, axis)
        flight, jump = rows[:, :2], rows[:, 2:]
        basis = np.linalg.qr(flight)[0]
        misfits.append(values - basis @ (basis.T @ values))
        columns.append(jump - basis @ (basis.T @ jump))
    ks: list[int] = []
    while len(ks) < most:
        norms = [np.maximum((c * c).sum(axis=0), 1e-9) for c in columns]
        gain = np.sum([(r @ c) ** 2 / n for r, c, n in zip(misfits, columns, norms)], axis=0)
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
