"""A torque that is late is named after a motion, in a world that shares no code; a healthy one is not.

Nor is the torque of a compliant arm that a contact or its table shakes.
"""

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.filters.plausibility.delays import DelayEvidence
from contact_estimation.filters.plausibility.monitor import SignalMonitor
from contact_estimation.filters.plausibility.torque_readings import BLOCK
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.robot import load_arm

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
from rigid_body_recording import RATE, START, RigidBodyArm, World, pushes, random_motion, record


@pytest.fixture(scope="module", params=["ur16e", "fr3"])
def recording(request):
    """Three seconds of free motion after one of rest."""
    body, t = RigidBodyArm(request.param), np.arange(4 * RATE) / RATE
    theta = random_motion(request.param, t, np.random.default_rng(0), 0.3, 2.0)
    return request.param, record(body, theta, pushes(body, [], t), World())


def monitor_of(robot):
    arm = load_arm(robot)
    sensors = load_sensor_settings("ur16e_driver" if robot == "ur16e" else arm.settings.sensors, arm.settings.folder)
    return SignalMonitor(arm.measured_at(sensors.torque_side), sensors, np.ones(arm.n))


@pytest.mark.parametrize("delay", [0.0, 0.08, 0.14])
def test_a_torque_that_is_late_is_named(recording, delay):
    robot, r = recording
    monitor, late = monitor_of(robot), round(delay * RATE)
    for k, stamp in enumerate(r.stamps):
        monitor.add(1e-9 * stamp, 1 / RATE, r.q[k], r.dq[k], r.tau[max(k - late, 0)] + 1e-6 * k)
    assert ("s late" in monitor.problem) == (delay > 0), monitor.problem


STIFFNESS = np.array([600.0, 600, 600, 600, 250, 150, 50])  # [Nm/rad]
DAMPING = np.array([45.0, 45, 45, 40, 14, 10, 5])  # [Nms/rad]
ROTOR = np.array([0.3, 0.3, 0.3, 0.3, 0.12, 0.1, 0.1])  # [kg m^2] behind the torque sensors


def compliant(goal, force, shake, seconds, seed):
    """An FR3 in joint impedance control, by the articulated-body algorithm; yields q, dq, tau as measured.

    Args:
        goal: t -> (n,) [rad] equilibrium.
        force: t -> (3,) [N] at the TCP, base axes.
        shake: t -> (3,) [m/s^2] acceleration of the base.
        seconds: how long.
        seed: of noise, friction and posture.
    """
    rng, body, steps = np.random.default_rng(seed), RigidBodyArm("fr3"), 4
    h, gravity, coulomb = 1 / (RATE * steps), body.model.gravity.linear.copy(), 0.25 * rng.uniform(0.6, 1.3, body.n)
    start = np.array(START["fr3"]) + rng.uniform(-0.4, 0.4, body.n)
    q, dq, bristle, measured = start.copy(), np.zeros(body.n), np.zeros(body.n), np.zeros(body.n)
    body.model.armature = ROTOR
    for k in range(round(seconds * RATE)):
        t = k / RATE
        model = pin.computeGeneralizedGravity(body.model, body.data, q)
        external = body.jacobian(q).T @ force(t)
        for j in range(steps):
            tau = model + STIFFNESS * (start + goal(t) - q) - DAMPING * dq
            bristle = (bristle + h * dq) / (1 + h * np.abs(dq) / 3e-4)
            body.model.gravity.linear = gravity - shake(t + j * h)
            ddq = pin.aba(body.model, body.data, q, dq, tau + external - coulomb * bristle / 3e-4)
            measured = tau - ROTOR * ddq
            dq = dq + h * ddq
            q = q + h * dq
        body.model.gravity.linear = gravity
        yield q, dq + rng.normal(0, 5e-4, body.n), measured + rng.normal(0, 0.06, body.n)


def verdict(samples, late=0.0):
    """How long [s] a torque that comes ``late`` [s] is called late; whether anything else is told."""
    monitor, past, named, others = monitor_of("fr3"), [], 0, set()
    for k, (q, dq, tau) in enumerate(samples):
        past.append(tau)
        monitor.add(1.0 + k / RATE, 1 / RATE, q, dq, past[max(k - round(late * RATE), 0)])
        if "s late" in monitor.problem:
            named += 1
        elif monitor.problem:
            others.add(monitor.problem)
    return named / RATE, others


def nothing(t):
    return np.zeros(3)


def still(t):
    return 0.0


def grown(t):
    """Zero for a second, then up to one within 0.1 s."""
    return min(max(10 * (t - 1.0), 0.0), 1.0)


