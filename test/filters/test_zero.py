"""Zeroing takes off what a free, still arm shows beside gravity."""

import numpy as np
import pytest

from contact_estimation.filters.zero import TorqueZero
from contact_estimation.robot import load_arm

Q = np.array([0.2, -1.6, 1.9, -1.8, -1.5, 0.3])


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def feed(zero, arm, offset, count, dq=None, noise=0.0):
    rng = np.random.default_rng(0)
    for _ in range(count):
        tau = arm.gravity(Q) + offset + noise * rng.standard_normal(arm.n)
        zero.apply(Q, np.zeros(arm.n) if dq is None else dq, tau)
    return tau - arm.gravity(Q)


def test_planted_offset_is_found_and_taken_off(arm):
    zero, offset = TorqueZero(arm, 200), np.array([1.0, -8.0, 4.0, 2.0, 0.5, -0.2])
    np.testing.assert_allclose(feed(zero, arm, offset, 3), offset)  # nothing before it is asked for
    zero.start()
    feed(zero, arm, offset, 200, noise=0.3)
    assert zero.status.startswith("zeroed")
    np.testing.assert_allclose(zero.offset, offset, atol=4 * 0.3 / np.sqrt(200))
    assert np.abs(feed(zero, arm, offset, 1)).max() < 0.1
    zero.clear()
    np.testing.assert_allclose(feed(zero, arm, offset, 1), offset)


def test_zeroing_twice_does_not_add_up(arm):
    zero, offset = TorqueZero(arm, 10), np.full(6, 3.0)
    for _ in range(2):
        zero.start()
        feed(zero, arm, offset, 10)
    np.testing.assert_allclose(zero.offset, offset)


def test_moving_arm_is_refused(arm):
    zero = TorqueZero(arm, 10)
    zero.start()
    feed(zero, arm, np.ones(6), 5, dq=np.array([0.0, 0.0, 0.3, 0.0, 0.0, 0.0]))
    assert "refused: elbow_joint moved with 0.300 rad/s" in zero.status
    np.testing.assert_array_equal(zero.offset, np.zeros(6))
