"""Friction of rigid impacts against impacts of the compliant world, which shares no code."""

from dataclasses import replace

import numpy as np
import pytest

from benchmark.adversary import planar as world
from contact_estimation.identify.planar.routh import tangential_impulse

CORNERS = 0.5 * np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
BODY = world.Body(CORNERS, False, ratio=6.0, friction=0.4)


def fine_states(body, angle, velocity):
    """States of a drop until its first impacts have lasted for 3 ms."""
    return world.drop(body, [0.0, 0.9, angle], velocity, 0.6, resting=3e-3)


def first_impact(body, angle, velocity):
    """Slip before, slip after, lever at half of the turn, dv_x and dv_y of the first impact."""
    t, q, v = fine_states(body, angle, velocity)
    touching = np.flatnonzero(np.diff(t) < 1.01 * world.CONTACT_STEP)
    first, last = touching[0], touching[np.argmax(np.diff(touching, append=len(t) + 1) > 1)] + 1
    lever = min(body.points(0.5 * (q[first, 2] + q[last, 2])), key=lambda r: r[1])
    slips = [v[k, 0] - lever[1] * v[k, 2] for k in (first, last)]
    return *slips, lever, *(v[last] - v[first])[:2]


@pytest.mark.parametrize(
    "friction, angle, velocity, ends",
    [
        (0.1, -0.4, [3.0, -2.0, 0.0], "slides on"),
        (0.6, 0.4, [0.5, -2.0, 0.5], "sticks"),
        (0.1, 0.4, [1.0, -2.0, 0.0], "reverses"),
    ],
)
def test_the_tangential_impulse_is_that_of_a_short_compliant_impact(friction, angle, velocity, ends):
    body = replace(BODY, friction=friction)
    before, after, lever, along, off = first_impact(body, angle, velocity)
    found = "sticks" if abs(after) < 0.05 else "slides on" if before * after > 0.0 else "reverses"
    assert found == ends
    predicted = tangential_impulse(np.array([friction]), before, lever, body.ratio, off)
    assert predicted == pytest.approx(along, abs=2e-3 * off)


def test_friction_that_holds_every_impact_shows_nothing_of_itself():
    sticking = replace(BODY, friction=0.6)
    states = fine_states(sticking, 0.4, [0.5, -2.0, 0.5])
    assert not world.friction_shows(sticking, 0.9, *states)
    other = fine_states(replace(BODY, friction=0.9), 0.4, [0.5, -2.0, 0.5])
    assert np.abs(other[2][-1] - states[2][-1]).max() < 0.05  # the same velocities after the impact
    sliding = replace(BODY, friction=0.1)
    assert world.friction_shows(sliding, 0.4, *fine_states(sliding, -0.4, [3.0, -2.0, 0.0]))
