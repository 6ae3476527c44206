"""A damped Newton step inside the parameters' bounds, and the points along it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch import line_search
from contact_estimation.identify.batch.bordered import Factorisation, bounded_newton
from contact_estimation.identify.batch.linearisation import Linearisation

if TYPE_CHECKING:
    from contact_estimation.identify.batch.problem import Problem

_ROOM = 1e-12  # width of a box whose start lies on its bound


class NewtonStep:
    """The step from (q, p) that a linearisation there asks for.

    Args:
        problem: whose cost is minimised.
        q: positions (n, nq).
        p: optimiser's parameters (c,).
        here: linearisation at (q, p).
        damping: mu, per unit^2 of both.
        longest: largest change of an optimiser's parameter.

    Attributes:
        slope: the cost's directional derivative along it.
    """

    def __init__(
        self, problem: Problem, q: Array, p: Array, here: Linearisation, damping: float, longest: float
    ) -> None:
        self._problem, self._q, self._p, self._free_q = problem, q, p, here.free_q
        system, parameters = here.system, problem.scene.parameters
        lower = upper = np.zeros(0)
        if here.free_p:
            lower = np.minimum(np.maximum(parameters.lower - p, -longest), -_ROOM)
            upper = np.maximum(np.minimum(parameters.upper - p, longest), _ROOM)
        if here.free_q:
            self._dq, dp = Factorisation(system, damping, damping).step(lower, upper)
        else:
            hessian = system.corner + damping * np.eye(len(system.corner))
            self._dq = np.zeros(len(system.gradient_q))
            dp = bounded_newton(hessian, system.gradient_p, lower, upper)
        self.slope = float(system.gradient_q @ self._dq) + float(system.gradient_p @ dp)
        self._dp = dp if here.free_p else np.zeros(len(p))

    def point(self, length: float) -> tuple[Array, Array]:
        """(q, p) at a step length in (0, 1]."""
        parameters = self._problem.scene.parameters
        moved = length * self._dq.reshape(len(self._q), -1)
        q = self._problem.coordinates.add(self._q, moved) if self._free_q else self._q
        return q, np.clip(self._p + length * self._dp, parameters.lower, parameters.upper)

    def search(self, cost: float) -> line_search.Step | None:
        """Line search from ``cost``, the cost at (q, p)."""
        return line_search.search(lambda length: self._problem.cost(*self.point(length)), cost, self.slope)
