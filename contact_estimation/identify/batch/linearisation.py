"""A problem's residuals as affine functions of a step, and a comparison of prediction and result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.batch import bordered, norms

if TYPE_CHECKING:
    from contact_estimation.identify.batch.problem import Problem


class Linearisation:
    """Residuals with their derivatives at one point.

    Args:
        problem: whose residuals they are.
        p: the point's parameters (c,).
        residuals: (n, m).
        by_q: derivatives by q_i-1, q_i, q_i+1 (n, m, 3 nv); None where the trajectory is held.
        by_p: derivatives by the parameters (n, m, c); None where they are held.

    Attributes:
        cost: at the point.
        system: gradient and Gauss-Newton Hessian there.
    """

    def __init__(self, problem: Problem, p: Array, residuals: Array, by_q: Array | None, by_p: Array | None) -> None:
        self._problem, self.free_q, self.free_p = problem, by_q is not None, by_p is not None
        self.residuals = residuals
        self._by_q = np.zeros((*residuals.shape, 3 * problem.coordinates.nv)) if by_q is None else by_q
        self._by_p = np.zeros((*residuals.shape, 0)) if by_p is None else by_p
        self._assemble(p)

    def move(self, p: Array, residuals: Array, times: Indices, by_q: Array, by_p: Array | None) -> None:
        """Take the residuals of another point and the derivatives there of some times; other times keep theirs."""
        self.residuals = residuals
        self._by_q[times] = by_q
        if by_p is not None:
            self._by_p[times] = by_p
        self._assemble(p)

    def mismatch(self, residuals: Array, dq: Array, dp: Array) -> Array:
        """How far ``residuals`` (n, m) are from what a step promised, per time (n,), as a chi-square.

        Args:
            residuals: after the step (n, m).
            dq: step of the trajectory (n, nv).
            dp: step of the parameters (c,).
        """
        n, _m, width = self._by_q.shape
        around = np.zeros((n, 3, width // 3))
        around[1:, 0], around[:, 1], around[:-1, 2] = dq[:-1], dq, dq[1:]
        promised = self.residuals + (self._by_q @ around.reshape(n, width, 1))[:, :, 0]
        if self.free_p:
            promised += self._by_p @ dp
        return np.asarray(np.sum(self._problem.weights * (residuals - promised) ** 2, axis=1))

    def bordered_by(self, columns: Array) -> bordered.BorderedSystem:
        """Return the system with further columns (n, m, e) beside the parameters'; both must be free."""
        problem, c = self._problem, self._by_p.shape[2]
        _, slope, curvature = norms.evaluate(self.residuals, problem.scales, problem.limits)
        by_p = np.concatenate([self._by_p, columns], axis=2)
        system = bordered.assemble(self._by_q, by_p, problem.weights * slope, problem.weights * curvature)
        system.corner[:c, :c], system.gradient_p[:c] = self.system.corner, self.system.gradient_p  # with the prior
        return system

    def _assemble(self, p: Array) -> None:
        problem = self._problem
        f, slope, curvature = norms.evaluate(self.residuals, problem.scales, problem.limits)
        prior, inverse = problem.prior(p)
        self.cost = float(np.sum(problem.weights * f) + np.sum(prior**2))
        self.system = bordered.assemble(self._by_q, self._by_p, problem.weights * slope, problem.weights * curvature)
        if self.free_p:
            self.system.corner[np.diag_indices(len(p))] += 2.0 * inverse**2
            np.add(self.system.gradient_p, 2.0 * inverse * prior, out=self.system.gradient_p)
