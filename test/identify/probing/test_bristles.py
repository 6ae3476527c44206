"""The bristle state: friction follows the direction of sliding, and the filter knows how well."""

import numpy as np
import pytest

from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.bristles import BristleState, Drag
from contact_estimation.identify.probing.model import Mean
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.studies.probing import simulated_probe

DT, SPEED, LENGTH = 0.04, 0.03, np.array([0.75e-3])


def draw(deflection, begin, end, length=LENGTH):
    """Bristles after one sample."""
    drag = Drag(1)
    drag.deflection[:], drag.begin[:], drag.end[:], drag.length[:] = deflection, begin, end, length
    drag.draw(DT)
    return drag


def slid(direction, deflection, samples):
    velocity = SPEED * np.array([direction])
    for _ in range(samples):
        deflection = draw(deflection, velocity, velocity).moved
    return deflection


def test_it_stretches_to_its_length_and_slides():
    z = slid([1.0, 0.0, 0.0], np.zeros((1, 3)), 3)
    assert np.allclose(z, [[LENGTH[0], 0.0, 0.0]])
    assert np.allclose(draw(z, 0.0, 0.0).moved, z)  # it sticks where it stopped
    assert np.allclose(draw(z, 0.0, 0.0, 0.5 * LENGTH).moved, 0.5 * z)  # and yields when unloaded


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
    moved, step = draw(z, *velocities), 1e-7

    def side(deflection, velocities):
        return draw(deflection, *velocities).moved[0, 1] / step

    assert side(z + step * across, velocities) == pytest.approx(moved.kept[0], rel=1e-4)
    assert side(z, velocities + step * across * np.array([1.0, 0.0])[:, None, None]) == pytest.approx(moved.by_begin[0])
    assert side(z, velocities + step * across * np.array([0.0, 1.0])[:, None, None]) == pytest.approx(moved.by_end[0])
    assert 0.0 < moved.kept[0] < 0.3  # 1.3 mm of travel, 0.75 mm of length


def test_it_agrees_with_the_simulated_contact():
    """A tip on a curved path at the simulation's rate, and at 25 Hz: friction points the same way."""
    truth = simulated_probe.Truth(
        np.zeros((1, 1, 3)), np.array([[0.0, 0.0, 1.0]]), np.array([4e-3]), np.array([5000.0]), np.array([0.6])
    )
    length = np.array([0.6 * 20.0 / simulated_probe.PRESLIDING_STIFFNESS])

    def velocity(t):
        return SPEED * np.array([np.cos(2.0 * t), np.sin(2.0 * t), 0.0])

    bristles, z, fine = np.zeros((1, 1, 3)), np.zeros((1, 3)), 1e-3
    for k in range(1, 51):
        for i in range(40):
            twist = np.append(velocity((k - 1) * DT + (i + 0.5) * fine), np.zeros(3))
            motion = simulated_probe.Motion(np.zeros((1, 3)), np.eye(3)[None], twist[None], np.zeros((1, 6)))
            wrench, bristles, _ = simulated_probe.contact_wrench(truth, motion, bristles, fine)
        z = draw(z, velocity((k - 1) * DT), velocity(k * DT), length).moved
    friction, sliding = -wrench[0, :2], velocity(50 * DT)[:2]
    behind = np.arccos(friction @ sliding / np.linalg.norm(friction) / SPEED)
    assert behind == pytest.approx(2.0 * length[0] / SPEED, rel=0.1)  # rate of turn times length over speed
    cosine = z[0, :2] @ friction / np.linalg.norm(z) / np.linalg.norm(friction)
    assert np.arccos(min(cosine, 1.0)) < 0.1 * behind


NOISE, STIFFNESS = 1e-3, 2e4
ERROR, KINEMATIC = slice(12, 13), slice(0, 12)


def path(count):
    """Tangential velocity at the samples: a turn, then a stop and a reversal."""
    speed = 0.03 * np.where(np.arange(count) < 15, 1.0, np.linspace(1.0, -3.0, count))
    angle = 1.5 * DT * np.arange(count)
    return np.column_stack([speed * np.cos(angle), speed * np.sin(angle), np.zeros(count)])


def followed(model, s, pose, velocities):
    """Deflection and claimed standard deviation [m] after every sample, for velocities whose errors are white."""
    covariance = np.zeros((13, 13))
    bristles = BristleState(model, STIFFNESS, np.zeros(13), covariance, ERROR, KINEMATIC)
    white = np.diag([0.0] * 6 + [NOISE**2] * 3 + [0.0] * 3)
    deflections, claimed = [], []
    for velocity in velocities:
        twist = np.append(velocity, np.zeros(3))
        bristles.predict(DT, Mean(pose, twist, s))
        covariance[:12, :12], covariance[:12, 12], covariance[12, :12] = white, 0.0, 0.0
        bristles.follow(DT, Mean(pose, twist, s), velocity[None], 25.0)
        deflections.append(bristles.deflection[0].copy())
        claimed.append(np.sqrt(covariance[12, 12]))
    return np.array(deflections), np.array(claimed)


def test_claimed_error_of_the_bristles_is_the_sampled_one():
    model = SpatialModel(Bounds(0.0, 2e4), Bounds(0.0, 1.5), [np.eye(3)], (0,))
    s = np.zeros(len(model.parameters))
    s[5] = 5e-3  # pressed
    count, rng = 30, np.random.default_rng(1)
    velocities = path(count)
    nominal, claimed = followed(model, s, np.eye(4), velocities)
    draws = velocities + NOISE * rng.standard_normal((200, count, 3)) * [1.0, 1.0, 0.0]
    errors = np.array([followed(model, s, np.eye(4), draw)[0] for draw in draws]) - nominal
    across = np.cross([0.0, 0.0, 1.0], nominal)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    sampled = np.sqrt(np.mean(np.sum(errors * across, axis=2) ** 2, axis=0))
    sliding = [*range(5, 15), *range(count - 4, count)]  # not while the reversal draws them back through themselves
    assert np.all(np.abs(claimed[sliding] / sampled[sliding] - 1.0) < 0.25)


def test_an_estimated_error_moves_the_bristles_once():
    model = SpatialModel(Bounds(0.0, 2e4), Bounds(0.0, 1.5), [np.eye(3)], (0,))
    x = np.zeros(13)
    bristles = BristleState(model, STIFFNESS, x, np.zeros((13, 13)), ERROR, KINEMATIC)
    s = np.zeros(len(model.parameters))
    mean = Mean(np.eye(4), 0.03 * np.eye(6)[0], s)
    for _ in range(3):
        bristles.follow(DT, mean, 0.03 * np.eye(3)[:1], 25.0)
    before = bristles.deflection[0].copy()
    x[12] = 1e-4
    bristles.absorb_error()
    assert np.allclose(bristles.deflection[0] - before, [0.0, 1e-4, 0.0]) and x[12] == 0.0
