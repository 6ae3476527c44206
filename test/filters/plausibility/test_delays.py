"""A torque that is late is named after a motion, in a world that shares no code; a healthy one is not."""

import sys
from pathlib import Path

import numpy as np
import pytest

from contact_estimation.filters.plausibility.delays import DelayEvidence
from contact_estimation.filters.plausibility.monitor import SignalMonitor
from contact_estimation.filters.plausibility.settings import TorqueReadingSettings
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.robot import load_arm

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
from rigid_body_recording import RATE, RigidBodyArm, World, pushes, random_motion, record

SETTINGS = TorqueReadingSettings()


@pytest.fixture(scope="module", params=["ur16e", "fr3"])
def recording(request):
    """Three seconds of free motion after one of rest."""
    body, t = RigidBodyArm(request.param), np.arange(4 * RATE) / RATE
    theta = random_motion(request.param, t, np.random.default_rng(0), 0.3, 2.0)
    return request.param, record(body, theta, pushes(body, [], t), World())


@pytest.mark.parametrize("delay", [0.0, 0.08, 0.14])
def test_a_torque_that_is_late_is_named(recording, delay):
    robot, r = recording
    arm = load_arm(robot)
    sensors = load_sensor_settings("ur16e_driver" if robot == "ur16e" else arm.settings.sensors, arm.settings.folder)
    monitor = SignalMonitor(arm.measured_at(sensors.torque_side), sensors, np.ones(arm.n))
    late = round(delay * RATE)
    for k, stamp in enumerate(r.stamps):
        monitor.add(1e-9 * stamp, 1 / RATE, r.q[k], r.dq[k], r.tau[max(k - late, 0)] + 1e-6 * k)
    assert ("s late" in monitor.problem) == (delay > 0), monitor.problem


def told(evidence, own, late, seconds):
    """Feed constant misfits; return the delay that is found."""
    for _ in range(round(seconds / SETTINGS.block)):
        evidence.add(SETTINGS.block, own, np.asarray(late))
    return evidence.found


def test_what_neither_explains_tells_nothing():
    assert told(DelayEvidence(SETTINGS), 4.0, [1.5, 1.2, 1.1], 5.0) == -1


def test_a_moment_tells_nothing():
    assert told(DelayEvidence(SETTINGS), 0.9, [0.5, 0.1, 0.2], 0.2) == -1


def test_a_delay_that_ended_is_forgotten():
    evidence = DelayEvidence(SETTINGS)
    assert told(evidence, 0.9, [0.5, 0.1, 0.2], 2.0) == 1
    assert told(evidence, 0.1, [0.5, 0.9, 0.9], 2.0) == -1