def pushed(force, rate):
    """A push that swings between a fifth of ``force`` (3,) [N] and all of it, ``rate`` [Hz]."""
    return lambda t: grown(t) * np.array(force) * (0.6 + 0.4 * np.sin(2 * np.pi * rate * t))


def shaken(force, rate, other, other_rate):
    """A hand that shakes the arm at two rates [Hz], along ``force`` and ``other`` (3,) [N]."""

    def act(t):
        first, second = np.sin(2 * np.pi * rate * t), np.sin(2 * np.pi * other_rate * t)
        return grown(t) * (np.array(force) * first + np.array(other) * second)

    return act


CONTACTS = [
    (pushed([-14.5, -37.4, 11.1], 2.47), nothing, 1),
    (pushed([7.3, 25.1, 11.1], 4.42), nothing, 2),
    (pushed([11.5, 11.5, -12.7], 2.88), nothing, 4),
    (pushed([-1.0, 20.1, 32.0], 2.98), nothing, 5),
    (shaken([-6.9, 1.7, 4.6], 5.87, [2.9, 2.9, 3.0], 1.33), nothing, 0),
    (nothing, lambda t: grown(t) * np.array([-0.813, -2.093, 0.621]) * np.sin(15.530 * t), 1),
]


@pytest.mark.parametrize(("force", "shake", "seed"), CONTACTS)
def test_a_compliant_arm_that_is_shaken_is_not_late(force, shake, seed):
    assert verdict(compliant(still, force, shake, 5.0, seed)) == (0.0, set())


def test_a_hand_that_guides_a_compliant_arm_through_a_motion_is_not_taken_for_lateness():
    force = shaken([20.0, 10.0, 15.0], 0.7, [-10.0, 25.0, 5.0], 1.1)
    assert verdict(compliant(still, force, nothing, 6.0, 0)) == (0.0, set())


#: [rad/s] of the sinusoids of a fast motion.
RATES = np.array([5.0, 4.0, 6.0, 5.5, 4.5, 5.0, 6.5])


def fast(seconds):
    return list(compliant(lambda t: 0.25 * grown(t) * np.sin(RATES * t), nothing, nothing, seconds, 0))


@pytest.mark.parametrize("late", [0.04, 0.06, 0.08])
def test_a_torque_that_is_late_is_named_in_a_fast_motion_of_a_compliant_arm(late):
    samples = fast(4.0)
    assert verdict(samples) == (0.0, set())
    assert verdict(samples, late)[0] > 2.5  # of 3 s of motion


def test_a_torque_that_is_punctual_again_is_used_after_two_seconds_of_free_motion():
    monitor, samples, switch = monitor_of("fr3"), fast(5.5), round(3.5 * RATE)
    told = []
    for k, (q, dq, _) in enumerate(samples):
        tau = samples[k - 30 if RATE < k < switch else k][2]
        monitor.add(1.0 + k / RATE, 1 / RATE, q, dq, tau)
        told.append(monitor.problem)
    assert "s late" in told[switch] and told[-1] == ""


BAD = (3.0, 3.0, 3.0)


def told(evidence, own, late, seconds, early=BAD):
    """Feed constant misfits; return the delay that is found."""
    for _ in range(round(seconds / BLOCK)):
        evidence.add(BLOCK, own, np.asarray(late), np.asarray(early))
    return evidence.found


def test_what_neither_explains_tells_nothing():
    assert told(DelayEvidence(), 4.0, [1.5, 1.2, 1.1], 5.0) == -1


def test_a_moment_tells_nothing():
    assert told(DelayEvidence(), 0.9, [0.5, 0.1, 0.2], 0.2) == -1


def test_a_delay_that_ended_is_forgotten():
    evidence = DelayEvidence()
    assert told(evidence, 0.9, [0.5, 0.1, 0.2], 2.0) == 1
    assert told(evidence, 0.1, [0.5, 0.9, 0.9], 2.0) == -1


def test_blocks_that_nothing_explains_tell_against_a_delay():
    """A contact: now and then a delay explains its torque, by chance."""
    evidence = DelayEvidence()
    for _ in range(20):
        assert told(evidence, 0.9, [0.5, 0.1, 0.2], 0.1) == -1
        assert told(evidence, 4.0, [3.5, 3.2, 3.3], 0.1) == -1


def test_a_torque_that_is_as_early_as_it_is_late_is_periodic():
    assert told(DelayEvidence(), 0.9, [0.5, 0.1, 0.2], 2.0, early=[0.1, 0.9, 0.9]) == -1


def test_a_contact_does_not_end_a_delay_that_was_found():
    evidence = DelayEvidence()
    assert told(evidence, 0.9, [0.5, 0.1, 0.2], 2.0) == 1
    assert told(evidence, 2.0, [2.5, 2.9, 2.9], 5.0) == 1
