"""What disagrees with the model is named, and a model that is right is left in peace."""

import dataclasses

import numpy as np
import pytest
from shared import shared_file

from contact_estimation.filters.imm.mismatch import MismatchTest
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.registry import load_observer_settings, open_stream
from contact_estimation.robot import Arm, load_arm
from contact_estimation.robot.actuators import actuators_of

BLOCK = 0.01


@pytest.fixture(scope="module")
def make():
    arm, settings = load_arm("ur16e"), load_observer_settings("contact_imm")
    actuators = actuators_of(arm)
    state = StateLayout(settings, actuators, arm.n, motor_side=True)
    channels = [f"channel {k}" for k in range(state.m + state.n)]
    return lambda: (MismatchTest(arm, actuators, state, settings, channels), state)


def fed(make, bends=1.0, scale=1.0, seed=0, seconds=6.0):
    """Words after ``seconds`` of a load that swings by 25 Nm and bends joints ``bends`` times as much as it should.

    Friction that no law tells, hysteresis and stiffness are what the configuration expects; the variance of innovations
    has a scale.
    """
    (test, state), rng = make(), np.random.default_rng(seed)
    actuators = actuators_of(load_arm("ur16e"))
    elastic, variances = actuators.elastic, np.ones(state.m + state.n)
    variances[3] = scale
    q = np.zeros(state.n)
    gravity = load_arm("ur16e").gravity(q)
    stiffness = np.array(elastic.stiffness) * np.exp(elastic.stiffness_spread * rng.normal(size=state.m))
    spread = np.hypot(actuators.friction.coulomb_std, actuators.disturbance_std)
    friction, keep = spread * rng.normal(size=state.n), np.exp(-BLOCK / actuators.disturbance_time)
    for k in range(round(seconds / BLOCK)):
        friction = keep * friction + np.sqrt(1 - keep**2) * spread * rng.normal(size=state.n)
        load, rate = 25.0 * np.sin(1.5 * BLOCK * k), np.cos(1.5 * BLOCK * k)
        bent = bends * (load / stiffness - elastic.hysteresis * np.sign(rate))
        test.add_deflection(BLOCK, q, np.zeros(state.n), np.concatenate([bent, load + gravity - friction]))
        test.add(np.sqrt(variances) * rng.normal(size=state.m + state.n))
    return test.words


def test_a_right_model_is_left_in_peace(make):
    words = [fed(make, seed=seed) for seed in range(40)]
    assert sum(map(bool, words)) <= 2  # the significance is 1 %


@pytest.mark.parametrize(("bends", "told"), [(0.0, "bends less"), (2.5, "bends more")])
def test_joints_that_do_not_bend_as_their_stiffness_says_are_told(make, bends, told):
    said = [fed(make, bends, seed=seed) for seed in range(10)]
    assert sum(told in words for words in said) >= 9
    assert "motor_side_velocity" in fed(make, 0.0)


def test_innovations_that_are_too_large_are_told_with_their_channel(make):
    words = fed(make, scale=20.0)
    assert "channel 3" in words and "mean square" in words


def test_a_moment_proves_nothing(make):
    assert not fed(make, 0.0, scale=20.0, seconds=0.6)


@pytest.mark.parametrize("gravity", [[0.0, 0.0, -9.81], [0.0, 0.0, 9.81], [9.81, 0.0, 0.0]])
def test_what_seems_to_have_ended_may_be_a_weight_only_along_gravity_however_the_arm_is_mounted(gravity):
    upright, settings = load_arm("ur16e"), load_observer_settings("contact_imm")
    arm = Arm(dataclasses.replace(upright.settings, name="ur16e_mounted", gravity=gravity))
    actuators = actuators_of(arm)
    layout = StateLayout(settings, actuators, arm.n, motor_side=True)
    for sign, said in ((1.0, True), (-1.0, False)):
        test = MismatchTest(arm, actuators, layout, settings, ["channel"] * (layout.m + layout.n))
        test.end_push(sign * 2.0 * np.array(gravity), np.eye(3))
        assert bool(test.words_of_free_space) == said


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
