"""Two stiffnesses, and a force that is no line of the depth, are named; the world is Pinocchio's, friction LuGre's."""

import dataclasses
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmark"))
from rigid_body_recording import RATE, RigidBodyArm, World, record

from contact_estimation.exceptions import RecordingError
from contact_estimation.filters.registry import load_observer_settings, load_sensor_settings
from contact_estimation.fit import stiffness_tests
from contact_estimation.fit.unbiased import UnbiasedSettings, fit_unbiased
from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm

STIFFNESS, DEPTH = 2e4, 3e-3  # [N/m, m]
OPTIONS = UnbiasedSettings(estimate=("stiffness", "rest"), passes=2)


@pytest.fixture(scope="module")
def arm():
    return load_arm("fr3")


@cache
def press(stiffness=STIFFNESS, power=1.0, seed=0):
    """Three presses of an FR3 on a table, of different speed and depth, in 8 s."""
    arm, t = RigidBodyArm("fr3"), np.arange(0, 8.0, 1 / RATE)
    depth = np.full(len(t), -5e-3)
    for start, down, up, end, peak in ((0.5, 1.5, 1.8, 2.6, 1.0), (3.0, 3.5, 4.0, 4.6, 0.7), (5.0, 6.0, 6.3, 7.5, 0.9)):
        ways = (np.clip((t - a) / (b - a), 0, 1) for a, b in ((start, down), (up, end)))
        there, back = (s**3 * (10 - 15 * s + 6 * s**2) for s in ways)
        depth += (peak * DEPTH + 5e-3) * (there - back)
    home = arm.pose(arm.start)
    height = home.translation[2] - 5e-3
    theta, q = np.zeros((len(t), arm.n)), arm.start
    for k, d in enumerate(depth):
        q = arm.reach(home.translation - np.array([0.0, 0.0, 5e-3 + d]), home.rotation, q)
        theta[k] = q

    def force(_, q):
        deep = max(height - arm.pose(q).translation[2], 0.0) / DEPTH
        pushed = np.array([0.0, 0.0, stiffness * DEPTH * deep**power])
        return arm.jacobian(q).T @ pushed, pushed

    made = record(arm, theta, force, World(seed=seed))
    name = f"{stiffness:.0f}_{power:g}_{seed}.npz"
    return Recording(made.stamps, load_arm("fr3").joint_names, made.q, made.dq, made.tau, name)


def fitted(arm, *recordings, options=OPTIONS):
    settings = load_observer_settings("ekf")
    return fit_unbiased(arm, settings, load_sensor_settings("link_torque"), list(recordings), options)


def test_recordings_of_one_linear_spring_are_not_doubted(arm):
    found = fitted(arm, press(), press(seed=1))
    assert found.doubts == [] and found.contacts[0].stiffness == pytest.approx(STIFFNESS, rel=0.05)


def test_a_force_that_grows_faster_than_depth_is_doubted(arm):
    (doubt,) = fitted(arm, press(power=1.5)).doubts
    assert "the force of 'contact_1' grows faster than depth" in doubt
    power, std = (float(x) for x in re.search(r"power ([\d.]+) \+- ([\d.]+) to first order", doubt).groups())
    assert 1.2 < power < 1.6 and std < 0.05


def test_a_force_that_grows_slower_than_depth_is_doubted(arm):
    assert "grows slower than depth" in fitted(arm, press(power=0.6)).doubts[0]


def test_a_recording_of_a_stiffer_surface_is_named(arm):
    (doubt,) = fitted(arm, press(), press(1.6 * STIFFNESS, seed=1)).doubts
    apart, std = (float(x) for x in re.search(r"is (\d+) \+- (\S+) N/m stiffer", doubt).groups())
    assert "stiffer in 32000_1_1.npz than in 20000_1_0.npz" in doubt and "--also" in doubt
    assert apart == pytest.approx(0.6 * STIFFNESS, rel=0.25) and std < 0.1 * STIFFNESS


def test_of_three_recordings_the_odd_one_is_named():
    """Recordings of -0.02, 0 and 0.5 of the stiffness beside the first, each known to 0.01."""
    told = stiffness_tests._different("table", 1e4, "abc", np.array([-0.02, 0.5]), 1e-4 * np.eye(2))
    assert told.startswith("'table' is 5100 +- 1e+02 N/m stiffer in c than in the others")
    assert not stiffness_tests._different("table", 1e4, "abc", np.array([-0.02, 0.05]), 1e-4 * np.eye(2))
    assert not stiffness_tests._different("table", 1e4, "a", np.zeros(0), np.zeros((0, 0)))


def test_a_stiffness_that_is_not_fitted_is_not_tested(arm):
    options = dataclasses.replace(OPTIONS, estimate=("rest",), passes=1)
    assert not any("depth (power" in doubt for doubt in fitted(arm, press(power=1.5), options=options).doubts)


def test_times_in_milliseconds_are_asked_for(arm):
    recording = press()
    stamps = (recording.stamps_ns - recording.stamps_ns[0]) * 1000
    with pytest.raises(RecordingError, match=r"gaps are longer than .* is `t` in milliseconds"):
        fitted(arm, dataclasses.replace(recording, stamps_ns=stamps))
