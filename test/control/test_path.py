"""The path of a task turns back where the contact was lost, and a detour goes up, back and down."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.control.path import detour, path_share, turned_back


@pytest.mark.parametrize("passes", [0.0, 0.4, 0.9, 1.2, 1.9, 2.5, 3.7])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_a_path_that_is_turned_back_goes_on_there_in_the_other_direction(passes, share):
    now = turned_back(passes, share)
    assert now >= passes - 1.0 and float(path_share(np.array(now))) == pytest.approx(share, abs=1e-3)
    forward = passes % 2.0 < 1.0
    step = float(path_share(np.array(now + 0.01)) - path_share(np.array(now)))
    assert (step < 0.0) == forward


def test_a_detour_goes_up_back_and_down_without_a_jump():
    lift, back = np.array([0.0, 0.0, 0.03]), np.array([-0.02, 0.0, 0.0])
    ways = np.linspace(0.0, 0.12, 1201)
    points = np.array([detour(way, lift, back)[0] for way in ways])
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() <= 1.01e-4
    np.testing.assert_allclose(detour(0.03, lift, back)[0], lift)
    np.testing.assert_allclose(detour(0.05, lift, back)[0], lift + back)
    np.testing.assert_allclose(detour(0.09, lift, back)[0], back - [0.0, 0.0, 0.01], atol=1e-12)
    assert not detour(0.049, lift, back)[1] and detour(0.051, lift, back)[1]


def test_without_a_way_back_a_detour_only_rises_and_sinks():
    assert np.isfinite(detour(0.04, np.array([0.0, 0.0, 0.03]), np.zeros(3))[0]).all()
