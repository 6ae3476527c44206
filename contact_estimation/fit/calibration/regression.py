"""Robust linear least squares with autocorrelated errors.

Torque residuals are coloured, because unmodelled friction lasts for seconds. White-noise formulas would give intervals
several times too narrow. Here the covariance is the sandwich H^-1 S H^-1 with S from the residuals' own autocorrelation
(Newey and West 1987).
"""

from __future__ import annotations

import numpy as np


def integrated_time(residual: np.ndarray, maximum: int | None = None) -> float:
    """Return the integrated autocorrelation time [samples], at least 1: how many carry the information of one.

    The sum of the autocorrelation is cut where the lag exceeds five times it (Sokal's window).

    Args:
        residual: (N,).
        maximum: largest lag [samples]; None: a quarter of N.
    """
    x = np.asarray(residual, float) - np.mean(residual)
    n = len(x)
    spectrum = np.abs(np.fft.rfft(x, 2 * n)) ** 2
    correlation = np.fft.irfft(spectrum)[:n]
    if not correlation[0] > 0:
        return 1.0
    correlation = correlation / correlation[0]
    total = 1.0
    for lag in range(1, maximum or n // 4):
        total += 2 * correlation[lag]
        if lag > 5 * total:
            break
    return float(max(total, 1.0))


def huber_weights(residual: np.ndarray, scale: np.ndarray, threshold: float) -> np.ndarray:
    """Return weights in (0, 1]: 1 inside ``threshold``, falling outside.

    Args:
        residual: (..., n).
        scale: (n,) standard deviations.
        threshold: in standard deviations.
    """
    size = np.abs(residual) / scale
    return np.where(size <= threshold, 1.0, threshold / np.maximum(size, threshold))


def robust_scale(residual: np.ndarray) -> np.ndarray:
    """Return the standard deviation (n,) per column from the median absolute deviation.

    Args:
        residual: (N, n).
    """
    return np.asarray(1.4826 * np.median(np.abs(residual - np.median(residual, axis=0)), axis=0) + 1e-12)


def long_run_covariance(scores: list[np.ndarray], lags: int) -> np.ndarray:
    """Return the covariance (P, P) of the sum of scores of several independent stretches.

    Args:
        scores: (T_k, P) per stretch.
        lags: Bartlett weights reach this far.
    """
    size = scores[0].shape[1]
    total = np.zeros((size, size))
    for u in scores:
        total += u.T @ u
        for lag in range(1, min(lags, len(u) - 1) + 1):
            cross = u[lag:].T @ u[:-lag]
            total += (1 - lag / (lags + 1)) * (cross + cross.T)
    return total


def fixed_bandwidth_factor(lags: int, samples: int) -> float:
    """Return how much wider 95 % intervals are, because the covariance of a coloured residual is itself an estimate.

    The window of :func:`long_run_covariance` covers the share b = lags / samples of the data. Its 97.5 % quantile is
    1.96 + 2.9694 b + 0.4160 b^2 - 0.5324 b^3 (Kiefer and Vogelsang 2005, table 1) instead of the normal's 1.96.

    Args:
        lags: of the Bartlett window.
        samples: of all stretches together.
    """
    b = min(lags / samples, 1.0)
    return float(np.polyval([-0.5324, 0.4160, 2.9694, 1.96], b) / 1.96)


def condition_number(columns: np.ndarray) -> float:
    """Condition number of columns (T, c) scaled to length one; infinite where one is zero."""
    length = np.linalg.norm(columns, axis=0)
    if not (length > 0).all():
        return float("inf")
    values = np.linalg.svd(columns / length, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0 else float("inf")
