"""Norms: slopes and curvatures are derivatives, the barrier is quadratic near zero, smooth at its knee and never
overflows.
"""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.identify.batch import norms


@pytest.mark.parametrize("scale", [np.inf, 0.02])
def test_slope_and_curvature_are_derivatives(scale):
    r, scales, h = np.array([[-0.3, -0.01, 0.0, 0.015, 0.03, 0.5]]).T, np.array([scale]), 1e-7
    f = lambda x: norms.evaluate(x, scales)  # noqa: E731
    assert f(r)[1] == pytest.approx((f(r + h)[0] - f(r - h)[0]) / (2 * h), rel=1e-4, abs=1e-7)
    assert f(r)[2] == pytest.approx((f(r + h)[1] - f(r - h)[1]) / (2 * h), rel=1e-4)


def test_barrier_is_quadratic_near_zero_and_steeper_beyond_its_scale():
    scale = np.array([0.02])
    assert norms.barrier(np.array([1e-4]), scale)[0] == pytest.approx([1e-8], rel=1e-3)
    assert norms.barrier(np.array([0.04]), scale)[0] > 10 * 0.04**2


def test_barrier_is_finite_and_convex_far_out():
    value, slope, curvature = norms.barrier(np.array([-50.0, 50.0]), np.array([1e-3, 1e-3]))
    assert np.all(np.isfinite(value)) and slope[0] == -slope[1] and np.all(curvature > 0)
