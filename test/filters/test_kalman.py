"""Packed covariances and sequential scalar updates."""

import casadi as ca
import numpy as np
import pytest

from contact_estimation.filters.kalman import pack, pack_array, packed_size, scalar_update, unpack, unpack_array


def covariance(n, seed=0):
    root = np.random.default_rng(seed).normal(size=(n, n))
    return root @ root.T + np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 5, 15])
def test_pack_and_unpack_are_inverse_and_agree_with_their_symbolic_twins(n):
    matrix = covariance(n)
    vector = pack_array(matrix)
    assert vector.shape == (packed_size(n),)
    np.testing.assert_array_equal(unpack_array(vector, n), matrix)
    m, v = ca.SX.sym("m", n, n), ca.SX.sym("v", packed_size(n))
    np.testing.assert_array_equal(ca.Function("p", [m], [pack(m)])(matrix).full().ravel(), vector)
    np.testing.assert_array_equal(ca.Function("u", [v], [unpack(v, n)])(vector).full(), matrix)


def test_scalar_updates_in_sequence_are_the_joint_update():
    """Gain, covariance and normalised innovation of a three-dimensional measurement with a full matrix of rows."""
    rng = np.random.default_rng(3)
    mean, prior, rows = rng.normal(size=5), covariance(5, 1), rng.normal(size=(3, 5))
    measured, variance = rng.normal(size=3), np.array([0.5, 2.0, 0.01])
    x, p = ca.SX(mean), ca.SX(prior)
    nis = 0
    for k in range(3):
        row = ca.SX(rows[k : k + 1])
        difference = measured[k] - row @ x
        x, p, expected = scalar_update(x, p, row, difference, variance[k])
        nis += difference**2 / expected
    joint = rows @ prior @ rows.T + np.diag(variance)
    gain = prior @ rows.T @ np.linalg.inv(joint)
    innovation = measured - rows @ mean
    np.testing.assert_allclose(np.array(ca.DM(x)).ravel(), mean + gain @ innovation, rtol=1e-11)
    np.testing.assert_allclose(np.array(ca.DM(p)), prior - gain @ joint @ gain.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(float(ca.DM(nis)), innovation @ np.linalg.solve(joint, innovation), rtol=1e-11)
