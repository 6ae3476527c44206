"""A force that swings without end is a fault; what a surface, an edge or noise do to it is none."""

import numpy as np
import pytest

from contact_estimation.control.ringing import RingingDetector


def reason(force, seconds=3.0, size=2.0) -> str:
    detector = RingingDetector(size)
    return next((why for t in np.arange(0.0, seconds, 0.01) if (why := detector.check(t, float(force(t))))), "")


@pytest.mark.parametrize("rate", [4.0, 8.0, 17.0, 50.0])
def test_a_limit_cycle_is_noticed(rate):
    assert "swings" in reason(lambda t: 10.0 + 1.5 * np.cos(2 * np.pi * rate * t))


def test_a_tool_that_lifts_off_again_and_again_is_noticed():
    assert "swings" in reason(lambda t: 40.0 * max(np.sin(2 * np.pi * 5.0 * t), 0.0))


@pytest.mark.parametrize(
    "force",
    [
        lambda t: 10.0 + 0.9 * np.cos(2 * np.pi * 10.0 * t),  # within the tolerance
        lambda t: 10.0 + 5.0 * np.cos(2 * np.pi * 0.5 * t),  # a surface that moves
        lambda t: 10.0 * min(5.0 * t, 1.0) + 6.0 * np.exp(-8.0 * t) * np.sin(2 * np.pi * 5.0 * t),  # an impact
        lambda t: 0.0 if 1.0 < t < 1.3 else 10.0,  # an edge
        lambda t: 10.0 + 5.0 * np.sign(np.sin(50.0 * np.pi * t)) * (t < 0.2),  # a tool that bounces as it arrives
    ],
)
def test_what_ends_or_is_slow_is_none(force):
    assert reason(force, 15.0) == ""


def test_an_approach_is_no_swing():
    detector = RingingDetector(2.0)
    assert detector.check(0.0, 0.0) == ""
    steps = [(0.25 + 0.05 * k, 10.0 * (k % 2)) for k in range(7)]
    assert [detector.check(*step) for step in steps] == [""] * 7  # it rises, then swings five times
    assert detector.check(0.60, 10.0) != ""


def test_noise_of_a_light_touch_is_none():
    rng = np.random.default_rng(0)
    assert reason(lambda t: 1.0 + 0.15 * rng.standard_normal(), size=0.2) == ""


def test_a_new_start_forgets_old_swings():
    detector = RingingDetector(2.0)
    for k in range(6):
        assert detector.check(0.05 * k, 10.0 * (k % 2)) == ""
    detector.restart()
    assert detector.check(0.30, 0.0) == "" and detector.check(0.35, 10.0) == ""
