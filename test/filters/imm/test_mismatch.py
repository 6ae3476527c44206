"""What disagrees with the model is named, and a model that is right is left in peace."""

import numpy as np
import pytest
from shared import shared_file

from contact_estimation.filters.imm.mismatch import MismatchTest
from contact_estimation.filters.imm.state import FilterState
from contact_estimation.filters.registry import load_observer_settings, open_stream
from contact_estimation.robot import load_arm
from contact_estimation.robot.actuators import actuators_of

BLOCK = 0.01


@pytest.fixture(scope="module")
def make():
    arm, settings = load_arm("ur16e"), load_observer_settings("contact_imm")
    actuators = actuators_of(arm)
    state = FilterState(settings, actuators, arm.n, motor_side=True)
    channels = [f"channel {k}" for k in range(state.m + state.n)]
    return lambda: (MismatchTest(arm, actuators, state, settings, channels), state)


def fed(make, stiffness, scale=1.0, seed=0, seconds=6.0):
    """Words after ``seconds`` with stiffness estimates that are off (prior deviations) and innovations of a scale."""
    (test, state), rng = make(), np.random.default_rng(seed)
    x = state.mean.copy()
    where = state.parts["joint_stiffness"]
    x[where] += np.multiply(stiffness, np.sqrt(state.variance[where]))
    variances = np.ones(state.m + state.n)
    variances[3] = scale
    for _ in range(round(seconds / BLOCK)):
        test.add(BLOCK, variances * rng.chisquare(1, state.m + state.n), x)
    return test.words


def test_a_right_model_is_left_in_peace(make):
    stiffness = np.random.default_rng(1).normal(size=(40, 2))  # prior deviations, as robots differ
    words = [fed(make, off, seed=seed) for seed, off in enumerate(stiffness)]
    assert sum(map(bool, words)) <= 2  # the significance is 1 %


@pytest.mark.parametrize(("off", "told"), [(3.0, "bends less"), (-3.0, "bends more")])
def test_a_stiffness_far_from_its_prior_is_told(make, off, told):
    assert told in fed(make, [off, 0.0]) and "shoulder_lift_joint" in fed(make, [off, 0.0])


def test_innovations_that_are_too_large_are_told_with_their_channel(make):
    words = fed(make, [0.0, 0.0], scale=20.0)
    assert "channel 3" in words and "mean square" in words


def test_a_moment_proves_nothing(make):
    assert not fed(make, [3.0, 3.0], scale=20.0, seconds=0.6)


def words_of(q, dq, tau):
    """Words of a replay with the default observer, and how often."""
    stream = open_stream("ur16e", "contact_imm")
    for k, sample in enumerate(zip(q, dq, tau)):
        stream.push_fast(1 + 2_000_000 * k, *sample)
        if k % 50 == 0:
            yield stream.estimate().mismatch


def recorded(name):
    with np.load(shared_file(f"data/ur16e_press/{name}.npz"), allow_pickle=False) as archive:
        return archive["q"], archive["dq"], archive["tau"]


def test_a_recorded_press_agrees_with_the_model():
    assert not any(words_of(*recorded("ur_vertical_1")))


def test_a_velocity_of_the_joints_is_told_where_the_motors_was_meant():
    q, _, tau = recorded("ur_vertical_1")
    smooth = np.apply_along_axis(np.convolve, 0, np.gradient(q, 0.002, axis=0), np.ones(5) / 5, "same")
    said = list(words_of(q[:2500], smooth[:2500], tau[:2500]))
    assert any("motor_side_velocity" in words for words in said)  # within five seconds


def test_a_torque_of_the_wrong_sign_is_told():
    q, dq, tau = recorded("ur_vertical_1")
    assert all("effort is configured" in words for words in list(words_of(q[:1500], dq[:1500], -tau[:1500]))[1:])
