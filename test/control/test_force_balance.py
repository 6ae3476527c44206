"""What the balance of forces lacks becomes the disturbance; with contact modes the push's limit follows it faster."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.control.force_balance import ForceBalance
from contact_estimation.control.mpc import load_mpc_settings

UP, MISSING = np.array([0.0, 0.0, 1.0]), np.array([1.0, -2.0, 5.0])


def after(lag: float | None, ticks: int, speed: float = 0.0) -> ForceBalance:
    """Return the balance after ticks of 10 ms in which the tool accelerates by ``speed`` [m/s] in each."""
    balance = ForceBalance(load_mpc_settings("mpc_plane_fr3"), UP)
    for k in range(ticks):
        balance.update(0.01 * k, MISSING, k * speed * UP, 2.0, lag)
    return balance


def test_the_disturbance_becomes_what_is_missing():
    balance = after(None, 2000)
    np.testing.assert_allclose(balance.disturbance, MISSING, rtol=1e-6)
    assert balance.extra == pytest.approx(5.0)


def test_with_modes_the_limit_follows_within_twice_the_age():
    assert after(0.02, 10).extra > 0.8 * 5.0 > after(None, 10).extra


def test_with_modes_the_limit_has_the_inertia():
    assert after(0.0, 50, speed=0.001).extra == pytest.approx(5.0 + 2.0 * 0.001 / 0.01)


@pytest.mark.parametrize("damping, most", [(0.0, 3.0), (-1.5, 4.5)])
def test_a_push_that_no_force_explains_is_not_trusted(damping, most):
    """At rest, what the spring has beyond the estimated force is friction only up to a limit."""
    assert after(None, 2000).trusted(damping) == pytest.approx(most)  # 5 N are missing, of 10 N wanted


def test_friction_within_the_limit_is_balanced():
    balance = after(None, 10)
    assert balance.trusted(0.0) == balance.extra < 3.0
