"""Planted noise is found by maximum likelihood; statistics tell noise that is wrong."""

import dataclasses

import numpy as np
import pytest
from scipy.signal import lfilter

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.filters.settings import SensorSettings, load_sensor_settings
from contact_estimation.fit.noise import noise_settings
from contact_estimation.fit.tuning import statistics_of, tune
from contact_estimation.fit.tuning_doubts import EstimateChange, failures, judge
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


class HeldArm:
    """An FR3 at rest under the contact IMM filter; only the noise of its torque is planted."""

    count, per_block = 1000, 5

    def __init__(self):
        self.arm = load_arm("fr3")
        self.sensors = load_sensor_settings(self.arm.settings.sensors)
        observer = load_observer_settings("contact_imm", self.arm.settings.folder)
        noise = noise_settings(self.arm, observer, self.sensors)
        # No noise of the velocity, which a block's momentum would have besides.
        self.noise = dataclasses.replace(noise, values=dataclasses.replace(noise.values, velocity_noise=0.0))
        self.configured = np.array(self.noise.value("torque"))

    def recording(self, factor, colour=0.0):
        """Torque noise of ``factor`` times the configured one, a number or one per sample; ``colour``: correlation of
        a block with the next."""
        q = np.tile([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785], (self.count, 1))
        white = np.random.default_rng(1).normal(size=q.shape)
        if colour:
            step = colour ** (1 / self.per_block)
            white = lfilter([np.sqrt(1 - step**2)], [1, -step], white, axis=0) / np.sqrt(self.per_block)
        std = np.sqrt(self.per_block) * self.configured * np.reshape(factor, (-1, 1))
        tau = self.arm.gravity(q[0]) + std * white
        return Recording(np.arange(self.count) * 2_000_000, self.arm.joint_names, q, 0 * q, tau, "held")

    def tune(self, recording, names=("torque",), evaluations=14):
        return tune(self.arm, self.noise, self.sensors, [recording], names, evaluations)


@pytest.fixture(scope="module")
def held_arm():
    return HeldArm()


@pytest.mark.parametrize("planted", [0.5, 2.0])
def test_the_torque_noise_of_the_contact_imm_filter_is_found(planted, held_arm):
    """The noise of the torque is ``planted`` times the configured one; nothing contradicts the tuned noise."""
    found = held_arm.tune(held_arm.recording(planted))
    np.testing.assert_allclose(found.noise.value("torque"), planted * held_arm.configured, rtol=0.1)
    before, after = found.before[0], found.after[0]
    assert (planted - 1) * (before.nis_mean - 1) > 0.3 and after.nis_mean == pytest.approx(1.0, abs=0.1)
    assert after.log_likelihood > before.log_likelihood and after.refused < 0.01 * held_arm.count
    assert len(found.channels) == len(after.mean_square) == held_arm.arm.n
    np.testing.assert_allclose(after.mean_square, 1.0, atol=0.35)
    judged = judge(found, 14)
    assert judged.failures == judged.doubts == []
    assert (judged.held_out.other > judged.held_out.given).all() and judged.change.force < 1.0


def test_tuned_noise_of_a_coloured_torque_is_doubted(held_arm):
    """A torque error that lasts some blocks: its innovations repeat, and the tuned filter takes it for a contact."""
    judged = judge(held_arm.tune(held_arm.recording(1.0, colour=0.9)), 14, validation=False)
    text = " ".join(judged.doubts)
    assert not judged.failures and judged.held_out is None
    assert "innovations repeat (torque of fr3_joint" in text and "free before, is a contact with the tuned" in text
    assert judged.change.to_contact > 0.2 and judged.change.beyond > 0.2


def test_noise_that_the_recording_does_not_show_and_a_search_that_did_not_end_are_doubted(held_arm):
    """An arm at rest shows no error of its model; eight runs do not find two noises."""
    judged = judge(held_arm.tune(held_arm.recording(1.0), ("torque", "model"), 8), 8, validation=False)
    text = " ".join(judged.doubts)
    assert "do not show model" in text and "do not show torque" not in text and "ended after 8 runs" in text


def test_noise_of_halves_that_contradict_each_other_fails(held_arm):
    """First a fifth, then five times the configured noise: what describes one half is worse for the other."""
    factor = np.repeat([0.2, 5.0], held_arm.count // 2)
    judged = judge(held_arm.tune(held_arm.recording(factor)), 14)
    assert len(judged.failures) == 1 and "noise tuned on the second half" in judged.failures[0]
    assert "halves of the recordings ask for different noise: torque" in judged.doubts[0]
    assert (judged.held_out.own > judged.held_out.given).all()


def test_noise_with_which_estimates_become_invalid_is_doubted_and_fails_if_none_is_left(held_arm):
    """An EKF whose forces are all uncertain by more than it allows with the tuned noise."""
    ekf = noise_settings(held_arm.arm, load_observer_settings("ekf"), held_arm.sensors)
    found = tune(held_arm.arm, ekf, held_arm.sensors, [held_arm.recording(1.0)], ("torque",), 2)
    consistency = dataclasses.replace(ekf.values.consistency, largest_std=1e-6)
    tuned = dataclasses.replace(ekf, values=dataclasses.replace(ekf.values, consistency=consistency))
    judged = judge(dataclasses.replace(found, noise=tuned), 2, validation=False)
    before, after = judged.change.valid
    assert before > 0.5 and after < 0.1 and not judged.failures
    assert "valid with the tuned noise, 57 % were before" in " ".join(judged.doubts)
    (failure,) = failures(EstimateChange((0.9, 0.0), *[float("nan")] * 4))
    assert "no estimate is valid with both noises (90 % of them with the noise before, 0 %" in failure


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
