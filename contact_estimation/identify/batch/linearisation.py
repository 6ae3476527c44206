"""A problem's residuals as affine functions of a step, and how well they foretold where the step led."""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.batch import arrow, norms


class Linearisation:
    """Residuals (n, m) with derivatives by q_i-1, q_i, q_i+1 (n, m, 3 nv) and by the parameters (n, m, c).

    Attributes:
        cost: at the point. arrow: gradient and Gauss-Newton Hessian there. free_q, free_p: what has columns.
    """

    def __init__(self, problem, p: np.ndarray, residuals: np.ndarray, by_q: np.ndarray, by_p: np.ndarray, free_q: bool,
                 free_p: bool):
        self._problem, self.free_q, self.free_p = problem, free_q, free_p
        self.residuals, self._by_q, self._by_p = residuals, by_q, by_p
        self._assemble(p)

    def move(self, p: np.ndarray, residuals: np.ndarray, times: np.ndarray, by_q: np.ndarray, by_p: np.ndarray) -> None:
        """Take the residuals of another point and the derivatives there of some times; other times keep theirs."""
        self.residuals = residuals
        self._by_q[times], self._by_p[times] = by_q, by_p
        self._assemble(p)

    def mismatch(self, residuals: np.ndarray, dq: np.ndarray, dp: np.ndarray) -> np.ndarray:
        """How far ``residuals`` (n, m) are from what a step (dq (n, nv), dp (c,)) promised, per time (n,), as a
        chi-square."""
        n, m, width = self._by_q.shape
        nv = width // 3
        around = np.zeros((n, 3, nv))
        around[1:, 0], around[:, 1], around[:-1, 2] = dq[:-1], dq, dq[1:]
        promised = self.residuals + (self._by_q @ around.reshape(n, width, 1))[:, :, 0]
        if self.free_p:
            promised += self._by_p @ dp
        return np.sum(self._problem.weights * (residuals - promised)**2, axis=1)

    def _assemble(self, p):
        problem = self._problem
        f, slope, curvature = norms.evaluate(self.residuals, problem.scales)
        prior, inverse = problem.prior(p)
        self.cost = float(np.sum(problem.weights * f) + np.sum(prior**2))
        self.arrow = arrow.assemble(self._by_q, self._by_p, problem.weights * slope, problem.weights * curvature)
        if self.free_p:
            self.arrow.corner[np.diag_indices(len(p))] += 2.0 * inverse**2
            self.arrow.gradient_p += 2.0 * inverse * prior
