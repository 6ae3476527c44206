"""Position, velocity and torque of a stream against each other: what disagrees is named, and forgotten when it ends."""

import dataclasses
import itertools

import numpy as np
import pytest

from contact_estimation import load_arm
from contact_estimation.filters.plausibility.monitor import SignalMonitor
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot.actuators import actuators_of

H = 0.002
Q = np.array([0.2, -1.0, 1.2, -1.8, -1.5, 0.3])


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


class Motion:
    """A slow motion of all joints with encoder and torque noise, sample by sample."""

    def __init__(self, arm, speed=0.1, seed=0):
        self.arm, self.rng, self.speed = arm, np.random.default_rng(seed), speed
        self.monitor = SignalMonitor(arm, SensorSettings(), np.ones(6))
        self.time, self.refused = 0.0, 0
        self.frozen_at = None

    def hold(self):
        """Stand still from now on."""
        self.frozen_at = self.time

    def run(self, seconds, change=lambda q, dq, tau: (q, dq, tau)):
        """The last problem told; the first ones in ``self.told``."""
        self.told = []
        for _ in range(round(seconds / H)):
            self.time += H
            phase = (self.frozen_at or self.time) + np.arange(6)
            q = Q + self.speed * (np.sin(phase) - np.sin(np.arange(6))) + self.rng.normal(0, 1.2e-5, 6)
            dq = self.speed * np.cos(phase) * (self.frozen_at is None)
            tau = self.arm.gravity(q) + self.rng.normal(0, [1.0, 1.5, 0.8, 0.4, 0.25, 0.2])
            used = self.monitor.add(self.time, H, *change(q, dq, tau))
            self.refused += not used
            if self.monitor.problem:
                self.told.append(self.monitor.problem)
        return self.monitor.problem


def on(joint, value):
    """The vector with one entry replaced."""

    def change(v):
        v = v.copy()
        v[joint] = value(v[joint])
        return v

    return change


FAULTS = {
    "the position of elbow_joint is frozen": lambda q, dq, tau: (on(2, lambda x: 1.0)(q), dq, tau),
    "the velocity is missing": lambda q, dq, tau: (q, 0 * dq, tau),
    "the sign": lambda q, dq, tau: (q, on(1, np.negative)(dq), tau),
    "every joint by the factor": lambda q, dq, tau: (q, 2 * dq, tau),
    "the torque of shoulder_lift_joint is frozen": lambda q, dq, tau: (q, dq, on(1, lambda x: 7.0)(tau)),
    "the velocity of wrist_1_joint is frozen": lambda q, dq, tau: (q, on(3, lambda x: 0.04)(dq), tau),
}


@pytest.mark.parametrize("words", FAULTS)
def test_a_fault_of_one_signal_is_named(arm, words):
    motion = Motion(arm)
    assert motion.run(1.0) == ""
    motion.run(0.6, FAULTS[words])
    assert any(words in told for told in motion.told), set(motion.told)


def test_clean_motion_is_never_doubted(arm):
    motion = Motion(arm, speed=0.4)
    motion.run(8.0)
    assert motion.told == []


def test_a_fault_that_ended_is_forgotten(arm):
    motion = Motion(arm)
    motion.run(1.0)
    assert motion.run(0.5, FAULTS["the sign"])
    motion.run(12.0)  # the long comparison forgets with its time constant
    assert motion.told[-1] and motion.monitor.problem == ""
    assert motion.run(SensorSettings().plausibility.hold) == ""


def test_joints_that_bend_under_a_load_are_no_fault(arm):
    motion = Motion(arm, speed=0.0)
    motion.run(0.5)
    bend = np.linspace(0, 2e-3, 250)  # a UR16e's shoulder under 100 N at the tool, within half a second
    steps = iter(bend)
    motion.run(0.5, lambda q, dq, tau: (q + on(1, lambda x: next(steps))(0 * q), dq, tau))
    assert motion.told == []


@pytest.mark.parametrize(
    "spike",
    [
        lambda q, dq, tau: (q, on(1, lambda x: x + 3.0)(dq), tau),
        lambda q, dq, tau: (q, dq, on(1, lambda x: 250.0)(tau)),
    ],
)
def test_a_spike_is_refused_and_leaves_no_trace(arm, spike):
    motion = Motion(arm)
    motion.run(1.0)
    motion.run(H, spike)
    assert motion.refused == 1
    motion.run(1.0)
    assert motion.told == [] and motion.refused == 1


