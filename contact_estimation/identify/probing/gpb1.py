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


def mode_probabilities(slip: np.ndarray, std: np.ndarray, modes: Sequence[Sequence[float]]) -> np.ndarray:
    """Return the predicted probabilities (modes,) of the signs of sliding: normal tails, a product over the contacts.

    Args:
        slip: predicted slip (contacts,) [m/s].
        std: its standard deviations (contacts,).
        modes: signs (contacts,) of each mode.
    """
    positive = ndtr(slip / np.maximum(std, 1e-300))
    return np.array([np.prod(np.where(np.array(mode) > 0.0, positive, 1.0 - positive)) for mode in modes])
