"""The offset of a sensor has jumped where the sensorless force does not follow; an impact is none."""

import numpy as np
import pytest

from contact_estimation.filters.wrist_sensor.zeroed import ZeroedSensor

STEP = 0.002
OFFSET = np.array([2.0, -3.0, 10.0])
PRESS = np.array([0.0, 0.0, -50.0])


def watch(force, offset, delay=0.0, error=0.0, ticks=5):
    """Feed readings for 1.5 s, the change at 0.5 s; the sensorless force is ``delay`` [s] late; return the jumps."""
    sensor, rng, jumps = ZeroedSensor(), np.random.default_rng(4), []
    for k in range(round(1.5 / STEP)):
        t = STEP * k
        sensed = force(t) + offset(t) + 0.6 * rng.standard_normal(3)
        sensor.add(t, sensed)
        if k % ticks == 0:
            estimated = force(t - delay) + error * np.clip(10.0 * (t - 0.5), 0.0, 1.0)
            jump = sensor.jumped(t, sensed, estimated)
            jumps += [] if jump is None else [(t, jump)]
    return jumps


@pytest.mark.parametrize("force", [np.zeros(3), PRESS], ids=["free", "press"])
def test_zeroing_is_noticed_once_and_with_its_size(force):
    jumps = watch(lambda t: force, lambda t: OFFSET if t < 0.5 else -force)
    assert len(jumps) == 1 and 0.85 < jumps[0][0] < 0.95
    np.testing.assert_allclose(jumps[0][1], -force - OFFSET, atol=3.0)


@pytest.mark.parametrize(
    "force",
    [
        lambda t: PRESS * float(t > 0.5),  # a hard impact
        lambda t: PRESS * float(t < 0.5),  # a contact that is gone at once
        lambda t: PRESS * np.clip(20.0 * (t - 0.5), 0.0, 1.0),  # a touch
    ],
    ids=["impact", "loss", "touch"],
)
def test_a_force_that_both_feel_is_no_jump_of_the_offset(force):
    """The sensorless force is 0.2 s late, and 8 N of it are friction afterwards."""
    assert not watch(force, lambda t: OFFSET, delay=0.2, error=np.array([0.0, 3.0, 8.0]))


def test_an_impact_that_the_joints_never_feel_is_no_jump_of_the_offset():
    """Friction hides it from the sensorless force, so that only the reading tells it from zeroing: it is not zero."""
    blind = np.zeros(3)
    assert not watch(lambda t: blind, lambda t: OFFSET + PRESS * float(t > 0.5))


def test_a_spike_and_a_gap_between_readings_are_no_jump():
    assert not watch(lambda t: np.zeros(3), lambda t: OFFSET + 60.0 * float(abs(t - 0.5) < 0.001))
    sensor = ZeroedSensor()
    for k in range(800):
        t = STEP * k if k < 300 else STEP * k + 0.1
        sensed = OFFSET if k < 300 else OFFSET + 20.0
        sensor.add(t, sensed)
        assert sensor.jumped(t, sensed, np.zeros(3)) is None


def faults(force, offset, delay=0.0):
    """Return the times [s] at which the sensor is at fault, and those at which it is suspected."""
    sensor, rng, fault, suspected = ZeroedSensor(), np.random.default_rng(4), [], []
    for k in range(round(2.0 / STEP)):
        t = STEP * k
        sensed = force(t) + offset(t) + 0.6 * rng.standard_normal(3)
        sensor.add(t, sensed)
        assert sensor.jumped(t, sensed, force(t - delay)) is None
        fault += [t] if sensor.fault.any() else []
        suspected += [t] if sensor.suspected.any() else []
    return fault, suspected


@pytest.mark.parametrize("jump", [-30.0, 30.0])
def test_a_jump_that_does_not_end_at_zero_is_suspected_at_once_and_a_fault_after_a_while(jump):
    fault, suspected = faults(lambda t: PRESS, lambda t: OFFSET + [0.0, 0.0, jump * float(t >= 0.5)])
    assert 0.89 < fault[0] < 1.0 and fault[-1] > 1.99
    assert suspected[0] < 0.53 and suspected[-1] < fault[0]


def test_a_sensor_that_jumps_back_before_the_verdict_is_at_no_fault():
    fault, _ = faults(lambda t: PRESS, lambda t: OFFSET + [0.0, 0.0, 30.0 * float(0.5 <= t < 0.7)])
    assert not fault


@pytest.mark.parametrize("change", [-30.0, 30.0])
def test_an_impact_that_the_sensorless_force_follows_late_is_suspected_no_longer_than_that(change):
    fault, suspected = faults(lambda t: PRESS + [0.0, 0.0, change * float(t >= 0.5)], lambda t: OFFSET, delay=0.2)
    assert not fault
    assert suspected[-1] < 0.73


def test_a_jump_within_the_error_of_the_sensorless_force_is_no_fault():
    fault, _ = faults(lambda t: PRESS, lambda t: OFFSET + [0.0, 0.0, 8.0 * float(t >= 0.5)])
    assert not fault
