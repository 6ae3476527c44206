"""Symbolic LDL^T of a small symmetric positive definite matrix: no square roots, no pivoting, straight-line code."""

from __future__ import annotations

import casadi as ca


class LDL:
    """Factor once, solve for any number of right-hand sides.

    Args:
        matrix: (n, n) symmetric and positive definite.
    """

    def __init__(self, matrix: ca.SX) -> None:
        n = matrix.shape[0]
        self._n, self._inverse = n, [ca.SX(0)] * n
        self._lower, scaled = ([[ca.SX(0)] * n for _ in range(n)] for _ in range(2))  # L and L D
        for j in range(n):
            for i in range(j, n):
                value = matrix[i, j]
                for k in range(j):
                    value = value - scaled[i][k] * self._lower[j][k]
                scaled[i][j] = value
            self._inverse[j] = 1 / scaled[j][j]
            for i in range(j + 1, n):
                self._lower[i][j] = scaled[i][j] * self._inverse[j]

    def solve(self, rhs: ca.SX) -> ca.SX:
        """Solution X (n, m) of matrix X = ``rhs`` (n, m)."""
        columns = []
        for c in range(rhs.shape[1]):
            x = [rhs[i, c] for i in range(self._n)]
            for i in range(self._n):
                for k in range(i):
                    x[i] = x[i] - self._lower[i][k] * x[k]
            x = [value * inverse for value, inverse in zip(x, self._inverse)]
            for i in reversed(range(self._n)):
                for k in range(i + 1, self._n):
                    x[i] = x[i] - self._lower[k][i] * x[k]
            columns.append(ca.vertcat(*x))
        return ca.horzcat(*columns)
