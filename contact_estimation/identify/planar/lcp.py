"""Linear complementarity problem 0 <= z, M z + q >= 0, z (M z + q) = 0 by Lemke's pivoting (paper 5, eq. 1).

Complementary pivoting with a covering vector of ones and the lexicographic ratio test, which cannot cycle. Contact
problems with friction (eq. 8) have copositive matrices, for which Lemke's method ends in a solution. Rounding may still
spoil it, so ``solved`` is checked against the three conditions themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.exceptions import shape_error
from contact_estimation.identify.arrays import Array, Indices

_SOLVED = 1e-7  # largest violation of a condition, of the size of q (and of z where it multiplies)
_TIE = 1e-12  # ratios this close are a tie: the right side is scaled to 1, so this is some rounding errors of it


class LcpSolution(NamedTuple):
    """Solution of a linear complementarity problem."""

    z: Array  # unknowns (n,)
    w: Array  # M z + q (n,)
    solved: bool  # False after a ray termination, too many pivots, or where rounding has spoilt the conditions

    @property
    def error(self) -> float:
        """Largest violation of z >= 0, w >= 0 and z w = 0."""
        return float(max(np.max(part, initial=0.0) for part in (-self.z, -self.w, np.abs(self.z * self.w))))


def solve_lcp(
    matrix: ArrayLike, vector: ArrayLike, tolerance: float = 1e-10, max_pivots: int | None = None
) -> LcpSolution:
    """Solve a linear complementarity problem; the result is deterministic.

    Args:
        matrix: M (n, n).
        vector: q (n,).
        tolerance: smallest element to pivot on.
        max_pivots: limit, 50 n where None.

    Raises:
        ConfigError: the shapes do not fit together.
    """
    matrix, vector = np.asarray(matrix, float), np.asarray(vector, float)
    n = len(vector)
    if vector.ndim != 1 or matrix.shape != (n, n):
        raise shape_error("solve_lcp", "matrix", matrix.shape, (n, n))
    if n == 0 or vector.min() >= 0.0:
        return LcpSolution(np.zeros(n), vector.copy(), True)
    # Columns: w (n), z (n), covering variable z0, right side. Row i belongs to the basic variable basis[i].
    scale = max(float(np.abs(vector).max()), 1e-300)
    table = np.hstack([np.eye(n), -matrix, -np.ones((n, 1)), (vector / scale)[:, None]])
    basis, cover, solved, pivots = np.arange(n), 2 * n, False, 0
    row, entering = int(np.argmin(table[:, -1])), cover
    while not solved and pivots < (max_pivots or 50 * n):
        leaving, pivots = int(basis[row]), pivots + 1
        _pivot(table, row, entering)
        basis[row], solved = entering, leaving == cover
        entering = leaving + n if leaving < n else leaving - n
        candidates = np.flatnonzero(table[:, entering] > tolerance)
        if solved or not candidates.size:
            break
        row = _lexicographic_minimum(table, candidates, entering, basis)
    z, inside = np.zeros(n), (basis >= n) & (basis < cover)
    z[basis[inside] - n] = np.maximum(table[inside, -1], 0.0) * scale
    w = matrix @ z + vector
    negative, product = float(max(-w.min(), 0.0)), float(np.abs(z * w).max())
    kept = negative <= _SOLVED * scale and product <= _SOLVED * scale * max(float(z.max()), scale)
    return LcpSolution(z, w, solved and kept)


def _pivot(table: Array, row: int, column: int) -> None:
    table[row] /= table[row, column]
    factors = table[:, column].copy()
    factors[row] = 0.0
    table -= factors[:, None] * table[row]


def _lexicographic_minimum(table: Array, candidates: Indices, entering: int, basis: Indices) -> int:
    """Row of the smallest ratio; ties go to the covering variable, then to the smallest inverse-basis row."""
    n = len(basis)
    ratios = table[candidates, -1] / table[candidates, entering]
    tied = candidates[ratios <= ratios.min() + _TIE]
    if len(tied) == 1:
        return int(tied[0])
    at_cover = tied[basis[tied] == 2 * n]
    if at_cover.size:
        return int(at_cover[0])
    return int(min(tied, key=lambda r: tuple(table[r, :n] / table[r, entering])))
