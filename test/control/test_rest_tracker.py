"""The plan's contacts move on with the surface, and a late estimate is smoothed."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.control.mpc.rest_tracker import RestTracker

NORMAL = np.array([[0.0, 0.6, 0.8]])
STIFFNESS = np.array([1000.0])


def track(heights: np.ndarray, age: float = 0.0, limit: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    tracker = RestTracker(0.15, limit)
    for k, height in enumerate(heights):
        found = tracker.update(0.01 * k, age, height * NORMAL + [[0.3, 0.0, 0.0]], NORMAL, height * NORMAL, STIFFNESS)
    return found


@pytest.mark.parametrize("age", [0.0, 0.04])
def test_a_rest_that_moves_steadily_is_followed_without_lag(age):
    heights = 0.02 * 0.01 * np.arange(400)
    rest, velocity = track(heights, age)
    np.testing.assert_allclose(velocity, 0.02 * NORMAL, atol=1e-4)
    np.testing.assert_allclose(rest, heights[-1] * NORMAL + [[0.3, 0.0, 0.0]], atol=2e-5)


def test_a_fresh_estimate_is_taken_as_it_is_and_a_late_one_is_smoothed():
    step = np.concatenate([np.zeros(20), [1e-3]])
    assert track(step)[0][0] @ NORMAL[0] == pytest.approx(1e-3)
    assert 0.0 < track(step, age=0.04)[0][0] @ NORMAL[0] < 0.2e-3


def test_the_speed_is_limited():
    _, velocity = track(np.concatenate([np.zeros(20), np.full(3, 5.0)]), limit=0.4)
    assert np.linalg.norm(velocity) <= 0.4 + 1e-12


def test_after_a_reset_the_contacts_stand_still():
    tracker = RestTracker(0.15, 1.0)
    for k in range(50):
        tracker.update(0.01 * k, 0.0, 0.001 * k * NORMAL, NORMAL, 0.0 * NORMAL, STIFFNESS)
    tracker.reset()
    rest, velocity = tracker.update(1.0, 0.0, NORMAL, NORMAL, NORMAL, STIFFNESS)
    np.testing.assert_allclose(rest, NORMAL)
    assert not velocity.any()


def test_another_estimate_of_the_stiffness_is_no_motion():
    tracker, force = RestTracker(0.15, 1.0), 10.0
    for k, stiffness in enumerate([2000.0] * 5 + [1000.0] * 5 + [30e3] * 5):
        rest = force / stiffness * NORMAL
        found, velocity = tracker.update(0.01 * k, 0.0, rest, NORMAL, 0.0 * NORMAL, np.array([stiffness]))
        np.testing.assert_allclose(found, rest, atol=1e-12)
        np.testing.assert_allclose(velocity, 0.0, atol=1e-12)
