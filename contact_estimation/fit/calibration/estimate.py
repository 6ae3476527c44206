"""Robust Gauss-Newton on the torque model, colour-aware weights and covariance.

Every residual is weighted by 1 / (variance x autocorrelation time), so that the weak priors (scale near 1, armature
near the description, ...) count as what they are; then iteratively reweighted for outliers (Huber).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.fit.calibration.model import LENGTHS, Design, Layout, evaluate
from contact_estimation.fit.calibration.regression import (
    fixed_bandwidth_factor,
    huber_weights,
    integrated_time,
    long_run_covariance,
    robust_scale,
)

_ITERATIONS = 12
_MAX_TIME = 5.0  # [s] longest autocorrelation time looked for
_LAGS = 5.0  # window of the residuals' colour [longest autocorrelation time]


class Prior(NamedTuple):
    """What is known before the recordings.

    Attributes:
        mean: (P,) in the order of the layout.
        std: (P,) standard deviations; zero keeps a parameter at its mean.
    """

    mean: np.ndarray
    std: np.ndarray


class Estimate(NamedTuple):
    """Parameters, and what the recordings leave.

    Attributes:
        theta: (P,) parameters.
        covariance: (P, P), zero where a parameter is kept.
        hessian: (P, P) of the weighted squares and the prior.
        residual: per recording (T, n) [measured Nm].
        scale: (n,) robust standard deviation of the residuals [measured Nm].
        time: (n,) their autocorrelation time [samples].
    """

    theta: np.ndarray
    covariance: np.ndarray
    hessian: np.ndarray
    residual: list[np.ndarray]
    scale: np.ndarray
    time: np.ndarray


def estimate(layout: Layout, designs: list[Design], prior: Prior, start: np.ndarray, outlier: float) -> Estimate:
    """Minimise the weighted squares of the residuals and of the distance from the prior.

    Args:
        layout: of the parameters.
        designs: of the recordings.
        prior: of the parameters.
        start: (P,) parameters to start from.
        outlier: Huber's threshold [standard deviations].
    """
    free, theta = prior.std > 0, start.copy()
    precision = np.zeros(layout.size)
    precision[free] = 1 / prior.std[free] ** 2
    tau = [d.motion.tau for d in designs]
    rate = designs[0].motion.rate
    for _ in range(_ITERATIONS):
        parts = [evaluate(layout, theta, d) for d in designs]
        residual = [t - p for t, (p, _) in zip(tau, parts)]
        scale = robust_scale(np.concatenate(residual))
        time = np.max([correlation_times(r, rate) for r in residual], axis=0)
        weight = [huber_weights(r, scale, outlier) / (scale**2 * time) for r in residual]
        hessian, gradient = np.diag(precision), precision * (prior.mean - theta)
        for (_, jacobian), r, w in zip(parts, residual, weight):
            rows = (jacobian * w[:, :, None]).reshape(-1, layout.size)
            hessian += rows.T @ jacobian.reshape(-1, layout.size)
            gradient += rows.T @ r.ravel()
        step = np.zeros(layout.size)
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        lengths = layout["log_presliding"]
        step[lengths] = np.clip(step[lengths], -0.5, 0.5)
        theta = theta + step
        theta[lengths] = np.clip(theta[lengths], np.log(LENGTHS[0]), np.log(LENGTHS[-1]))
    scores = [np.einsum("tjp,tj->tp", jacobian, w * r)[:, free] for (_, jacobian), r, w in zip(parts, residual, weight)]
    bread = np.linalg.inv(hessian[np.ix_(free, free)])
    middle = score_covariance(scores, time) + np.diag(precision[free])
    covariance = np.zeros((layout.size, layout.size))
    covariance[np.ix_(free, free)] = bread @ middle @ bread
    return Estimate(theta, covariance, hessian, residual, scale, time)


def correlation_times(residual: np.ndarray, rate: float) -> np.ndarray:
    """Return the autocorrelation time (n,) of residuals (T, n) [samples].

    Args:
        residual: of one recording.
        rate: of its samples [Hz].
    """
    return np.array([integrated_time(column, int(_MAX_TIME * rate)) for column in residual.T])


def score_covariance(scores: list[np.ndarray], time: np.ndarray, fitted: int | None = None) -> np.ndarray:
    """Return the covariance (p, p) of the sum of scores (T, p) of coloured residuals, for short recordings, too.

    Of N residuals that are independent of each other the fit takes up P. What is left varies less, and for a shorter
    time: either by (N - P) / N.

    Args:
        scores: of each recording.
        time: (n,) autocorrelation time of the residuals [samples].
        fitted: how many parameters P the fit has; None: one per score.
    """
    samples, fitted = sum(len(s) for s in scores), scores[0].shape[1] if fitted is None else fitted
    lags = int(np.ceil(_LAGS * time.max()))
    independent = float(np.sum(samples / time))
    left = max(independent - fitted, 1.0) / independent
    return np.asarray(long_run_covariance(scores, lags) * (fixed_bandwidth_factor(lags, samples) / left) ** 2)
