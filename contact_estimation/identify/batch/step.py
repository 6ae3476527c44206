"""A damped Newton step inside the parameters' bounds, and the points along it."""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.batch import line_search
from contact_estimation.identify.batch.arrow import Factorisation, bounded_newton


class NewtonStep:
    """The step from (q, p) that a linearisation there asks for.

    Attributes:
        slope: the cost's directional derivative along it.
    """

    def __init__(self, problem, q: np.ndarray, p: np.ndarray, here, damping: float, options):
        self._problem, self._q, self._p, self._free_q = problem, q, p, here.free_q
        self._dq, dp = _direction(here, damping, p, problem.scene.parameters, options)
        self.slope = float(here.arrow.gradient_q @ self._dq) + float(here.arrow.gradient_p @ dp)
        self._dp = dp if here.free_p else np.zeros(len(p))

    def point(self, length: float) -> tuple[np.ndarray, np.ndarray]:
        """(q, p) at a step length in (0, 1]."""
        parameters = self._problem.scene.parameters
        moved = length * self._dq.reshape(len(self._q), -1)
        q = self._problem.coordinates.add(self._q, moved) if self._free_q else self._q
        return q, np.clip(self._p + length * self._dp, parameters.lower, parameters.upper)

    def search(self, cost: float) -> line_search.Step | None:
        """Line search from ``cost``, the cost at (q, p)."""
        return line_search.search(lambda length: self._problem.cost(*self.point(length)), cost, self.slope)


def _direction(here, damping, p, parameters, options):
    """(dq (n nv,), dp (c,)) inside the bounds and the parameters' largest steps."""
    arrow = here.arrow
    if here.free_p:
        lower = np.minimum(np.maximum(parameters.lower - p, -options.parameter_step), -1e-12)
        upper = np.maximum(np.minimum(parameters.upper - p, options.parameter_step), 1e-12)
    else:
        lower = upper = np.zeros(0)
    if not here.free_q:
        hessian = arrow.corner + damping * np.eye(len(arrow.corner))
        return np.zeros(len(arrow.gradient_q)), bounded_newton(hessian, arrow.gradient_p, lower, upper)
    return Factorisation(arrow, damping, damping).step(lower, upper)
