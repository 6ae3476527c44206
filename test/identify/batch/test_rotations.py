"""Rotation vectors: inverse of each other, derivatives against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.identify.batch import rotations


@pytest.mark.parametrize("size", [0.0, 1e-8, 1e-3, 1.0, 3.0])
def test_log_undoes_exp(size):
    vector = size * np.array([0.6, -0.64, 0.48])
    assert rotations.log(rotations.exp(vector)) == pytest.approx(vector, abs=1e-12)


def test_log_takes_the_shorter_way_for_either_sign():
    quaternion = rotations.exp(np.array([0.1, 0.2, 0.3]))
    assert rotations.log(-quaternion) == pytest.approx(rotations.log(quaternion))


@pytest.mark.parametrize("size", [0.0, 1e-5, 0.5, 2.5])
def test_log_jacobian(size):
    quaternion = rotations.exp(size * np.array([0.6, -0.64, 0.48]))
    numeric = np.column_stack(
        [(rotations.log(quaternion + d) - rotations.log(quaternion - d)) / 2e-6 for d in 1e-6 * np.eye(4)]
    )
    tangent = np.eye(4) - np.outer(quaternion, quaternion)  # only unit quaternions occur
    assert rotations.log_jacobian(quaternion) @ tangent == pytest.approx(numeric @ tangent, abs=1e-5)


@pytest.mark.parametrize("size", [0.0, 1e-5, 0.5, 2.5])
def test_right_jacobian_inverse(size):
    vector = size * np.array([0.6, -0.64, 0.48])

    def moved(d):
        return rotations.log(rotations.multiply(rotations.exp(vector), rotations.exp(d)))

    numeric = np.column_stack([(moved(d) - moved(-d)) / 2e-6 for d in 1e-6 * np.eye(3)])
    assert rotations.right_jacobian_inverse(vector) == pytest.approx(numeric, abs=1e-7)
