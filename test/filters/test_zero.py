"""Zeroing takes off what a free, still arm shows beside gravity."""

import numpy as np
import pytest

from contact_estimation.filters.registry import open_stream
from contact_estimation.filters.zero import TorqueZero
from contact_estimation.robot import load_arm
from contact_estimation.robot.posture import ready_posture

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


class Still:
    """A still arm before an observer: gravity, noise, an offset of the torque, and a push at the tool."""

    def __init__(self, robot, observer="contact_imm"):
        self.stream = open_stream(robot, observer)
        self.arm = self.stream.arm
        self.q = Q if self.arm.n == 6 else ready_posture(self.arm)
        self.offset, self.push = np.zeros(self.arm.n), 0.0
        self._lift = self.arm.tcp_jacobian(self.q)[2]
        self._rng, self._stamp, self._pushed = np.random.default_rng(0), 1_000_000_000, 0.0

    def feed(self, seconds):
        """Feed samples for a time [s]; a push [N] along base z builds up in 0.3 s; return the estimate."""
        noise, n = self._rng.normal, self.arm.n
        for _ in range(round(500 * seconds)):
            self._stamp += 2_000_000
            self._pushed += np.clip(self.push - self._pushed, -0.4, 0.4)
            tau = self.arm.gravity(self.q) + self.offset - self._lift * self._pushed + noise(0, 0.05, n)
            estimate = self.stream.push(self._stamp, self.q + noise(0, 1e-5, n), noise(0, 1e-4, n), tau)
        return estimate


@pytest.mark.parametrize("robot, offset", [("fr3", 1.0), ("ur16e", 3.0)])
def test_a_zeroed_arm_is_free(robot, offset):
    """The torque jumps by the offset that is taken off; the observer, which had adapted to it, must not feel a push."""
    still = Still(robot)
    still.offset[1] = offset
    assert still.feed(2.0).mode == "free"
    assert still.stream.start_zero()
    still.feed(0.6)
    assert still.stream.zero.status.startswith("zeroed")
    estimate = still.feed(2.0)
    assert estimate.valid and estimate.modes["free"] > 0.9 and np.linalg.norm(estimate.force_base) < 0.5


@pytest.mark.parametrize("robot, push", [("fr3", 20.0), ("ur16e", 60.0)])
def test_what_a_probable_contact_does_to_the_torque_is_no_offset(robot, push):
    still = Still(robot)
    still.feed(1.0)
    still.push = push
    assert still.feed(0.8).modes["free"] < 0.5
    assert not still.stream.start_zero() and "a contact is probable ('" in still.stream.zero.status
    still.feed(0.6)
    assert not still.stream.zero.offset.any()
    assert still.stream.start_zero(in_contact=True)
    still.stream.zero.clear()
    still.push = 0.0
    still.feed(1.5)
    assert still.stream.start_zero()


def test_torque_that_contradicts_gravity_is_no_offset():
    """An observer without a mode ``free`` would publish it as a valid force once the driver is right again."""
    still = Still("ur16e", "momentum")
    still.offset[:] = -still.arm.gravity(Q)
    assert not still.feed(0.6).valid
    for in_contact in (False, True):
        assert not still.stream.start_zero(in_contact)
        assert "torque without gravity" in still.stream.zero.status and not still.stream.zero.measuring
    assert not still.feed(0.6).valid and not still.stream.zero.offset.any()


def test_torque_that_begins_to_contradict_gravity_ends_the_request():
    still = Still("ur16e", "momentum")
    still.feed(1.0)
    assert still.stream.start_zero()
    still.offset[:] = -still.arm.gravity(Q)
    still.feed(0.6)
    assert "refused" in still.stream.zero.status and not still.stream.zero.offset.any()


def test_a_contact_that_begins_meanwhile_ends_the_request():
    still = Still("fr3")
    still.feed(1.0)
    assert still.stream.start_zero()
    still.push = 20.0
    still.feed(0.6)
    assert "a contact is probable" in still.stream.zero.status and not still.stream.zero.offset.any()
