"""Presliding and friction laws."""

import casadi as ca
import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.robot.friction import (
    FrictionSettings,
    apply_deadband,
    friction_torque,
    presliding_slope,
    presliding_states,
    presliding_step,
)


def test_the_state_turns_round_within_the_breakaway_length():
    q = np.concatenate([np.linspace(0, 0.01, 101), np.linspace(0.01, 0.009, 101)[1:]])
    s = presliding_states(q, 1e-3)
    assert s[100] == pytest.approx(1 - np.exp(-10), abs=1e-9)
    assert s[-1] == pytest.approx(-1 + 2 * np.exp(-1), abs=1e-4)  # one length backwards: 63 % of the way from +1 to -1


def test_the_state_keeps_its_value_at_standstill_and_does_not_depend_on_the_sample_rate():
    coarse, fine = np.array([0.0, 5e-4, 5e-4, 5e-4]), np.linspace(0, 5e-4, 1000)
    s = presliding_states(coarse, 4e-4)
    assert s[1] == s[2] == s[3] == pytest.approx(presliding_states(fine, 4e-4)[-1])


def test_candidates_and_joints_broadcast():
    q = np.cumsum(np.random.default_rng(0).normal(scale=1e-3, size=(50, 2)), axis=0)
    lengths = np.array([1e-4, 1e-3, 1e-2])
    many = presliding_states(q[:, :, None], lengths)
    assert many.shape == (50, 2, 3) and np.abs(many).max() <= 1.0
    for k, length in enumerate(lengths):
        np.testing.assert_allclose(many[:, :, k], presliding_states(q, length))


def test_the_play_swallows_noise_and_follows_motion():
    noise = np.random.default_rng(1).uniform(-2e-5, 2e-5, (500, 1))
    still = apply_deadband(noise, 25e-6)
    assert np.ptp(still[100:]) < 2e-5 and np.abs(presliding_states(still, 1.5e-4)[-1]) < 0.3
    ramp = np.linspace(0, 1e-2, 500)[:, None]
    np.testing.assert_allclose(ramp[100:] - apply_deadband(ramp, 25e-6)[100:], 25e-6)


def test_symbols_and_numbers_agree_and_the_step_is_differentiable_at_rest():
    s, step = ca.SX.sym("s"), ca.SX.sym("step")
    after = presliding_step(s, step, 2e-4)
    function = ca.Function("f", [s, step], [after, ca.jacobian(after, s)])
    for values in ((0.3, 1e-4), (-0.9, -3e-4), (0.5, 0.0)):
        assert float(function(*values)[0]) == pytest.approx(float(presliding_step(*values, 2e-4)), abs=1e-15)
    assert float(function(0.5, 0.0)[1]) == 1.0


def test_the_torque_opposes_and_its_parts_add_up():
    f = FrictionSettings.none(2)
    f = FrictionSettings(
        **{**vars(f), "viscous": [2.0, 0.0], "asymmetry": [0.5, 0.0], "coulomb": [0.0, 3.0], "bias": [0.1, -0.2]}
    )
    np.testing.assert_allclose(
        friction_torque(f, np.array([-1.0, 4.0]), np.array([0.7, -1.0])), [-2.0 + 0.5 + 0.1, -3.2]
    )
    dq, s = ca.SX.sym("dq", 2), ca.SX.sym("s", 2)
    symbolic = ca.Function("f", [dq, s], [friction_torque(f, dq, s)])([-1.0, 4.0], [0.7, -1.0])
    np.testing.assert_allclose(symbolic.full().ravel(), [-1.4, -3.2])


def test_the_number_of_joints_is_checked():
    with pytest.raises(ConfigError, match=r"robot 'fr3': viscous has 6 entries, expected one per joint .7."):
        FrictionSettings.none(6).check_joints(7, "fr3")


def test_the_slope_is_the_derivative_by_the_logarithm_of_the_breakaway_length():
    steps, length, h = np.random.default_rng(0).normal(0.0, 1e-4, 30), 2e-4, 1e-6

    def end(sigma):
        s = 0.0
        for step in steps:
            s = presliding_step(s, step, sigma)
        return s

    s = slope = 0.0
    for step in steps:
        s, slope = presliding_step(s, step, length), presliding_slope(s, slope, step, length)
    assert slope == pytest.approx((end(length * np.exp(h)) - end(length * np.exp(-h))) / (2 * h), rel=1e-5)
