"""First-order generalised pseudo-Bayesian merge and the predicted mode probability (paper 4, eq. 22-24)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr


def merge(weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge a Gaussian mixture, eq. 22-23.

    Args:
        weights: (m,), which sum to one.
        means: (m, n).
        covariances: (m, n, n).

    Returns:
        mean (n,) and covariance (n, n).
    """
    mean = np.einsum("i,ij->j", weights, means)
    spread = means - mean
    return mean, np.einsum("i,ijk->jk", weights, covariances) + (spread.T * weights) @ spread


def posterior(prior: np.ndarray, log_likelihoods: np.ndarray) -> np.ndarray:
    """Return the mode probabilities (m,) after the measurement, eq. 24; ``prior`` (m,) are the predicted ones."""
    with np.errstate(divide="ignore"):
        score = np.log(prior) + log_likelihoods
    score = np.exp(score - np.max(score))
    return np.asarray(score / score.sum())


def closed_probability(mean: float, std: float) -> float:
    """Return P(v > 0) of a Gaussian v: the closed form of the sampled probability."""
    if std <= 0.0:
        return float(mean > 0.0)
    return float(ndtr(mean / std))


def sampled_probabilities(velocities: np.ndarray, modes: Sequence[Sequence[float]]) -> np.ndarray:
    """Count the share of samples in each mode, with the boundary 0 where the paper prints v_t > 1.

    Args:
        velocities: samples (contacts, N) [m/s].
        modes: signs (contacts,) of each mode.

    Returns:
        the shares (modes,).
    """
    positive = velocities > 0.0
    return np.array([np.mean(np.all(positive == (np.array(mode)[:, None] > 0.0), axis=0)) for mode in modes])
