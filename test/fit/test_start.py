"""Where the unbiased fit starts: the point that stays while the tool turns."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from contact_estimation.fit.blocks import Blocks
from contact_estimation.fit.start import pivot_point

POINT = np.array([-0.03, -0.11, 0.04])


def poses(turns, point=POINT, rate=50.0, noise=0.0):
    """TCP poses that keep ``point`` in place while the tool takes the rotation vectors ``turns`` (T, 3)."""
    rotation = Rotation.from_rotvec(turns).as_matrix()
    rng = np.random.default_rng(0)
    position = np.array([0.4, 0.1, 0.3]) - rotation @ point + noise * rng.standard_normal((len(turns), 3))
    inputs = np.hstack([position, rotation.transpose(0, 2, 1).reshape(len(turns), -1), np.zeros((len(turns), 36))])
    return Blocks(np.zeros((len(turns), 6)), np.zeros((len(turns), 6, 0)), inputs, rate)


def swing(angles):
    s = np.linspace(0, 2 * np.pi, 500)
    return np.column_stack([a * np.sin((k + 1) * s) for k, a in enumerate(angles)])


def test_the_point_that_stays_is_found():
    found = pivot_point([poses(swing([0.15, 0.1, 0.1]), noise=1e-4)], np.zeros(3), 0.05)
    np.testing.assert_allclose(found, POINT, atol=2e-3)


def test_recordings_at_different_places_agree():
    first, second = poses(swing([0.2, 0.0, 0.0])), poses(swing([0.0, 0.2, 0.0]))
    shifted = Blocks(second.y, second.nuisance, second.inputs + np.r_[0.1, -0.2, 0.0, np.zeros(45)], second.rate)
    np.testing.assert_allclose(pivot_point([first, shifted], np.zeros(3), 0.05), POINT, atol=2e-3)


def test_what_the_turning_does_not_show_stays_as_configured():
    about_z = swing([0.0, 0.0, 0.2])
    found = pivot_point([poses(about_z)], np.array([0.0, 0.0, 0.01]), 0.05)
    assert found[2] == pytest.approx(0.01, abs=1e-9)
    np.testing.assert_allclose(found[:2], POINT[:2], atol=2e-3)
    np.testing.assert_allclose(pivot_point([poses(np.zeros((500, 3)))], [0.0, 0.0, 0.01], 0.05), [0.0, 0.0, 0.01])
