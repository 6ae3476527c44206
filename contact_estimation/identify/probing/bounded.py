"""Bounded parameters: the Johnson S_B reparameterisation of stiffness and friction (paper 4, section III-A, eq. 10-11).

A parameter x in (lower, upper) is carried as the free coordinate s = ln((x - lower) / (upper - x)), which is Gaussian
when x has a Johnson distribution. Every estimate of s is therefore a physical x. The paper prints the density
without the square in the exponent and without the factor (upper - lower) of the change of variables. Nothing here needs
it: moments and intervals are taken in s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit

from contact_estimation.exceptions import IdentificationError

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class Bounds:
    """Open interval of a physical parameter.

    Attributes:
        lower: lower end, in the parameter's SI unit.
        upper: upper end.
    """

    lower: float
    upper: float

    def to_bounded(self, s: Any) -> Any:
        """Return x of the free coordinate ``s``: a number for a number, an array for an array."""
        return self.lower + (self.upper - self.lower) * expit(s)

    @staticmethod
    def share(s: ca.SX) -> ca.SX:
        """Return the expression of (x - lower) / (upper - lower)."""
        return 1.0 / (1.0 + ca.exp(-s))

    def to_free(self, x: Any) -> Any:
        """Return the free coordinate of ``x``: a number for a number, an array for an array.

        Raises:
            IdentificationError: a value lies outside the open interval.
        """
        x = np.asarray(x, dtype=float)
        if np.any(x <= self.lower) or np.any(x >= self.upper):
            raise IdentificationError(
                f"a bounded parameter was given as {x}, expected values strictly between "
                f"{self.lower} and {self.upper}; widen the bounds or correct the value"
            )
        return np.log((x - self.lower) / (self.upper - x))

    def slope(self, s: Any) -> Any:
        """Return dx/ds at the free coordinate ``s``."""
        share = expit(s)
        return (self.upper - self.lower) * share * (1.0 - share)

    def moments(self, gamma: float, sigma: float) -> tuple[float, float]:
        """Return mean and standard deviation of x for s ~ N(gamma, sigma^2), by 41-point Gauss-Hermite quadrature."""
        x = self.to_bounded(gamma + sigma * _NODES)
        mean = float(_WEIGHTS @ x)
        return mean, float(np.sqrt(max(_WEIGHTS @ (x - mean) ** 2, 0.0)))

    def interval(self, gamma: float, sigma: float, sigmas: float = 2.0) -> tuple[float, float]:
        """Return the ends of the interval of x that the free interval gamma -+ ``sigmas`` sigma maps to."""
        return self.to_bounded(gamma - sigmas * sigma), self.to_bounded(gamma + sigmas * sigma)

    def fit(self, mean: float, std: float) -> tuple[float, float]:
        """Find (gamma, sigma) whose x has the given mean and standard deviation: the least informative start.

        Raises:
            IdentificationError: no distribution of this family on the interval has these moments.
        """
        width = self.upper - self.lower
        centre = (mean - self.lower) / width
        if not 0.0 < centre < 1.0 or not 0.0 < std < width * np.sqrt(centre * (1.0 - centre)):
            raise IdentificationError(
                f"mean {mean} and standard deviation {std} do not fit between {self.lower} and "
                f"{self.upper}; lower the standard deviation or widen the bounds"
            )

        def residual(v: np.ndarray) -> list[float]:
            got = self.moments(v[0], np.exp(v[1]))
            return [(got[0] - mean) / std, (got[1] - std) / std]

        start = [np.log(centre / (1.0 - centre)), np.log(std / (width * centre * (1.0 - centre)))]
        found = least_squares(residual, start, xtol=1e-12, ftol=1e-12)
        if np.max(np.abs(found.fun)) > 1e-3:
            raise IdentificationError(
                f"mean {mean} and standard deviation {std} are too wide for a Johnson distribution "
                f"on ({self.lower}, {self.upper}); lower the standard deviation"
            )
        return float(found.x[0]), float(np.exp(found.x[1]))
