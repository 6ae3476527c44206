"""The offset of a force sensor is learnt in free space, and kept on a contact."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.filters.wrist_sensor.offset import TOUCH_TIME, OffsetFilter

OFFSET = np.array([2.0, -3.0, 10.0])
PRESS = np.array([0.0, 0.0, -50.0])
STEP = 0.002


def feed(
    sensor: OffsetFilter, seconds: float, force, estimated, in_contact: bool, begin: float = 0.0, step: float = STEP
) -> np.ndarray:
    rng = np.random.default_rng(3)
    for k in range(round(seconds / step)):
        sensed = np.asarray(force) + OFFSET + 0.6 * rng.standard_normal(3)
        fused = sensor.update(begin + step * k, sensed, np.asarray(estimated), in_contact)
    return fused


@pytest.fixture
def settled() -> OffsetFilter:
    sensor = OffsetFilter()
    feed(sensor, 1.5, np.zeros(3), np.zeros(3), False)
    return sensor


def test_the_offset_is_learnt_in_free_space(settled):
    np.testing.assert_allclose(settled.offset, OFFSET, atol=0.3)
    assert settled.std.max() < 0.4


def test_a_sensorless_error_on_a_contact_hardly_moves_the_offset(settled):
    feed(settled, 10.0, PRESS, PRESS + [0.0, 0.0, 6.0], True, begin=1.5)
    np.testing.assert_allclose(settled.offset, OFFSET, atol=0.5)


def test_a_soft_touch_that_is_named_late_is_no_offset(settled):
    """A surface of 5 kN/m is felt for half a second before the observer names it."""
    rng, times = np.random.default_rng(4), 1.5 + STEP * np.arange(300)
    before = settled.offset.copy()
    for t in times:
        touch = np.array([0.0, 0.0, -8.0 * (t - times[0])])
        settled.update(t, touch + OFFSET + 0.6 * rng.standard_normal(3), np.zeros(3), bool(t > times[-50]))
    np.testing.assert_allclose(settled.offset, before, atol=0.15)


def test_half_an_hour_on_a_contact_does_not_make_its_friction_an_offset(settled):
    """Joint friction that is misjudged by 9 N for half an hour would be a force that far from the wanted one."""
    feed(settled, 1800.0, PRESS, PRESS + [4.0, -4.0, 9.0], True, begin=1.5, step=0.02)
    np.testing.assert_allclose(settled.offset, OFFSET, atol=0.5)


def test_an_offset_that_changed_is_learnt_after_the_contact(settled):
    feed(settled, 5.0, PRESS, PRESS + [0.0, 0.0, 6.0], True, begin=1.5)
    changed = np.array([0.0, 0.0, 1.0])
    feed(settled, 120.0, changed, np.zeros(3), False, begin=6.5, step=0.01)
    np.testing.assert_allclose(settled.offset, OFFSET + changed, atol=0.3)


def test_on_a_contact_an_unknown_offset_is_as_uncertain_as_the_friction():
    sensor = OffsetFilter()
    feed(sensor, 2.0, PRESS, PRESS, True)
    np.testing.assert_allclose(sensor.offset, OFFSET, atol=2.0)
    assert sensor.std.min() > 4.0 and sensor.std.max() < 7.0


def test_a_contact_that_the_estimate_does_not_name_is_no_offset(settled):
    """An observer that was restarted on a contact believes in free space."""
    fused = feed(settled, 1.0, PRESS, np.zeros(3), False, begin=1.5)
    np.testing.assert_allclose(settled.offset, OFFSET, atol=0.5)
    assert abs(fused[2] - PRESS[2]) < 3.0


def test_after_a_reset_the_offset_is_unknown(settled):
    settled.reset()
    assert not settled.offset.any() and settled.std.min() > 10.0


def test_a_clock_that_was_set_back_leaves_no_memory_of_the_future(settled):
    """A log that loops sends the same second for hours."""
    for _ in range(5):
        feed(settled, 1.0, np.zeros(3), np.zeros(3), False, begin=0.0)
    assert len(settled._past) <= round(TOUCH_TIME / STEP) + 1
    np.testing.assert_allclose(settled.offset, OFFSET, atol=0.3)


@pytest.mark.parametrize("force", [np.zeros(3), PRESS], ids=["free", "press"])
def test_a_sensor_that_is_zeroed_keeps_its_force(settled, force):
    """What it reads from then on lacks what it showed; the offset follows at once, and is still learnt."""
    pressed = bool(force.any())
    feed(settled, 1.0, force, force, pressed, begin=1.5)
    settled.shift(-force - OFFSET + [0.8, -0.8, 0.8])  # a difference of two readings is noisy
    fused = feed(settled, 2.0, -OFFSET, force, pressed, begin=2.5)
    np.testing.assert_allclose(settled.offset, -force, atol=1.0 if pressed else 0.4)
    np.testing.assert_allclose(fused, force, atol=3.0)
