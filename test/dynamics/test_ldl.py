"""Symbolic LDL^T."""

import casadi as ca
import numpy as np
import pytest

from contact_estimation.dynamics.ldl import LDL


@pytest.mark.parametrize("n", [1, 2, 7])
def test_solves_like_numpy(n):
    rng = np.random.default_rng(n)
    root, rhs = rng.normal(size=(n, n)), rng.normal(size=(n, 3))
    matrix = root @ root.T + 0.1 * np.eye(n)
    a, b = ca.SX.sym("a", n, n), ca.SX.sym("b", n, 3)
    solution = ca.Function("solve", [a, b], [LDL(a).solve(b)])(matrix, rhs).full()
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, rhs), rtol=1e-9)


def test_only_the_lower_triangle_is_read():
    a = ca.SX.sym("a", 3, 3)
    solution = LDL(a).solve(ca.SX.eye(3))
    upper = [a[i, j] for j in range(3) for i in range(j)]
    assert not any(ca.depends_on(solution, entry) for entry in upper)
