"""First-order generalised pseudo-Bayesian merge and the predicted mode probability (paper 4, eq. 22-24)."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr


def merge(weights, means, covariances):
    """Mean (n,) and covariance (n, n) of the Gaussian mixture, eq. 22-23.

    ``weights`` (m,) sum to one; ``means`` (m, n) and ``covariances`` (m, n, n).
    """
    mean = np.einsum("i,ij->j", weights, means)
    spread = means - mean
    return mean, np.einsum("i,ijk->jk", weights, covariances) + (spread.T * weights) @ spread


def posterior(prior, log_likelihoods):
    """Mode probabilities (m,) after the measurement, eq. 24; ``prior`` (m,) are the predicted ones."""
    with np.errstate(divide="ignore"):
        score = np.log(prior) + log_likelihoods
    score = np.exp(score - np.max(score))
    return score / score.sum()


def closed_probability(mean: float, std: float) -> float:
    """P(v > 0) of a Gaussian v: the closed form of the sampled probability."""
    if std <= 0.0:
        return float(mean > 0.0)
    return float(ndtr(mean / std))


def sampled_probabilities(velocities, modes):
    """Share of samples in each mode; ``velocities`` (contacts, N), ``modes`` sequences of signs (contacts,).

    The paper prints the condition v_t > 1; the boundary between the signs is 0.
    """
    positive = velocities > 0.0
    return np.array([np.mean(np.all(positive == (np.array(mode)[:, None] > 0.0), axis=0)) for mode in modes])
