"""The bordered step equals the dense one, keeps bounds exactly, and says when the band is singular."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.batch.bordered import Factorisation, assemble, bounded_newton

N, NV, M, C = 9, 3, 7, 2


@pytest.fixture
def blocks():
    rng = np.random.default_rng(0)
    jacobian_q, jacobian_p = rng.standard_normal((N, M, 3 * NV)), rng.standard_normal((N, M, C))
    slope, curvature = rng.standard_normal((N, M)), rng.uniform(0.5, 2.0, (N, M))
    for i, outside in ((0, slice(0, NV)), (N - 1, slice(2 * NV, 3 * NV))):
        jacobian_q[i][:, outside] = 0.0
    dense = np.zeros((N, M, N * NV + C))
    for i in range(N):
        for k in range(3):
            if 0 <= i + k - 1 < N:
                dense[i, :, (i + k - 1) * NV : (i + k) * NV] = jacobian_q[i, :, k * NV : (k + 1) * NV]
        dense[i, :, N * NV :] = jacobian_p[i]
    dense = dense.reshape(N * M, -1)
    hessian = dense.T @ (curvature.reshape(-1, 1) * dense)
    return assemble(jacobian_q, jacobian_p, slope, curvature), hessian, dense.T @ slope.ravel()


def test_step_equals_the_dense_solution(blocks):
    system, hessian, gradient = blocks
    dq, dp = Factorisation(system, 0.3, 0.1).step(np.full(C, -1e3), np.full(C, 1e3))
    damping = np.concatenate([np.full(N * NV, 0.3), np.full(C, 0.1)])
    expected = -np.linalg.solve(hessian + np.diag(damping), gradient)
    assert np.concatenate([dq, dp]) == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_schur_complement_is_the_inverse_of_the_parameters_covariance(blocks):
    system, hessian, _ = blocks
    expected = np.linalg.inv(np.linalg.inv(hessian + 1e-9 * np.eye(len(hessian)))[-C:, -C:])
    assert Factorisation(system, 1e-9, 1e-9).schur == pytest.approx(expected, rel=1e-5)


def test_bounds_are_kept_and_the_rest_is_optimal_given_them(blocks):
    system, hessian, gradient = blocks
    free = -np.linalg.solve(hessian + 0.1 * np.eye(len(hessian)), gradient)
    lower = np.array([-1e3, free[-1] + 0.05])
    dq, dp = Factorisation(system, 0.1, 0.1).step(lower, np.full(C, 1e3))
    assert dp[1] == pytest.approx(lower[1])
    known = (hessian + 0.1 * np.eye(len(hessian)))[:-1]
    expected = -np.linalg.solve(known[:, :-1], gradient[:-1] + known[:, -1] * dp[1])
    assert np.append(dq, dp[0]) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_bounded_newton_without_parameters_is_empty():
    assert bounded_newton(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)


def test_an_unseen_coordinate_is_named_as_the_reason():
    jacobian = np.zeros((N, M, 3 * NV))
    system = assemble(jacobian, np.zeros((N, M, 0)), np.zeros((N, M)), np.ones((N, M)))
    with pytest.raises(IdentificationError, match="no sensor"):
        Factorisation(system, 0.0, 0.0)
