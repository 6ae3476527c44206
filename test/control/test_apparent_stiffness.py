"""What force and motion show together bounds the stiffness that an observer tells."""

import numpy as np
import pytest

from contact_estimation.control.mpc.apparent_stiffness import ApparentStiffness


def shown(height, force, seconds=1.0) -> ApparentStiffness:
    """Height [m] and force [N] over time to what they show."""
    known = ApparentStiffness(0.3)
    for t in np.arange(0.0, seconds, 0.01):
        known.update(t, float(height(t)), float(force(t)))
    return known


def ring(t, lag=0.0):
    return np.cos(2 * np.pi * 8.0 * t - lag)


@pytest.mark.parametrize("lag", [0.0, 0.6])
def test_a_loop_that_rings_shows_the_true_stiffness(lag):
    known = shown(lambda t: -2e-4 * ring(t), lambda t: 10.0 + ring(t, lag))
    assert known.bound(1e6) == pytest.approx(1.5e4, rel=0.15)
    assert known.bound(100.0) == pytest.approx(5e3 / 3, rel=0.15)
    assert known.bound(9e3) == 9e3  # within what is known


def test_a_force_that_rests_shows_nothing():
    known = shown(lambda t: -1e-6 * ring(t), lambda t: 10.0 + 0.05 * ring(t))
    assert known.bound(1e6) == 1e6


@pytest.mark.parametrize("amplitude, phase", [(5.0, 0.0), (1.0, np.pi / 2)])
def test_a_surface_that_moves_shows_nothing(amplitude, phase):
    """It lifts the tool while the force rises, or while the force hardly changes."""
    known = shown(lambda t: 0.005 * np.sin(np.pi * t), lambda t: 10.0 + amplitude * np.sin(np.pi * t + phase), 4.0)
    assert known.bound(1e5) == 1e5
