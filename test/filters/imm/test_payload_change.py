"""The sequential test of a load that has changed: loads that go are told, growing forces and tables are none."""

import numpy as np
import pytest

from contact_estimation.filters.imm.payload_change import PayloadChange

BLOCK, NOISE, LOAD = 0.01, 0.1, np.array([0.5, 8.0, 4.0, 2.0])  # [s], [Nm], [Nm]
WEIGHT, SOFTEST = 20.0, 1e3  # [N], [N/m]


def told(share, seconds=2.0, height=None, seed=0):
    """When [s] a load is told to have gone while ``share(t)`` of its torque is left, None where it is not.

    With ``height(t)`` [m] a known contact is closed from the start.
    """
    rng, change = np.random.default_rng(seed), PayloadChange(4, 0.01)
    noise, covariance, push = np.full(4, NOISE**2), 0.04 * np.eye(4), 400.0 * np.eye(4)
    for t in np.arange(0.0, seconds, BLOCK):
        torque = share(t) * LOAD + rng.normal(0.0, NOISE, 4)
        at = 0.0 if height is None else height(t)
        if not change.add(BLOCK, at, torque, LOAD, np.zeros(4)) or not change.has_changed(covariance, noise, push):
            continue
        if height is None or change.is_no_table(height(-1.0), WEIGHT, SOFTEST):
            return t
    return None


@pytest.mark.parametrize("seed", range(10))
def test_a_load_that_has_gone_is_told_within_three_tenths_of_a_second(seed):
    assert told(lambda t: float(t < 0.5), seed=seed) == pytest.approx(0.7, abs=0.1)


@pytest.mark.parametrize("share", [0.3, 0.5, 1.0, 1.5, -1.0])
def test_a_load_that_is_there_and_a_push_of_another_size_are_no_end(share):
    assert told(lambda t: share) is None


@pytest.mark.parametrize("across", [1.0, 3.0])  # [Nm] five and fifteen standard deviations
def test_a_torque_across_the_loads_is_no_end(across):
    rng, change = np.random.default_rng(0), PayloadChange(4, 0.01)
    for _ in range(100):
        torque = np.array([across, 0.0, 0.0, 0.0]) + rng.normal(0.0, NOISE, 4)
        if change.add(BLOCK, 0.0, torque, LOAD, np.zeros(4)):
            assert not change.has_changed(0.04 * np.eye(4), np.full(4, NOISE**2), 400.0 * np.eye(4))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("seconds", [0.5, 1.0, 3.0])
def test_a_force_that_grows_past_the_load_s_is_no_end(seconds, seed):
    assert told(lambda t: 1.0 - t / seconds, 2.0 * seconds, seed=seed) is None


def test_a_table_that_the_arm_went_down_to_may_carry_the_load():
    assert told(lambda t: 0.0, height=lambda t: -1e-3 * (t >= 0)) is None


def test_a_contact_that_began_at_rest_is_no_table():
    assert told(lambda t: 0.0, height=lambda t: 0.0) is not None


def test_a_force_that_does_not_change_with_the_height_is_no_table():
    assert told(lambda t: 0.0, height=lambda t: -0.05 * (t + 1.0)) is not None
