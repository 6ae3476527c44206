"""The normal distribution of mean zero: its density, and deviations in standard deviations."""

from __future__ import annotations

import numpy as np


class CentredNormal:
    """Normal distribution of mean zero.

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
