"""Planted noise is found by maximum likelihood; statistics tell noise that is wrong."""

import dataclasses

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.filters.settings import SensorSettings, load_sensor_settings
from contact_estimation.fit.noise import noise_settings
from contact_estimation.fit.tuning import statistics_of, tune
from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm

VELOCITY, POSITION = 0.5, (2e-5) ** 2
SENSORS = SensorSettings()


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def noise(arm):
    """That of an EKF without contact: nothing but noise to be explained."""
    shipped = load_observer_settings("ekf")
    process = dataclasses.replace(
        shipped.process_noise, velocity=VELOCITY, unknown_torque=0.0, unknown_torque_share=0.0
    )
    measured = dataclasses.replace(shipped.measurement_noise, position=POSITION)
    right = dataclasses.replace(shipped, contacts=[], process_noise=process, measurement_noise=measured)
    return noise_settings(arm, right, SENSORS)


@pytest.fixture(scope="module")
def recording(arm):
    """The arm held by its gravity torque, shaken by accelerations of intensity VELOCITY, seen with encoder noise
    POSITION."""
    rng, h, count = np.random.default_rng(0), 0.002, 800
    start = np.array([0.9, -1.0, 2.2, -2.8, -1.5, 0.5])
    q, dq = start.copy(), np.zeros(6)
    rows = []
    for _ in range(count):
        tau = arm.gravity(q) - 60.0 * (q - start) - 40.0 * dq
        rows.append((q + np.sqrt(POSITION) * rng.normal(size=6), dq, tau))
        acceleration = np.linalg.solve(
            arm.mass(q) + h * np.diag(arm.motor.viscous),
            tau - arm.gravity(q) - arm.coriolis(q, dq) - arm.motor.viscous * dq,
        )
        q = q + h * (dq + h * acceleration)
        dq = dq + h * acceleration + np.sqrt(VELOCITY * h) * rng.normal(size=6)
    q, dq, tau = (np.array(column) for column in zip(*rows))
    return Recording(np.arange(count) * 2_000_000, arm.joint_names, q, dq, tau, "shaken")


def statistics(arm, noise, recording, **factors):
    return statistics_of(arm, noise.scaled(factors), SENSORS, [recording])[0]


def test_the_planted_noise_is_found_from_a_start_a_thousand_times_off(arm, noise, recording):
    wrong = noise.scaled({"velocity": 1000.0, "position": 30.0})
    found = tune(arm, wrong, SENSORS, [recording], ("velocity", "position"), evaluations=55)
    assert found.noise.value("velocity") == pytest.approx(VELOCITY, rel=0.25)
    assert found.noise.value("position") == pytest.approx(POSITION, rel=0.15)
    assert found.after[0].log_likelihood > found.before[0].log_likelihood
    assert found.after[0].nis_mean == pytest.approx(1.0, abs=0.05)
    assert found.after[0].inside == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("planted", [0.5, 2.0])
def test_the_torque_noise_of_the_contact_imm_filter_is_found(planted):
    """An FR3 at rest: the noise of its torque is ``planted`` times the configured one."""
    arm, rng, count, per_block = load_arm("fr3"), np.random.default_rng(1), 1000, 5
    sensors = load_sensor_settings(arm.settings.sensors)
    noise = noise_settings(arm, load_observer_settings("contact_imm", arm.settings.folder), sensors)
    # No noise of the velocity, which a block's momentum would have besides.
    noise = dataclasses.replace(noise, values=dataclasses.replace(noise.values, velocity_noise=0.0))
    q = np.tile([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785], (count, 1))
    std = planted * np.sqrt(per_block) * np.array(noise.value("torque"))
    tau = arm.gravity(q[0]) + std * rng.normal(size=q.shape)
    held = Recording(np.arange(count) * 2_000_000, arm.joint_names, q, 0 * q, tau, "held")
    found = tune(arm, noise, sensors, [held], ("torque",), evaluations=14)
    np.testing.assert_allclose(found.noise.value("torque"), planted * np.array(noise.value("torque")), rtol=0.1)
    before, after = found.before[0], found.after[0]
    assert (planted - 1) * (before.nis_mean - 1) > 0.3 and after.nis_mean == pytest.approx(1.0, abs=0.1)
    assert after.log_likelihood > before.log_likelihood and after.refused < 0.01 * count
    assert len(found.channels) == len(after.mean_square) == arm.n
    np.testing.assert_allclose(after.mean_square, 1.0, atol=0.35)


def test_right_noise_gives_consistent_and_white_innovations(arm, noise, recording):
    right = statistics(arm, noise, recording)
    assert right.nis_mean == pytest.approx(1.0, abs=0.05) and right.inside == pytest.approx(0.95, abs=0.02)
    assert np.abs(right.correlation).max() < 0.1


@pytest.mark.parametrize("factor, sign", [(100.0, -1), (0.01, 1)])
def test_wrong_noise_shows_in_the_statistics(arm, noise, recording, factor, sign):
    """Too much process noise: innovations smaller than expected; too little: larger, and a lower likelihood either
    way."""
    right, wrong = (statistics(arm, noise, recording, velocity=factor_, position=factor_) for factor_ in (1.0, factor))
    assert sign * (wrong.nis_mean - 1) > 0.9 and wrong.log_likelihood < right.log_likelihood - 0.1


def test_the_log_likelihood_is_that_of_the_innovations(arm, noise, recording):
    """Against the same filter written out in numpy, with a constant mass matrix: the arm hardly moves."""
    n, h = arm.n, 0.002
    a = np.block([[np.eye(n), h * np.eye(n)], [np.zeros((n, n)), np.eye(n)]])
    c, p = np.hstack([np.eye(n), np.zeros((n, n))]), np.diag(np.repeat([1e-4, 1e-2], n) ** 2.0)
    q_noise = np.diag(np.repeat([1e-12, VELOCITY], n)) * h
    for _ in range(2000):
        p = a @ p @ a.T + q_noise
        s = c @ p @ c.T + POSITION * np.eye(n)
        p = p - p @ c.T @ np.linalg.solve(s, c @ p)
    expected = -0.5 * (n + np.linalg.slogdet(s)[1] + n * np.log(2 * np.pi)) / n
    assert statistics(arm, noise, recording).log_likelihood == pytest.approx(expected, abs=0.03)


def test_bad_requests_are_refused(arm, noise, recording):
    with pytest.raises(ConfigError, match="cannot tune 'tork'; known: torque, "):
        tune(arm, noise, SENSORS, [recording], ("tork",))
    with pytest.raises(ConfigError, match=r"process_noise.rest is 0"):
        tune(arm, noise.scaled({"rest": 0.0}), SENSORS, [recording], ("rest",))
    with pytest.raises(ConfigError, match="of kind 'momentum' cannot be tuned"):
        noise_settings(arm, load_observer_settings("momentum"), SENSORS)
    short = dataclasses.replace(
        recording, stamps_ns=recording.stamps_ns[:60], q=recording.q[:60], dq=recording.dq[:60], tau=recording.tau[:60]
    )
    with pytest.raises(RecordingError, match="innovations are too few"):
        statistics(arm, noise, short)
