"""Fit a whole drop by time stepping (paper 5, eq. 8): first state, m/I and one restitution; modes follow from them.

A search explains the first impacts only. The later ones, down to rest, are sensitive to m/I: each bounce magnifies what
an earlier one left open. From the estimate of the first impacts, Levenberg-Marquardt steps the drop to its end. The
result counts where it explains every sample as well as noise allows; modes that differ anywhere would not.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.drop_model import DropProblem
from contact_estimation.identify.planar.levenberg_marquardt import Search, minimise
from contact_estimation.identify.planar.shapes import ratio_bounds
from contact_estimation.identify.planar.stepping import FallingBody, simulate

_DIFFERENCE = 1e-6  # of the derivatives, in units of the unknowns
_SEARCH = Search(tolerance=0.1, iterations=30)
_MISFIT = 5.0  # standard deviations of chi-square beyond which a drop is not explained


class WholeDrop(NamedTuple):
    """Fit of a whole drop.

    Attributes:
        m_over_i: m/I [1/m^2].
        std: its standard deviation.
    """

    m_over_i: float
    std: float


def fit_whole_drop(problem: DropProblem, q: Array, v: Array, m_over_i: float, restitution: float) -> WholeDrop | None:
    """Fit every sample of a drop.

    Args:
        problem: recorded states and their noise.
        q: first configuration (3,).
        v: first velocity (3,).
        m_over_i: first m/I [1/m^2].
        restitution: first coefficient of Newton's.

    Returns:
        The fit; None where it does not explain the recording.
    """
    low, high = ratio_bounds(problem.shape)
    bounds = np.array([*[-np.inf] * 6, low, 0.0]), np.array([*[np.inf] * 6, high, 1.0])
    found = minimise(lambda u: _SteppedDrop(problem, u), np.array([*q, *v, m_over_i, restitution]), bounds, _SEARCH)
    count = int(np.isfinite(problem.sigma).sum()) * len(problem.q)
    jacobian = found.model.jacobian
    if not found.cost < count + _MISFIT * np.sqrt(2.0 * count) or not np.isfinite(jacobian).all():
        return None
    return WholeDrop(float(found.u[6]), float(np.sqrt(np.linalg.pinv(jacobian.T @ jacobian)[6, 6])))


class _SteppedDrop:
    """A drop by time stepping.

    Args:
        problem: recorded states and their noise.
        u: first state (6,), m/I [1/m^2] and restitution.
    """

    def __init__(self, problem: DropProblem, u: Array) -> None:
        self._problem, self._u = problem, u
        self.residual = self._residual(u)

    @cached_property
    def jacobian(self) -> Array:
        """Derivative of the residuals (6 N, 8), by differences."""
        shifted = [self._residual(self._u + step) for step in _DIFFERENCE * np.eye(self._u.size)]
        return np.stack([(each - self.residual) / _DIFFERENCE for each in shifted], axis=-1)

    def _residual(self, u: Array) -> Array:
        """Return q and v less the recorded ones over the noise (6 N,); infinite where a step has no solution."""
        problem = self._problem
        body = FallingBody(problem.shape, float(u[6]), 1.0, problem.friction, float(u[7]), problem.slope)
        try:
            run = simulate(body, u[:3], u[3:6], problem.h, len(problem.q) - 1)
        except IdentificationError:
            return np.full(problem.q.size * 2, np.inf)
        return np.asarray((np.hstack([run.q - problem.q, run.v - problem.v]) / problem.sigma).ravel())
