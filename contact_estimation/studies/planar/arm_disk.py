"""A two-link arm that pushes a disk over the ground (paper 5, section 6): simulation, and eq. 18 for both bodies.

q = (q1, q2, x, y, theta): joint angles [rad] from the x axis and from link 1, the disk's centre [m] and angle [rad].
Base parameters are three of the arm's inertia, a1 = I1 + m1 c1^2 + m2 l1^2 + I2 + m2 c2^2, a2 = m2 l1 c2 and
a3 = I2 + m2 c2^2, one more that gravity shows, a4 = m1 c1 + m2 l1 (the paper counts three), and the disk's mass and
inertia.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.planar.stepping import GRAVITY, Contacts, Trajectory, simulate
from contact_estimation.identify.planar.window import Step, WindowEstimate
from contact_estimation.identify.verdict import Verdict
from contact_estimation.studies.planar.noisy_states import identify_noisy

NAMES = ("a1 [kg m^2]", "a2 [kg m^2]", "a3 [kg m^2]", "a4 [kg m]", "disk m [kg]", "disk I [kg m^2]")
CONTACTS = ("arm-disk", "disk-ground")


@dataclass(frozen=True)
class ArmDisk:
    """The system; contacts as in :data:`CONTACTS`."""

    parameters: tuple[float, ...] = (0.35, 0.10, 0.09, 0.75, 0.5, 0.0025)  # as in NAMES
    lengths: tuple[float, float] = (0.5, 0.5)  # of the links [m]
    radius: float = 0.1  # of the disk [m]
    base: tuple[float, float] = (-0.1, 0.45)  # place of the shoulder [m]
    friction: tuple[float, float] = (0.3, 0.3)
    restitution: tuple[float, float] = (0.0, 0.0)

    def mass(self, q: Array) -> Array:
        """M(q) (5, 5)."""
        return np.column_stack([self.regressor(q, np.zeros(5), unit, 0.0) @ self.parameters for unit in np.eye(5)])

    def force(self, q: Array, v: Array) -> Array:
        """Gravity and velocity terms (5,)."""
        return np.asarray(-(self.regressor(q, v, np.zeros(5), 1.0) @ np.array(self.parameters)))

    def regressor(self, q: Array, v: Array, change: Array, h: float) -> Array:
        """Y (..., 5, 6) with Y parameters = M(q) change + h (C(q, v) v + G(q)), of q, v and change (..., 5)."""
        q0, q1, v0, v1 = q[..., 0], q[..., 1], v[..., 0], v[..., 1]
        c1, c12, c2, s2 = np.cos(q0), np.cos(q0 + q1), np.cos(q1), np.sin(q1)
        y = np.zeros((*np.broadcast_shapes(q.shape, change.shape), 6))
        y[..., 0, 0] = change[..., 0]
        weight = GRAVITY * c12 / self.lengths[0]
        y[..., 0, 1] = c2 * (2 * change[..., 0] + change[..., 1]) + h * (weight - s2 * (2 * v0 * v1 + v1**2))
        y[..., 1, 1] = c2 * change[..., 0] + h * (weight + s2 * v0**2)
        y[..., 0, 2], y[..., 1, 2] = change[..., 1], change[..., 0] + change[..., 1]
        y[..., 0, 3] = h * GRAVITY * c1
        y[..., 2, 4], y[..., 3, 4] = change[..., 2], change[..., 3] + h * GRAVITY
        y[..., 4, 5] = change[..., 4]
        return y

    def contacts(self, q: Array) -> Contacts:
        """Distances and rows of both contacts, at q (..., 5)."""
        angle = q[..., 0] + q[..., 1]
        link = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        base, centre = np.array(self.base), q[..., 2:4]
        elbow = base + self.lengths[0] * np.stack([np.cos(q[..., 0]), np.sin(q[..., 0])], axis=-1)
        along = np.clip(_dot(centre - elbow, link), 0.0, self.lengths[1])
        point = elbow + along[..., None] * link
        distance = np.linalg.norm(centre - point, axis=-1)
        n = (centre - point) / np.maximum(distance, 1e-12)[..., None]
        normal, tangent = np.zeros((2, *q.shape[:-1], 2, 5))
        for rows, way in ((normal, n), (tangent, _perp(n))):
            rows[..., 0, 0], rows[..., 0, 1] = -_dot(_perp(point - base), way), -_dot(_perp(point - elbow), way)
            rows[..., 0, 2:4] = way
        normal[..., 1, 3] = tangent[..., 1, 2] = 1.0
        tangent[..., 0, 4], tangent[..., 1, 4] = -self.radius, self.radius
        phi = np.stack([distance, q[..., 3]], axis=-1) - self.radius
        each = (np.broadcast_to(np.array(values), phi.shape) for values in (self.friction, self.restitution))
        return Contacts(phi, normal, tangent, *each)


def push(system: ArmDisk = ArmDisk(), h: float = 0.0025, steps: int = 200) -> tuple[Trajectory, Array]:
    """Simulate the paper's experiment.

    The disk drops, the arm comes down on it, pushes, and the disk rolls out of the wedge.

    Returns:
        The trajectory and the joint torques applied, as generalised forces (steps, 5).
    """
    start, t = np.array([-0.70, 1.10, 0.53, 0.12, 0.0]), h * np.arange(steps)
    applied = np.zeros((steps, 5))
    applied[:, 0], applied[:, 1] = 0.5 * np.sin(9.0 * t), -0.8 + 0.4 * np.sin(13.0 * t + 0.7)
    applied[:, :2] += -system.force(start, np.zeros(5))[:2]
    return simulate(system, start, np.zeros(5), h, steps, lambda k, q, v: applied[k]), applied


def arm_disk_step(system: ArmDisk, states: tuple[Array, Array, Array], applied: Array, h: float) -> Step:
    """Make a step of eq. 18 from q^k, v^k and v^{k+1} and applied forces (..., 5); theta as in :data:`NAMES`."""
    q, v, after = states
    phi, normal, tangent, friction, _ = system.contacts(q)
    y = system.regressor(q, v, after - v, h)
    gap, slip = phi + (h * normal @ v[..., None])[..., 0], (tangent @ after[..., None])[..., 0]
    return Step(y, np.broadcast_to(h * applied, q.shape), normal, tangent, gap, slip, friction)


class PushResult(NamedTuple):
    """A push and what was identified from its noisy states."""

    trajectory: Trajectory
    estimate: WindowEstimate
    verdict: Verdict
    intervals: Array  # 95 % of the parameters (6, 2)
    parameters: tuple[float, ...]  # true ones
    impulse_error_pct: dict[str, tuple[float, ...]]  # per contact, normal and friction: summed |error| over the sum [%]


def identify_push(noise: float = 1e-4, seed: int = 0, system: ArmDisk = ArmDisk()) -> PushResult:
    """Push, add noise and identify (see :func:`~.noisy_states.identify_noisy`)."""
    trajectory, applied = push(system)

    def model(k: int | Indices, before: Array, rate: Array, after: Array) -> Step:
        return arm_disk_step(system, (before, rate, after), applied[k], trajectory.h)

    found = identify_noisy(model, trajectory, noise, seed)
    estimate = found.estimate
    errors = {}
    for c, name in enumerate(CONTACTS):
        true = trajectory.normal[:, c], trajectory.friction_impulse[:, c]
        answer = estimate.normal[:, c], estimate.tangent[:, c]
        errors[name] = tuple(float(100.0 * np.abs(f - t).sum() / np.abs(t).sum()) for f, t in zip(answer, true))
    return PushResult(trajectory, *found, system.parameters, errors)


def _perp(arm: Array) -> Array:
    return np.stack([-arm[..., 1], arm[..., 0]], axis=-1)


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1])
