"""The plan's contacts move on with the surface, and a late estimate is smoothed."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.control.mpc.rest_tracker import RestTracker

NORMAL = np.array([[0.0, 0.6, 0.8]])
STIFFNESS = np.array([1000.0])
TIP = np.zeros((1, 3))


def tool(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """TCP at ``position`` (1, 3) [m], turned by a quarter about x."""
    return position[0], np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])


def track(heights: np.ndarray, age: float = 0.0, limit: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    tracker = RestTracker(0.0375, 0.15, limit)
    for k, height in enumerate(heights):
        rest, pose = height * NORMAL + [[0.3, 0.0, 0.0]], tool(height * NORMAL)
        found = tracker.update(0.01 * k, age, rest, NORMAL, pose, TIP, STIFFNESS)
    return found


@pytest.mark.parametrize("age", [0.0, 0.04])
def test_a_rest_that_moves_steadily_is_followed_without_lag(age):
    heights = 0.02 * 0.01 * np.arange(400)
    rest, velocity = track(heights, age)
    np.testing.assert_allclose(velocity, 0.02 * NORMAL, atol=1e-4)
    np.testing.assert_allclose(rest, heights[-1] * NORMAL + [[0.3, 0.0, 0.0]], atol=2e-5)


def test_a_step_of_a_fresh_estimate_is_followed_within_the_time_constant_and_a_late_one_later():
    step = np.concatenate([np.zeros(20), np.full(15, 1e-3)])
    assert track(step)[0][0] @ NORMAL[0] == pytest.approx(1e-3, rel=0.25)
    assert track(step[:21])[0][0] @ NORMAL[0] == pytest.approx(0.21e-3, rel=0.05)  # dt / (dt + T_s)
    assert 0.0 < track(step[:21], age=0.04)[0][0] @ NORMAL[0] < 0.15e-3


def test_what_changes_from_tick_to_tick_hardly_reaches_the_plan():
    ringing = 1e-3 * (-1.0) ** np.arange(101)
    rest, velocity = track(ringing)
    assert abs(rest[0] @ NORMAL[0]) < 0.2e-3
    assert abs(velocity[0] @ NORMAL[0]) < 2e-3  # the rest itself moves at 0.2 m/s


def test_the_speed_is_limited():
    _, velocity = track(np.concatenate([np.zeros(20), np.full(3, 5.0)]), limit=0.4)
    assert np.linalg.norm(velocity) <= 0.4 + 1e-12


def test_after_a_reset_the_contacts_stand_still():
    tracker = RestTracker(0.0375, 0.15, 1.0)
    for k in range(50):
        tracker.update(0.01 * k, 0.0, 0.001 * k * NORMAL, NORMAL, tool(TIP), TIP, STIFFNESS)
    tracker.reset()
    rest, velocity = tracker.update(1.0, 0.0, NORMAL, NORMAL, tool(NORMAL), TIP, STIFFNESS)
    np.testing.assert_allclose(rest, NORMAL)
    assert not velocity.any()


def test_another_estimate_of_the_stiffness_is_no_motion():
    tracker, force = RestTracker(0.0375, 0.15, 1.0), 10.0
    for k, stiffness in enumerate([2000.0] * 5 + [1000.0] * 5 + [30e3] * 5):
        rest = force / stiffness * NORMAL
        found, velocity = tracker.update(0.01 * k, 0.0, rest, NORMAL, tool(TIP), TIP, np.array([stiffness]))
        np.testing.assert_allclose(found, rest, atol=1e-12)
        np.testing.assert_allclose(velocity, 0.0, atol=1e-12)


def test_another_estimate_of_the_point_on_the_tool_is_no_motion():
    tracker, (position, rotation), force = RestTracker(0.0, 0.15, 1.0), tool(TIP), 10.0
    for k in range(20):
        point = np.array([[0.0, 2e-3 * k, 1e-3 * k]])
        rest = position + point @ rotation.T + force / STIFFNESS * NORMAL
        found, velocity = tracker.update(0.01 * k, 0.0, rest, NORMAL, (position, rotation), point, STIFFNESS)
        np.testing.assert_allclose(found, rest, atol=1e-12)
        np.testing.assert_allclose(velocity, 0.0, atol=1e-12)


def test_noise_of_the_force_moves_the_rest_of_a_soft_contact_more_and_its_velocity_follows_later():
    tracker, pairs = RestTracker(0.0, 0.15, 1.0), (np.repeat(NORMAL, 2, axis=0), np.repeat(TIP, 2, axis=0))
    for k, height in enumerate([0.0, 1e-3]):
        rests = height * pairs[0]
        _, velocity = tracker.update(0.01 * k, 0.0, rests, pairs[0], tool(TIP), pairs[1], np.array([250.0, 20e3]))
    soft, hard = np.linalg.norm(velocity, axis=1)
    assert hard == pytest.approx(1e-3 / 0.15)
    assert soft == pytest.approx(1e-3 / 0.30)  # a quarter of 1 kN/m: twice as late
