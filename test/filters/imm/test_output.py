"""The published covariance of the force: the filter's as innovations show it, depths off the law, loaded gears."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from contact_estimation.filters.imm.observer import ContactImm
from contact_estimation.filters.kalman import unpack_array
from contact_estimation.filters.registry import load_observer_settings, open_stream
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot import load_arm
from contact_estimation.robot.actuators import load_actuators
from contact_estimation.simulation.session import open_simulation

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
from rigid_body_recording import Push, RigidBodyArm, World, pushes, random_motion, record

HYSTERESIS = 7e-5  # [rad] half the width of the loop
DEPTH_ERROR = 1e-4  # [m]
RATE, PRESSED = 500, 1.0  # [Hz], [s] since when the force has been above 30 N


def estimates(arm, samples, measured, signal, value):
    """Last estimates of a stream where a signal of its filter is zero, and as the same filter tells them with it."""
    actuators = load_actuators("ur16e")
    actuators = dataclasses.replace(actuators, elastic=dataclasses.replace(actuators.elastic, hysteresis=0.0))
    sensors = load_sensor_settings(measured, arm.settings.folder)
    observer = ContactImm(arm, load_observer_settings("contact_imm"), sensors=sensors, actuators=actuators)
    stream = SampleStream(observer, arm, sensors)
    for stamp, q, dq, tau in samples:
        stream.push_fast(stamp, q, dq, tau)
    observer._signals[signal][:] = 0.0
    without = stream.estimate()
    observer._signals[signal][:] = value
    return without, stream.estimate()


@pytest.fixture(scope="module")
def press():
    """The arm and the samples of a press until it has lasted for a second."""
    simulation = open_simulation("linear_contact", "ur16e")
    samples, pressed = [], 0
    while pressed < PRESSED * RATE:
        sample = simulation.step()
        samples.append((sample.stamp_ns, sample.q.copy(), sample.dq.copy(), sample.tau.copy()))
        pressed += np.linalg.norm(sample.truth["wrench_tcp"][:3]) > 30.0
    return simulation.arm, samples


def test_a_depth_off_the_contact_law_widens_the_force_by_what_the_spring_makes_of_it(press):
    """By hand: K delta / (1 + K c) along the force, c the compliance of the elastic joints along the normal."""
    arm, samples = press
    without, told = estimates(arm, samples, "ur16e_driver", "depth_error", DEPTH_ERROR)
    assert told.mode == "contact_1"
    np.testing.assert_array_equal(told.force_tcp, without.force_tcp)
    sizes, axes = np.linalg.eigh(told.force_covariance - without.force_covariance)
    assert np.abs(sizes[:2]).max() < 1e-6 * sizes[2]
    force = np.linalg.norm(told.force_tcp)
    assert abs(axes[:, 2] @ told.force_tcp) == pytest.approx(force, rel=1e-3)
    elastic, told_stiffness = load_actuators("ur16e").elastic, told.contacts[0].stiffness
    stiffness = np.linalg.norm(told_stiffness)
    bends = (arm.tcp_jacobian(samples[-1][1])[:3].T @ told_stiffness / stiffness)[elastic.joints]
    error = stiffness * DEPTH_ERROR / (1 + stiffness * np.sum(bends**2 / elastic.stiffness))
    assert sizes[2] == pytest.approx(error**2 * force**2 / (force**2 + error**2), rel=0.05)  # its joints are learnt


def test_a_depth_off_the_contact_law_says_nothing_of_an_unknown_contact(pushed):
    without, told = estimates(*pushed, "ur16e_driver", "depth_error", DEPTH_ERROR)
    assert told.mode == "unknown"
    np.testing.assert_allclose(told.force_covariance, without.force_covariance, rtol=1e-3)


@pytest.fixture(scope="module")
def pushed():
    """The arm and the samples of a push."""
    arm, t = RigidBodyArm("ur16e"), np.arange(3 * RATE) / RATE
    push = [Push(1.5, 4.0, np.array([0.0, 40.0, 40.0]))]
    theta = random_motion("ur16e", t, np.random.default_rng(4), 0.0, 1.0)
    recording = record(arm, theta, pushes(arm, push, t), World())
    return load_arm("ur16e"), list(zip(recording.stamps.tolist(), recording.q, recording.dq, recording.tau))


def test_hysteresis_widens_the_force_of_an_unknown_contact_and_does_not_move_it(pushed):
    without, told = estimates(*pushed, "ur16e_driver", "hysteresis", HYSTERESIS)
    assert told.mode == "unknown"
    np.testing.assert_array_equal(told.force_tcp, without.force_tcp)
    sizes = np.linalg.eigvalsh(told.force_covariance - without.force_covariance)
    assert sizes[2] > 0.5 and np.abs(sizes[:2]).max() < 1e-6 * sizes[2]


@pytest.fixture(scope="module")
def quiet():
    """A resting FR3 whose torque is quieter than its settings say, pushed; its filter and the recording."""
    arm, t = RigidBodyArm("fr3"), np.arange(3 * RATE) / RATE
    theta = random_motion("fr3", t, np.random.default_rng(4), 0.0, 1.0)
    recording = record(arm, theta, pushes(arm, [Push(1.5, 4.0, np.array([10.0, 0.0, 20.0]))], t), World(noise=0.5))
    stream = open_stream("fr3", "contact_imm", None)
    for sample in zip(recording.stamps.tolist(), recording.q, recording.dq, recording.tau):
        stream.push(*sample)
    return stream, recording


def with_factors(stream, value):
    """The estimate where all variance factors are ``value``."""
    factors = stream.observer._signals["variance_factor"]
    kept = factors.copy()
    factors[:] = value
    found = stream.estimate()
    factors[:] = kept
    return found


def test_what_the_channels_measure_is_as_certain_as_their_innovations_show(quiet):
    """The same by hand: external torque less friction takes the factors, the split between them stays."""
    stream, recording = quiet
    observer, estimate = stream.observer, stream.estimate()
    probable = int(observer.probabilities.argmax())
    assert estimate.mode == "unknown" and observer.probabilities[probable] > 0.99
    state, step = observer.layout, observer.filters
    factors, presliding = observer._signals["variance_factor"], observer._signals["presliding_mean"]
    covariance, parts = unpack_array(step.p[probable], state.size), state.parts
    rows = np.zeros((state.n, state.size))
    for name, slope in (("external", 1.0), ("bias", -1.0), ("coulomb", -presliding), ("disturbance", -1.0)):
        rows[:, parts[name]] += slope * np.eye(state.n)
    measured = rows @ covariance @ rows.T
    regression = covariance @ rows.T @ np.linalg.inv(measured)
    shown = np.diag(np.sqrt(factors))
    left = covariance + regression @ (shown @ measured @ shown - measured) @ regression.T
    torque = left[parts["external"], parts["external"]] + np.diag(observer._signals["friction_drift"])
    arm = load_arm("fr3")
    jacobian, prior = arm.tcp_jacobian(recording.q[-1]), np.diag(observer._signals["wrench_variance"])
    gain = prior @ jacobian @ np.linalg.inv(jacobian.T @ prior @ jacobian + torque)
    rotation = arm.tcp_pose(recording.q[-1])[1]
    expected = rotation.T @ (prior - gain @ jacobian.T @ prior)[:3, :3] @ rotation
    np.testing.assert_allclose(estimate.force_covariance, expected, rtol=0.01)  # the other filters have 0.2 %


def test_a_quiet_arm_tells_a_force_as_exactly_as_it_does(quiet):
    stream, recording = quiet
    told, by_settings = stream.estimate(), with_factors(stream, 1.0)
    np.testing.assert_allclose(told.force_tcp, by_settings.force_tcp, atol=0.01)
    error = told.force_tcp - recording.force[-1]
    assert error @ np.linalg.solve(told.force_covariance, error) < 9.35  # chi-square of 3, 97.5 %
    assert np.trace(told.force_covariance) < 0.4 * np.trace(by_settings.force_covariance)


def test_quiet_channels_do_not_tell_a_push_from_friction(quiet):
    """Without any noise the sums are known exactly; how much of them is friction is as uncertain as before."""
    stream, _ = quiet
    observer, certain = stream.observer, with_factors(stream, 0.0)
    probable, parts = int(observer.probabilities.argmax()), observer.layout.parts
    covariance = unpack_array(observer.filters.p[probable], observer.layout.size)
    split = [covariance[parts[name], parts[name]] for name in ("bias", "disturbance")]
    least = np.linalg.eigvalsh(certain.force_covariance)[0]
    assert least > 1e-4 and min(np.diag(part).min() for part in split) > 0.0
    assert np.trace(certain.force_covariance) < np.trace(stream.estimate().force_covariance)
