"""Lemke's method against enumeration of all complementary bases, and on problems without solution."""

import itertools

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.identify.planar.lcp import solve_lcp


def enumerate_solutions(matrix, vector):
    n = len(vector)
    for pattern in itertools.product((False, True), repeat=n):
        basic = np.array(pattern)
        z = np.zeros(n)
        if basic.any():
            block = matrix[np.ix_(basic, basic)]
            if abs(np.linalg.det(block)) < 1e-12:
                continue
            z[basic] = np.linalg.solve(block, -vector[basic])
        if z.min() > -1e-9 and (matrix @ z + vector).min() > -1e-9:
            yield z


def test_positive_definite_problems_have_the_enumerated_solution():
    rng = np.random.default_rng(1)
    for n in (1, 2, 3, 5):
        for _ in range(30):
            root = rng.standard_normal((n, n))
            matrix, vector = root @ root.T + 0.1 * np.eye(n), rng.standard_normal(n)
            solution = solve_lcp(matrix, vector)
            assert solution.solved and solution.error < 1e-9
            np.testing.assert_allclose(solution.z, next(enumerate_solutions(matrix, vector)), atol=1e-8)


def test_degenerate_problem_does_not_cycle():
    matrix = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    solution = solve_lcp(matrix, -np.ones(3))
    assert solution.solved and solution.error < 1e-9 and solution.z.sum() == pytest.approx(1.0)


def test_scale_does_not_matter():
    matrix, vector = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([-1.0, -2.0])
    small = solve_lcp(matrix, 1e-9 * vector)
    np.testing.assert_allclose(small.z, 1e-9 * solve_lcp(matrix, vector).z, rtol=1e-12)


def test_unsolvable_problem_says_so():
    assert not solve_lcp(np.array([[-1.0]]), np.array([-1.0])).solved


def test_shape_error():
    with pytest.raises(ConfigError, match="matrix"):
        solve_lcp(np.eye(3), np.zeros(2))


def test_nothing_counts_as_solved_that_rounding_has_spoilt():
    """Gram matrices of rows from 1e-9 to 1e3 in size."""
    rng, solved = np.random.default_rng(0), 0
    for _ in range(300):
        n = int(rng.integers(2, 7))
        root = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-9.0, 3.0, (n, 1))
        vector = rng.standard_normal(n)
        found = solve_lcp(root @ root.T, vector)
        if found.solved:
            solved += 1
            assert found.w.min() >= -1e-7 * np.abs(vector).max()
            assert np.abs(found.z * found.w).max() <= 1e-7 * np.abs(vector).max() * max(found.z.max(), 3.0)
    assert 100 < solved < 300
