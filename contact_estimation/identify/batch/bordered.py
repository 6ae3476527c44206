"""Newton steps for a bordered (arrowhead) Hessian: a band for the trajectory, a border for the parameters.

    [ A  B ] [dq]     [g]        A: block-banded, three blocks of nv wide (a time touches only its neighbours)
    [ B' C ] [dp] = - [c]        B, C: every parameter touches every time

A is factorised by a banded Cholesky (linear in the number of times), the parameters by their Schur complement
S = C - B' A^-1 B, in which bounds on dp are kept exactly (a small bounded least-squares problem).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array


class BorderedSystem(NamedTuple):
    """Gradient and Gauss-Newton Hessian of a cost."""

    band: Array  # (n nv, 3 nv) lower band, band[j, d] = A[j + d, j] (LAPACK's layout transposed: contiguous writes)
    border: Array  # B (n nv, c)
    corner: Array  # C (c, c)
    gradient_q: Array  # (n nv,)
    gradient_p: Array  # (c,)


def assemble(jacobian_q: Array, jacobian_p: Array, slope: Array, curvature: Array) -> BorderedSystem:
    """Sum the per-time blocks.

    Args:
        jacobian_q: (n, m, 3 nv) residuals of time i by q_i-1, q_i, q_i+1 (the outer blocks of the first and last time
            that point outside must be zero or belong to zero-weight residuals).
        jacobian_p: (n, m, c).
        slope: weighted f' of each residual (n, m).
        curvature: weighted f'' of each residual (n, m).
    """
    n, _m, width = jacobian_q.shape
    nv, c = width // 3, jacobian_p.shape[2]
    gram = (jacobian_q * curvature[:, :, None]).swapaxes(1, 2) @ jacobian_q
    gram = gram.reshape(n, 3, nv, 3, nv)
    blocks = np.zeros((3, n, nv, nv))  # blocks[k, i] = A at block row i + k, block column i
    blocks[0] += gram[:, 1, :, 1]
    blocks[0, :-1] += gram[1:, 0, :, 0]
    blocks[0, 1:] += gram[:-1, 2, :, 2]
    blocks[1, :-1] += gram[:-1, 2, :, 1] + gram[1:, 1, :, 0]
    blocks[2, :-2] += gram[1:-1, 2, :, 0]
    del gram
    band = np.zeros((n, nv, 3 * nv))
    for column in range(nv):
        band[:, column, : nv - column] = blocks[0, :, column:, column]
        band[:, column, nv - column : 2 * nv - column] = blocks[1, :, :, column]
        band[:, column, 2 * nv - column : 3 * nv - column] = blocks[2, :, :, column]
    both = np.concatenate([jacobian_p * curvature[:, :, None], slope[:, :, None]], axis=2)
    spread = (jacobian_q.swapaxes(1, 2) @ both).reshape(n, 3, nv, c + 1)
    sides = spread[:, 1].copy()
    sides[:-1] += spread[1:, 0]
    sides[1:] += spread[:-1, 2]
    border = sides.reshape(n * nv, c + 1)
    corner = np.einsum("imc,imd->cd", jacobian_p, both)
    gradients = border[:, c].copy(), corner[:, c].copy()
    return BorderedSystem(band.reshape(n * nv, 3 * nv), border[:, :c], corner[:, :c], *gradients)


class Factorisation:
    """Cholesky factor of the band and Schur complement of the parameters, for one damping.

    Args:
        system: what is factorised.
        damping_q: added to the diagonal of A.
        damping_p: added to the diagonal of C.

    Attributes:
        schur: S (c, c).
        gradient: of the parameters with the trajectory eliminated (c,).

    Raises:
        IdentificationError: the damped band is not positive definite.
    """

    def __init__(self, system: BorderedSystem, damping_q: float, damping_p: float) -> None:
        band = system.band.copy()
        band[:, 0] += damping_q
        try:
            self._factor = scipy.linalg.cholesky_banded(band.T, overwrite_ab=True, lower=True, check_finite=False)
        except np.linalg.LinAlgError as error:
            raise IdentificationError(
                "the trajectory Hessian is not positive definite: some coordinate is seen by no sensor"
                " and no dynamics term, or damping is too small; where every channel has a gap, take the part of the"
                " recording before or after it (--window START END)"
            ) from error
        right = np.column_stack([system.border, system.gradient_q])
        solved: Array = scipy.linalg.cho_solve_banded((self._factor, True), right, check_finite=False)
        self._response, self._newton = solved[:, :-1], solved[:, -1]
        schur = system.corner + damping_p * np.eye(len(system.corner)) - system.border.T @ self._response
        self.schur = 0.5 * (schur + schur.T)
        self.gradient = system.gradient_p - system.border.T @ self._newton

    def step(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Minimiser (dq (n nv,), dp (c,)) of the damped quadratic model with lower <= dp <= upper."""
        dp = bounded_newton(self.schur, self.gradient, lower, upper)
        return -self._newton - self._response @ dp, dp


def bounded_newton(hessian: Array, gradient: Array, lower: Array, upper: Array) -> Array:
    """Return the minimiser x (c,) of g'x + x'Hx/2 inside a box.

    Args:
        hessian: H (c, c), positive semidefinite.
        gradient: g (c,).
        lower: (c,) bound of x.
        upper: (c,) bound of x.
    """
    if not len(gradient):
        return np.zeros(0)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    values, vectors = np.linalg.eigh(hessian * scale * scale[:, None])
    values = np.maximum(values, 1e-12 * values[-1])
    root = np.sqrt(values)[:, None] * vectors.T
    target = -(vectors.T @ (scale * gradient)) / np.sqrt(values)
    fit = scipy.optimize.lsq_linear(root, target, bounds=(lower / scale, upper / scale), method="bvls", tol=1e-12)
    return np.asarray(fit.x * scale)
