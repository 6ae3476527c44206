"""Planted noise is found by maximum likelihood; statistics tell noise that is wrong."""

import dataclasses

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.fit.innovations import innovation_statistics
from contact_estimation.fit.tuning import tune, with_noise
from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm

VELOCITY, POSITION = 0.5, (2e-5) ** 2
SENSORS = SensorSettings()


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def settings():
    """An EKF without contact: nothing but noise to be explained."""
    shipped = load_observer_settings("ekf")
    noise = dataclasses.replace(shipped.process_noise, velocity=VELOCITY, unknown_torque=0.0, unknown_torque_share=0.0)
    return dataclasses.replace(shipped, contacts=[], process_noise=noise)


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


def statistics(arm, settings, recording, **noise):
    return innovation_statistics(SampleStream(Ekf(arm, with_noise(settings, noise)), arm, SENSORS), recording)


def test_the_planted_noise_is_found_from_a_start_a_thousand_times_off(arm, settings, recording):
    wrong = with_noise(settings, {"velocity": 1000 * VELOCITY, "position": 30 * POSITION})
    found = tune(arm, wrong, SENSORS, [recording], ("velocity", "position"), evaluations=55)
    assert found.settings.process_noise.velocity == pytest.approx(VELOCITY, rel=0.25)
    assert found.settings.measurement_noise.position == pytest.approx(POSITION, rel=0.15)
    assert found.after[0].log_likelihood > found.before[0].log_likelihood
    assert found.after[0].nis_mean == pytest.approx(1.0, abs=0.05)
    assert found.after[0].inside == pytest.approx(0.95, abs=0.02)


def test_right_noise_gives_consistent_and_white_innovations(arm, settings, recording):
    right = statistics(arm, settings, recording, velocity=VELOCITY, position=POSITION)
    assert right.nis_mean == pytest.approx(1.0, abs=0.05) and right.inside == pytest.approx(0.95, abs=0.02)
    assert np.abs(right.correlation).max() < 0.1


@pytest.mark.parametrize("factor, sign", [(100.0, -1), (0.01, 1)])
def test_wrong_noise_shows_in_the_statistics(arm, settings, recording, factor, sign):
    """Too much process noise: innovations smaller than expected; too little: larger, and a lower likelihood either
    way."""
    right = statistics(arm, settings, recording, velocity=VELOCITY, position=POSITION)
    wrong = statistics(arm, settings, recording, velocity=factor * VELOCITY, position=factor * POSITION)
    assert sign * (wrong.nis_mean - 1) > 0.9 and wrong.log_likelihood < right.log_likelihood - 0.1


def test_the_log_likelihood_is_that_of_the_innovations(arm, settings, recording):
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
    found = statistics(arm, settings, recording, velocity=VELOCITY, position=POSITION)
    assert found.log_likelihood == pytest.approx(expected, abs=0.03)


def test_bad_requests_are_refused(arm, settings, recording):
    with pytest.raises(ConfigError, match="cannot tune 'tork'; known: torque, "):
        tune(arm, settings, SENSORS, [recording], ("tork",))
    with pytest.raises(ConfigError, match=r"process_noise.rest is 0"):
        tune(arm, with_noise(settings, {"rest": 0.0}), SENSORS, [recording], ("rest",))
    short = dataclasses.replace(
        recording, stamps_ns=recording.stamps_ns[:60], q=recording.q[:60], dq=recording.dq[:60], tau=recording.tau[:60]
    )
    with pytest.raises(RecordingError, match="innovations are too few"):
        innovation_statistics(SampleStream(Ekf(arm, settings), arm, SENSORS), short)
