"""Where tasks begin on a robot whose profile does not say."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from contact_estimation.robot import load_arm
from contact_estimation.robot.posture import ready_posture


@pytest.fixture
def arm():
    """A UR16e without a posture of its own."""
    arm = load_arm("ur16e")
    arm.settings = dataclasses.replace(arm.settings, ready=None)
    return arm


@pytest.mark.parametrize("lower, upper", [(-2 * np.pi, 2 * np.pi), (0.8, 5.5), (-1e4, 1e4)])
def test_the_tool_points_down_inside_the_limits_whatever_turn_they_are_in(arm, lower, upper):
    arm.lower[1], arm.upper[1] = lower, upper
    q = ready_posture(arm)
    assert (arm.lower <= q).all()
    assert (q <= arm.upper).all()
    position, rotation = arm.tcp_pose(q)
    np.testing.assert_allclose(rotation[:, 2], [0.0, 0.0, -1.0], atol=1e-3)
    assert 0.3 < position[0] < 0.9
    assert np.linalg.svd(arm.tcp_jacobian(q), compute_uv=False)[-1] > 0.1


def test_where_no_posture_points_the_tool_down_a_warning_says_what_to_do(arm):
    arm.lower[3:5], arm.upper[3:5] = 0.0, 0.1
    with pytest.warns(UserWarning, match=r"'tool0' points down .* Give 'ready' in its robot.yaml"):
        ready_posture(arm)
