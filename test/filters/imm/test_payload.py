"""Payloads by regression of joint torque: planted loads come back, pushes and clean torque are none."""

import dataclasses

import numpy as np
import pytest

from contact_estimation.codegen import compile_function
from contact_estimation.filters.imm.payload import PayloadTest, build_regressor
from contact_estimation.filters.imm.settings import MismatchSettings
from contact_estimation.robot import Arm, load_arm
from contact_estimation.robot.actuators import actuators_of

STEP, COM = 0.1, np.array([0.03, -0.02, 0.08])


@pytest.fixture(scope="module", params=["fr3", "ur16e"])
def arm(request):
    return load_arm(request.param)


def watched(arm, external, seed=0, seconds=20.0, amplitude=0.4):
    """What is found while ``external(t, q)`` (n,) [Nm] acts, after every second; with bias, friction and noise."""
    actuators, rng = actuators_of(arm), np.random.default_rng(seed)
    friction, start = actuators.friction, np.array(arm.settings.ready)
    bias = rng.normal(friction.bias, 0.5 * np.array(friction.bias_std))
    phase, found = rng.uniform(0, 6, arm.n), []
    test = PayloadTest(arm, actuators, MismatchSettings())
    for t in np.arange(0.0, seconds, STEP):
        q = start + amplitude * np.sin(0.7 * t + phase)
        presliding = np.sign(np.cos(0.7 * t + phase))
        noise = rng.normal(0.0, actuators.torque_noise)
        test.add(STEP, q, presliding, external(t, q) - bias - np.array(friction.coulomb) * presliding + noise)
        found.append(test.found)
    return found


def load_of(arm, mass):
    """Return the torque of a load behind the flange: what gravity does to the arm with it, less that without."""
    loaded = Arm(dataclasses.replace(arm.settings, tool_mass=mass, tool_com=COM.tolist()))
    return lambda t, q: arm.gravity(q) - loaded.gravity(q)


def test_the_regressor_is_that_of_a_load_behind_the_flange(arm):
    q, regressor = np.array(arm.settings.ready) + 0.2, compile_function(build_regressor(arm))
    torque = regressor.evaluate(q)[0] @ np.append(2.0, 2.0 * COM)
    np.testing.assert_allclose(torque, load_of(arm, 2.0)(0.0, q), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_load_of_two_kilograms_is_found(arm, seed):
    found = watched(arm, load_of(arm, 2.0), seed)[-1]
    assert found is not None and found.mass == pytest.approx(2.0, abs=0.6)


def test_a_load_picked_up_is_found_and_one_put_down_is_forgotten():
    arm = load_arm("fr3")
    load = load_of(arm, 2.0)
    found = watched(arm, lambda t, q: load(t, q) * (10 <= t < 25), seconds=40.0)
    masses = [None if p is None else p.mass for p in found]
    assert masses[95] is None and masses[220] == pytest.approx(2.0, abs=0.2) and masses[-1] is None


@pytest.mark.parametrize("seed", range(5))
def test_a_free_arm_carries_nothing(arm, seed):
    assert not any(watched(arm, lambda t, q: np.zeros(arm.n), seed))


@pytest.mark.parametrize("direction", [[20.0, 0.0, 0.0], [0.0, -20.0, 0.0], [0.0, 0.0, 20.0], [12.0, 12.0, 12.0]])
def test_a_push_that_is_no_weight_is_none(direction):
    arm = load_arm("fr3")
    found = watched(arm, lambda t, q: arm.tcp_jacobian(q)[:3].T @ np.array(direction))
    assert not any(found)


def test_a_short_push_downwards_is_none():
    arm = load_arm("fr3")
    found = watched(arm, lambda t, q: arm.tcp_jacobian(q)[:3].T @ np.array([0.0, 0.0, -20.0]) * (8 <= t < 11))
    assert not any(found)
