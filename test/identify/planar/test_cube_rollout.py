"""Rollouts of an identified cube: single impacts by closed forms, and tosses of a physics engine."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.cube_rollout import flight_ends, impulse_at, renamed, rollout_errors
from benchmark.simulated_tosses import Cube, Tracker, toss_cube
from contact_estimation.identify.planar.cube import fit_cube, identify_cube

SIDE, RATE = 0.1048, 148.0


def _after(u, r, friction, restitution=0.5, ratio=380.0):
    """Velocity of the contact point after the impulse, and the impulse."""
    u, r = np.array([u], float), np.array([r], float)
    impulse = impulse_at(u, r, ratio, np.array([restitution]), friction)
    return (u + impulse + ratio * np.cross(np.cross(r, impulse), r))[0], impulse[0]


def test_without_friction_the_normal_velocity_is_reversed():
    after, impulse = _after([0.3, 0.0, -2.0], [0.03, -0.02, -0.06], 0.0)
    assert after[2] == pytest.approx(1.0, rel=0.06) and impulse[:2] == pytest.approx([0.0, 0.0])


def test_a_fast_slip_bears_coulomb_friction_against_it_and_a_slow_one_stops():
    _, impulse = _after([3.0, 4.0, -1.0], [0.0, 0.0, -0.07], 0.2)
    assert impulse[:2] / impulse[2] == pytest.approx([-0.12, -0.16], rel=1e-3)
    after, impulse = _after([0.2, 0.0, -2.0], [0.0, 0.0, -0.07], 0.5)
    assert abs(after[0]) < 0.02 and abs(impulse[0]) < 0.5 * impulse[2]


def test_tosses_that_were_not_seen_are_predicted():
    tosses = toss_cube(Cube("round", 5e-3, 380.0, (0.0, 0.0, 0.006)), 60, seed=3, tracker=Tracker(session=5))
    fitted = fit_cube(tosses[:40], SIDE, RATE)
    report, unseen = identify_cube(fitted, resamples=10), renamed(tosses[40:], fitted, RATE)
    starts = flight_ends(tosses[40:], unseen, RATE, 10)
    errors = rollout_errors(starts, fitted.model, report, RATE)
    assert len(starts.p) > 10
    assert np.median(errors.position) < 2.5e-3 and np.median(errors.angle) < np.deg2rad(3.0)
