"""First-order generalised pseudo-Bayesian merge and the predicted mode probability (paper 4, eq. 22-24)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


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
    return mixture(prior, log_likelihoods)[0]


def mixture(prior: np.ndarray, log_likelihoods: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the mode probabilities (m,) after the measurement, eq. 24, and its log-likelihood.

    Args:
        prior: predicted probabilities (m,).
        log_likelihoods: of the measurement in each mode (m,).
    """
    scores = [math.log(p) + own if p > 0.0 else -math.inf for p, own in zip(prior.tolist(), log_likelihoods.tolist())]
    best = max(scores)  # plain numbers: far faster than short arrays
    weights = [math.exp(score - best) for score in scores]
    total = sum(weights)
    return np.array([weight / total for weight in weights]), best + math.log(total)


def mode_probabilities(slip: np.ndarray, std: np.ndarray, modes: Sequence[Sequence[float]]) -> np.ndarray:
    """Return the predicted probabilities (modes,) of the signs of sliding: normal tails, a product over the contacts.

    Args:
        slip: predicted slip (contacts,) [m/s].
        std: its standard deviations (contacts,).
        modes: signs (contacts,) of each mode.
    """
    turns = [(slip / max(std, 1e-300)) / math.sqrt(2.0) for slip, std in zip(slip.tolist(), std.tolist())]
    # Plain numbers: far faster than short arrays. The normal distribution's tail is erfc(x / sqrt(2)) / 2.
    return np.array([math.prod(0.5 * math.erfc(-sign * turn) for sign, turn in zip(mode, turns)) for mode in modes])
