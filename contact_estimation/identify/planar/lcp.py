"""Linear complementarity problem 0 <= z, M z + q >= 0, z (M z + q) = 0 by Lemke's pivoting (paper 5, eq. 1).

No maintained LCP solver is packaged for Python (the good ones come with a licence or a C++ build of their own), so
this is a small one: complementary pivoting with a covering vector of ones and the lexicographic ratio test, which
cannot cycle. Contact problems with friction (eq. 8) have copositive matrices, for which Lemke's method ends in a
solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import shape_error


@dataclass(frozen=True)
class LcpSolution:
    """``z`` and ``w`` = M z + q; ``solved`` is False after a ray termination or too many ``pivots``."""

    z: np.ndarray
    w: np.ndarray
    solved: bool
    pivots: int

    @property
    def error(self) -> float:
        """Largest violation of z >= 0, w >= 0 and z w = 0."""
        return float(max(np.max(-self.z, initial=0.0), np.max(-self.w, initial=0.0),
                         np.max(np.abs(self.z * self.w), initial=0.0)))


def solve_lcp(matrix, vector, tolerance: float = 1e-10, max_pivots: int | None = None) -> LcpSolution:
    """Solve the LCP of ``matrix`` (n, n) and ``vector`` (n,); deterministic.

    Raises:
        ConfigError: the shapes do not fit together.
    """
    matrix, vector = np.asarray(matrix, float), np.asarray(vector, float)
    n = len(vector)
    if vector.ndim != 1 or matrix.shape != (n, n):
        raise shape_error("solve_lcp", "matrix", matrix.shape, (n, n))
    if n == 0 or vector.min() >= 0.0:
        return LcpSolution(np.zeros(n), vector.copy(), True, 0)
    # Columns: w (n), z (n), covering variable z0, right side. Row i belongs to the basic variable basis[i].
    scale = max(np.abs(vector).max(), 1e-300)
    table = np.hstack([np.eye(n), -matrix, -np.ones((n, 1)), (vector / scale)[:, None]])
    basis = np.arange(n)
    cover = 2 * n
    row, entering = int(np.argmin(table[:, -1])), cover
    limit = max_pivots or 50 * n
    for pivots in range(1, limit + 1):
        leaving = basis[row]
        _pivot(table, row, entering)
        basis[row] = entering
        if leaving == cover:
            return _solution(matrix, vector, basis, table, scale, True, pivots)
        entering = leaving + n if leaving < n else leaving - n
        candidates = np.flatnonzero(table[:, entering] > tolerance)
        if candidates.size == 0:
            return _solution(matrix, vector, basis, table, scale, False, pivots)
        row = _lexicographic_minimum(table, candidates, entering, basis, cover)
    return _solution(matrix, vector, basis, table, scale, False, limit)


def _pivot(table, row, column):
    table[row] /= table[row, column]
    factors = table[:, column].copy()
    factors[row] = 0.0
    table -= factors[:, None] * table[row]


def _lexicographic_minimum(table, candidates, entering, basis, cover) -> int:
    """Row of the smallest ratio; ties go to the covering variable, then to the smallest inverse-basis row."""
    n = len(basis)
    ratios = table[candidates, -1] / table[candidates, entering]
    tied = candidates[ratios <= ratios.min() + 1e-12]
    at_cover = tied[basis[tied] == cover]
    if at_cover.size:
        return int(at_cover[0])
    keys = [tuple(table[r, :n] / table[r, entering]) for r in tied]
    return int(tied[min(range(len(tied)), key=keys.__getitem__)])


def _solution(matrix, vector, basis, table, scale, solved, pivots):
    n = len(vector)
    z = np.zeros(n)
    inside = (basis >= n) & (basis < 2 * n)
    z[basis[inside] - n] = np.maximum(table[inside, -1], 0.0) * scale
    return LcpSolution(z, matrix @ z + vector, solved, pivots)
