"""A sensor is frozen where it repeats a reading although the arm has changed, and only there."""

import numpy as np
import pytest

from contact_estimation.filters.wrist_sensor.frozen import FrozenSensor

READING = np.array([1.0, -2.0, 8.0, 0.1, 0.2, 0.0])
STEP = 0.002


def watch(sensor, seconds, reading=READING, speed=0.0, ramp=0.0, noise=0.0, begin=0.0):
    """Feed readings beside a joint of a speed [rad/s] and a force that grows [N/s]; return the verdicts."""
    rng, verdicts = np.random.default_rng(2), []
    for k in range(round(seconds / STEP)):
        t = STEP * k
        q, force = np.full(6, speed * t), np.array([0.0, 0.0, ramp * t])
        verdicts.append(sensor.repeats(begin + t, reading + noise * rng.standard_normal(6), q, force))
    return verdicts


@pytest.mark.parametrize("change", [{"speed": 0.1}, {"ramp": -50.0}], ids=["motion", "force"])
def test_a_reading_that_does_not_follow_is_frozen(change):
    verdicts = watch(FrozenSensor(), 0.5, **change)
    assert verdicts[-1] and 0.1 < STEP * verdicts.index(True) < 0.25


def test_a_sensor_that_reads_zero_for_ever_is_frozen_when_something_is_felt():
    assert watch(FrozenSensor(), 0.5, np.zeros(6), ramp=-50.0)[-1]


@pytest.mark.parametrize(
    "case",
    [
        {"speed": 0.1, "ramp": 50.0, "noise": 1e-6},  # it follows, however little
        {},  # a still arm before a sensor without noise
        {"reading": np.zeros(6), "speed": 0.1},  # that sensor in free space
        {"ramp": 5.0},  # within the error of the sensorless force
    ],
    ids=["noise", "still", "free", "drift"],
)
def test_what_works_is_not_frozen(case):
    assert not any(watch(FrozenSensor(), 0.9, **case))


def test_one_reading_looked_at_again_and_again_repeats_nothing():
    """A slow sensor: its last reading is used until the next one comes."""
    sensor = FrozenSensor()
    assert not any(sensor.repeats(1.0, READING, np.full(6, 0.01 * k), np.zeros(3)) for k in range(100))


def test_it_is_used_again_once_it_follows():
    sensor = FrozenSensor()
    assert watch(sensor, 0.5, speed=0.1)[-1]
    assert not any(watch(sensor, 0.5, READING + 1.0, speed=0.1, noise=0.1, begin=0.5))
