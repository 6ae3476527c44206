"""Symbolic parts of Kalman filters: packed covariances and sequential scalar updates (no matrix is inverted)."""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np

from contact_estimation.dynamics import symmetric


def packed_size(n: int) -> int:
    """Return number of entries in the upper triangle of an (n, n) matrix."""
    return n * (n + 1) // 2


def pack(matrix: ca.SX) -> ca.SX:
    """Lower triangle of a symmetric matrix as a vector, row by row."""
    n = matrix.shape[0]
    columns, rows = _lower_triangle(n)
    packed: ca.SX = ca.vec(matrix)[(rows + n * columns).tolist()]
    return packed


def packed_outer(a: ca.SX, b: ca.SX) -> ca.SX:
    """Lower triangle of the symmetric matrix a b^T as a vector, like :func:`pack`."""
    return pack(a @ b.T)


def unpack(vector: ca.SX, n: int) -> ca.SX:
    """Symmetric (n, n) matrix of a vector made by :func:`pack`."""
    return ca.reshape(vector[packed_places(n).ravel().tolist()], n, n)


@functools.lru_cache(maxsize=16)
def _lower_triangle(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.tril_indices(n)


def pack_array(matrix: np.ndarray) -> np.ndarray:
    """Return the packed lower triangle (n (n + 1) / 2,) of a numpy matrix, as :func:`pack` does.

    Args:
        matrix: (n, n) symmetric.
    """
    columns, rows = _lower_triangle(matrix.shape[0])
    return np.ascontiguousarray(matrix[rows, columns])


def unpack_array(vector: np.ndarray, n: int) -> np.ndarray:
    """Return the symmetric matrix (n, n) of a packed numpy vector, as :func:`unpack` does.

    Args:
        vector: (n (n + 1) / 2,).
        n: number of rows.
    """
    columns, rows = _lower_triangle(n)
    matrix = np.empty((n, n), vector.dtype)
    matrix[rows, columns] = vector
    matrix[columns, rows] = vector
    return matrix


def packed_places(n: int) -> np.ndarray:
    """Return where (n, n) the entries of a matrix are in its packed lower triangle.

    Args:
        n: number of rows.
    """
    return unpack_array(np.arange(packed_size(n)), n)


def scalar_update(
    x: ca.SX, covariance: ca.SX, row: ca.SX, innovation: ca.SX, variance: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Update with one measurement y = row x + v, v ~ N(0, variance).

    Args:
        x: (N,) mean.
        covariance: (N, N) symmetric.
        row: (1, N) measurement row, sparse where it is zero.
        innovation: y - (predicted y at ``x``).
        variance: of v.

    Returns:
        mean, covariance, and the variance of the innovation. Its square over this variance is chi-square with one
        degree of freedom; those of a sequence of updates are independent and add up to the joint normalised innovation.
    """
    cross = covariance @ row.T
    spread = (row @ cross) + variance
    gain = cross / spread
    return x + gain * innovation, symmetric(covariance - gain @ cross.T), spread