@pytest.mark.parametrize(("every", "told"), [(5, True), (50, False)])
def test_spikes_that_come_often_are_noise(arm, every, told):
    motion, count = Motion(arm), itertools.count()
    motion.run(1.0)
    motion.run(1.0, lambda q, dq, tau: (q, dq, tau + 250.0 * (next(count) % every == 0)))
    assert any("come so often" in words for words in motion.told) == told


@pytest.mark.parametrize("calibrated", [2e-4, 0.0])  # from an arm at rest, whose velocity is exactly zero
@pytest.mark.parametrize("speed", [0.0, 0.4])
@pytest.mark.parametrize(("factor", "told"), [(1.0, False), (57.3, True)])
def test_a_velocity_is_as_quiet_as_its_sensor(arm, calibrated, speed, factor, told, monkeypatch):
    actuators = dataclasses.replace(actuators_of(arm), velocity_noise=calibrated)
    monkeypatch.setattr("contact_estimation.filters.plausibility.monitor.actuators_of", lambda *_, **__: actuators)
    motion, rng = Motion(arm, speed), np.random.default_rng(4)
    motion.run(1.0, lambda q, dq, tau: (q, dq + factor * rng.normal(0, 2e-4, 6), tau))
    assert any("the velocity of" in words and "is noise" in words for words in motion.told) == told


def test_an_encoder_that_slips_is_told(arm):
    motion = Motion(arm)
    motion.run(1.0)
    motion.run(0.1, lambda q, dq, tau: (on(2, lambda x: x + 0.05)(q), dq, tau))
    assert "elbow_joint moved" in motion.told[-1]


def test_rest_does_not_prove_that_position_and_velocity_agree(arm):
    motion = Motion(arm)
    motion.run(1.0)
    assert motion.run(0.5, FAULTS["the sign"])
    motion.hold()
    assert motion.run(6.0)


def test_a_torque_that_is_noise_is_told(arm):
    motion, rng = Motion(arm), np.random.default_rng(3)
    motion.run(1.0)
    motion.run(0.3, lambda q, dq, tau: (q, dq, tau + rng.normal(0, 25, 6)))
    assert any("is noise" in told for told in motion.told)


def test_a_pulse_of_the_torque_is_no_noise(arm):
    motion = Motion(arm)
    motion.run(1.0)
    motion.run(0.01, lambda q, dq, tau: (q, dq, on(1, lambda x: x + 150.0)(tau)))
    motion.run(0.3)
    assert motion.run(0.2) == ""


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_stamps_at_another_rate_are_told_although_the_motion_reverses(arm, factor):
    motion = Motion(arm, speed=0.4)
    motion.run(1.0)
    motion.run(3.0, lambda q, dq, tau: (q, factor * dq, tau))
    assert np.mean([bool(told) for told in motion.told]) == 1.0 and len(motion.told) > 0.9 * 3.0 / H


def test_a_velocity_that_a_filter_delays_is_no_fault(arm):
    motion, past = Motion(arm, speed=0.8), []

    def late(q, dq, tau):
        past.append(dq)
        return q, past[max(len(past) - 6, 0)], tau  # 10 ms

    motion.run(8.0, late)
    assert motion.told == []


def test_a_velocity_of_reversed_sign_is_no_exchange(arm):
    """Joints that move alike, in opposite directions."""
    motion, signs = Motion(arm), np.array([1.0, -1.0] * 3)

    def alike(q, dq, tau):
        return Q + signs * (q[0] - Q[0]), signs * dq[0], tau

    problem = motion.run(1.0, lambda *sample: (alike(*sample)[0], -alike(*sample)[1], sample[2]))
    assert "its velocity says" in problem and problem.endswith("the sign of one of them is wrong")


@pytest.mark.parametrize("hertz", [10.0, 16.5])
def test_a_torque_that_swings_smoothly_is_no_noise(arm, hertz):
    """An arm that is shaken, or a tool that chatters: its torque changes as fast as noise, but not back and forth."""
    motion, count = Motion(arm), itertools.count()
    motion.run(1.0)
    per_friction = motion.monitor.readings.per_friction
    size = (
        1.5 * 2.0**0.5 * 2.0 / (2 * np.pi * hertz * H) / per_friction[1]
    )  # 1.5 times what noise may change in a sample
    motion.run(
        0.5, lambda q, dq, tau: (q, dq, on(1, lambda x: x + size * np.sin(2 * np.pi * hertz * H * next(count)))(tau))
    )
    assert not any("is noise" in told for told in motion.told)
