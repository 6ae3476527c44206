"""Friction that trails the direction of sliding."""

import numpy as np
import pytest

from contact_estimation.identify.probing import world_spatial
from contact_estimation.identify.probing.presliding import drag

DT, SPEED, LENGTH = 0.04, 0.03, np.array([0.75e-3])


def slid(direction, deflection, samples):
    velocity = SPEED * np.array([direction])
    for _ in range(samples):
        deflection = drag(deflection, (velocity, velocity), DT, LENGTH).deflection
    return deflection


def test_it_stretches_to_its_length_and_slides():
    z = slid([1.0, 0.0, 0.0], np.zeros((1, 3)), 3)
    assert np.allclose(z, [[LENGTH[0], 0.0, 0.0]])
    assert np.allclose(drag(z, np.zeros((2, 1, 3)), DT, LENGTH).deflection, z)  # it sticks where it stopped
    assert np.allclose(drag(z, np.zeros((2, 1, 3)), DT, 0.5 * LENGTH).deflection, 0.5 * z)  # and yields when unloaded


def test_after_a_corner_it_follows_the_rope():
    """The angle to the new direction obeys tan(angle / 2) = tan(45 deg) exp(-distance / length)."""
    z = slid([1.0, 0.0, 0.0], np.zeros((1, 3)), 3)
    for samples in (1, 2):
        turned = slid([0.0, 1.0, 0.0], z, samples)
        expected = 2.0 * np.arctan(np.exp(-samples * SPEED * DT / LENGTH[0]))
        assert np.arctan2(turned[0, 0], turned[0, 1]) == pytest.approx(expected, rel=0.2)


def test_weights_are_derivatives_across():
    z, across = slid([1.0, 0.0, 0.0], np.zeros((1, 3)), 3), np.array([[0.0, 1.0, 0.0]])
    velocities = np.array([[[0.028, 0.0, 0.0]], [[0.035, 0.0, 0.0]]])
    moved, step = drag(z, velocities, DT, LENGTH), 1e-7

    def side(deflection, velocities):
        return drag(deflection, velocities, DT, LENGTH).deflection[0, 1] / step

    assert side(z + step * across, velocities) == pytest.approx(moved.kept[0], rel=1e-4)
    assert side(z, velocities + step * across * np.array([1.0, 0.0])[:, None, None]) == pytest.approx(moved.begin[0])
    assert side(z, velocities + step * across * np.array([0.0, 1.0])[:, None, None]) == pytest.approx(moved.end[0])
    assert 0.0 < moved.kept[0] < 0.3  # 1.3 mm of travel, 0.75 mm of length


def test_it_agrees_with_the_simulated_contact():
    """A tip on a curved path at the world's rate, and at 25 Hz: friction points the same way."""
    truth = world_spatial.SpatialTruth(np.zeros((1, 1, 3)), np.array([[0.0, 0.0, 1.0]]), np.array([4e-3]),
                                       np.array([5000.0]), np.array([0.6]))
    length = np.array([0.6 * 20.0 / world_spatial.PRESLIDING_STIFFNESS])

    def velocity(t):
        return SPEED * np.array([np.cos(2.0 * t), np.sin(2.0 * t), 0.0])

    bristles, z, fine = np.zeros((1, 1, 3)), np.zeros((1, 3)), 1e-3
    for k in range(1, 51):
        for i in range(40):
            twist = np.append(velocity((k - 1) * DT + (i + 0.5) * fine), np.zeros(3))
            wrench, bristles = world_spatial.contact_wrench(
                truth, np.zeros((1, 3)), np.eye(3)[None], twist[None], bristles, fine
            )
        z = drag(z, np.array([[velocity((k - 1) * DT)], [velocity(k * DT)]]), DT, length).deflection
    friction, sliding = -wrench[0, :2], velocity(50 * DT)[:2]
    trails = np.arccos(friction @ sliding / np.linalg.norm(friction) / SPEED)
    assert trails == pytest.approx(2.0 * length[0] / SPEED, rel=0.1)  # rate of turn times length over speed
    cosine = z[0, :2] @ friction / np.linalg.norm(z) / np.linalg.norm(friction)
    assert np.arccos(min(cosine, 1.0)) < 0.1 * trails
