"""The Gaussian distribution of mean zero: its density, deviations in standard deviations, and its tail."""

from __future__ import annotations

import math

import numpy as np


def gaussian_survival(z: float) -> float:
    """Return the probability that a standard Gaussian variable exceeds ``z``."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


class ZeroMeanGaussian:
    """Gaussian distribution of mean zero.

    Args:
        covariance: (n, n), positive definite.

    Raises:
        numpy.linalg.LinAlgError: it is not.
    """

    def __init__(self, covariance: np.ndarray) -> None:
        self._factor = np.linalg.cholesky(covariance)

    def whiten(self, deviation: np.ndarray) -> np.ndarray:
        """Return deviations (n,) or (n, k) in units in which their covariance is the identity."""
        return np.linalg.solve(self._factor, deviation)

    def square(self, deviation: np.ndarray) -> float:
        """Return the squared Mahalanobis distance of a deviation (n,)."""
        whitened = self.whiten(deviation)
        return float(whitened @ whitened)

    def log_density(self, deviation: np.ndarray) -> float:
        """Return the logarithm of the density at a deviation (n,), but for the constant -n/2 ln(2 pi)."""
        return -0.5 * self.square(deviation) - float(np.log(np.diagonal(self._factor)).sum())
