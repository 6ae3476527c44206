"""A wrist sensor whose reading departs from the sensorless force of the same contact is not used."""

import dataclasses

import numpy as np
import pytest

from contact_estimation.filters.registry import open_stream
from contact_estimation.filters.wrist_sensor import WristForce
from contact_estimation.robot import load_arm

STEP = 0.01
OFFSET = np.array([2.0, -3.0, 10.0])
NORMAL = np.array([0.0, 0.0, -1.0])


@pytest.fixture(scope="module")
def estimate():
    """A valid estimate of a free arm."""
    arm = load_arm("ur16e")
    stream = open_stream(arm, "momentum_calibrated")
    q = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0])
    found = [stream.push(1 + 2_000_000 * k, q, np.zeros(6), arm.gravity(q)) for k in range(600)][-1]
    assert found.valid
    return found


def press(estimate, fault, felt=None, seconds=20.0, std=4.0, wrist=None):
    """Free for 3 s, then a press of 50 N; ``fault`` (t -> N) is added to the reading along the force from 6 s on.

    Args:
        estimate: whose force is replaced.
        fault: of the sensor.
        felt: force that the sensorless estimate has, a function of time [N]; default the true one, 4 N off.
        seconds: of the recording.
        std: of the sensorless force [N].
        wrist: that is fed; default a new one.

    Returns:
        Times [s], forces along the push [N] and problems of the readings.
    """
    wrist, rng, found = wrist or WristForce(), np.random.default_rng(3), []
    for k in range(round(seconds / STEP)):
        t = STEP * k
        true = 50.0 * np.clip(5.0 * (t - 3.0), 0.0, 1.0)
        sensed = OFFSET + true * NORMAL + (fault(t - 6.0) if t >= 6.0 else 0.0) * NORMAL + 0.2 * rng.standard_normal(3)
        sensorless = (true + 4.0 * float(true > 0) if felt is None else felt(t)) * NORMAL
        for t_read in (t - 0.5 * STEP, t):
            wrist.add(t_read, sensed)
        seen = dataclasses.replace(
            estimate, t=t, force_tcp=sensorless, force_covariance=std**2 * np.eye(3), modes={"free": float(true == 0)}
        )
        reading = wrist.update(t, t, np.append(sensed, np.zeros(3)), seen)
        found.append((t, float(NORMAL @ reading.force), reading.problem))
    times, forces, problems = zip(*found)
    return np.array(times), np.array(forces), list(problems)


def test_a_healthy_sensor_is_followed(estimate):
    times, forces, problems = press(estimate, lambda t: 0.0)
    assert not any(problems)
    np.testing.assert_allclose(forces[times > 5.0], 50.0, atol=2.0)


@pytest.mark.parametrize("jump", [-30.0, -20.0, 30.0])
def test_a_jump_that_the_joints_do_not_feel_ends_the_use_of_the_sensor(estimate, jump):
    times, forces, problems = press(estimate, lambda _: jump)
    first = next(k for k, problem in enumerate(problems) if problem)
    assert 6.0 <= times[first] < 7.0
    assert "jumped by" in problems[first] or "differs from" in problems[first]
    assert all(problems[first + 100 :])
    if jump < 0:  # a controller that believed the reading would press harder
        assert forces[(times >= 6.0) & (times < times[first])].min() > 40.0


@pytest.mark.parametrize("rate", [-2.0, 2.0])
def test_a_drift_ends_the_use_of_the_sensor_within_its_gate(estimate, rate):
    times, _, problems = press(estimate, lambda t: rate * t, seconds=30.0)
    first = next(k for k, problem in enumerate(problems) if problem)
    assert "differs from the sensorless force" in problems[first]
    assert abs(rate) * (times[first] - 6.0) < 30.0


def test_a_sensorless_force_that_is_wrong_is_no_better_evidence(estimate):
    """The friction takes 30 N of the force: neither may be used, and the words do not say which is wrong."""
    _, _, problems = press(estimate, lambda _: 0.0, felt=lambda t: 20.0 * float(t > 3.0))
    assert "which of the two is wrong is not known" in problems[-1]


def test_an_error_within_the_sensorless_uncertainty_is_not_noticed(estimate):
    """What two forces cannot show: the limit of the method."""
    _, _, problems = press(estimate, lambda t: -0.2 * t)
    assert not any(problems)


def test_in_a_long_press_the_sensorless_force_drifts_and_the_sensor_stays_in_use(estimate):
    """25 N within a quarter of an hour are no fault of the sensor; within seconds they are."""
    wrist, found = WristForce(), {}
    for t in np.arange(0.0, 903.0, 0.1):
        drift = 25.0 * np.clip((t - 3.0) / 900.0, 0.0, 1.0) + (50.0 if t > 3.0 else 0.0)
        seen = dataclasses.replace(
            estimate, force_tcp=drift * NORMAL, force_covariance=np.eye(3), modes={"free": float(t <= 3.0)}
        )
        reading = np.append(OFFSET + 50.0 * (t > 3.0) * NORMAL + 0.01 * np.sin(t), np.zeros(3))
        found[t] = wrist.update(t, t, reading, seen)
    assert not any(reading.problem for reading in found.values())
    drifts = [reading.drift for reading in found.values()]
    assert drifts[20] == 0.0 and drifts[-1] == pytest.approx(15.0, rel=0.01)  # 0.5 N/s^0.5 for a quarter of an hour
    _, _, problems = press(estimate, lambda _: 0.0, felt=lambda t: 75.0 * float(t > 3.0), std=1.0)
    assert "differs from the sensorless force" in problems[-1]


@pytest.mark.parametrize("jump, drift", [(-30.0, 0.0), (30.0, 0.0), (0.0, -2.0), (0.0, 2.0)])
def test_while_a_sensor_is_at_fault_its_driver_subtracts_the_error(estimate, jump, drift):
    """A hold would follow a sensor that drifts on, beyond every limit of the force."""
    wrist = WristForce()
    _, _, problems = press(estimate, lambda t: jump + drift * t, seconds=30.0, wrist=wrist)
    error = (jump + 24.0 * drift - 4.0) * NORMAL  # the sensorless force is 4 N off, and 0.1 s late
    assert problems[-1]
    np.testing.assert_allclose(wrist.offset, OFFSET + error, atol=1.0)


def test_without_a_fault_its_driver_subtracts_the_offset_of_free_space(estimate):
    wrist = WristForce()
    press(estimate, lambda _: 0.0, wrist=wrist)
    assert wrist.learnt
    np.testing.assert_allclose(wrist.offset, OFFSET, atol=0.5)


@pytest.mark.parametrize("bad", ["estimate", "reading"])
def test_one_force_that_is_not_finite_is_told_and_changes_nothing(estimate, bad):
    wrist, nothing = WristForce(), np.full(3, np.nan)
    press(estimate, lambda t: 0.0, seconds=2.5, wrist=wrist)
    learnt = wrist.offset.copy()
    felt, sensed = (nothing, OFFSET) if bad == "estimate" else (np.zeros(3), nothing)
    seen = dataclasses.replace(estimate, t=2.5, force_tcp=felt, modes={"free": 1.0})
    assert "not finite" in wrist.update(2.5, 2.5, np.append(sensed, np.zeros(3)), seen).problem
    assert np.array_equal(wrist.offset, learnt) and wrist.learnt
    good = dataclasses.replace(seen, t=2.6, force_tcp=np.zeros(3))
    assert np.isfinite(wrist.update(2.6, 2.6, np.append(OFFSET, np.zeros(3)), good).force).all()
    assert np.allclose(wrist.offset, OFFSET, atol=0.6)
