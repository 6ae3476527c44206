"""The bristles in the filter: the error that noise of the twist gives them."""

import numpy as np

from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.identify.probing.trailing import Trail

DT, NOISE, STIFFNESS = 0.04, 1e-3, 2e4
ASIDE, KINEMATIC = slice(12, 13), slice(0, 12)


def path(count):
    """Tangential velocity at the samples: a turn, then a stop and a reversal."""
    speed = 0.03 * np.where(np.arange(count) < 15, 1.0, np.linspace(1.0, -3.0, count))
    angle = 1.5 * DT * np.arange(count)
    return np.column_stack([speed * np.cos(angle), speed * np.sin(angle), np.zeros(count)])


def followed(model, s, pose, velocities):
    """Trail and claimed standard deviation [m] after every sample, for velocities whose errors are white."""
    trail, x, covariance = Trail(model, STIFFNESS, ASIDE, KINEMATIC), np.zeros(13), np.zeros((13, 13))
    white = np.diag([0.0] * 6 + [NOISE**2] * 3 + [0.0] * 3)
    trails, claimed = [], []
    for velocity in velocities:
        twist = np.append(velocity, np.zeros(3))
        covariance = trail.forget(covariance, DT, pose, twist, s)
        kept = covariance[12, 12]
        covariance = np.zeros((13, 13))
        covariance[:12, :12], covariance[12, 12] = white, kept
        covariance = trail.follow(x, covariance, DT, pose, twist, s, velocity[None], 25.0)
        trails.append(trail.deflection[0])
        claimed.append(np.sqrt(covariance[12, 12]))
    return np.array(trails), np.array(claimed)


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
    trail, x = Trail(model, STIFFNESS, ASIDE, KINEMATIC), np.zeros(13)
    s = np.zeros(len(model.parameters))
    for _ in range(3):
        trail.follow(x, np.zeros((13, 13)), DT, np.eye(4), 0.03 * np.eye(6)[0], s, 0.03 * np.eye(3)[:1], 25.0)
    before = trail.deflection[0]
    x[12] = 1e-4
    trail.hand_over(x)
    assert np.allclose(trail.deflection[0] - before, [0.0, 1e-4, 0.0]) and x[12] == 0.0
