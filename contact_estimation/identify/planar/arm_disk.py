"""A two-link arm that pushes a disk over the ground (paper 5, section 6): simulation, and eq. 18 for both bodies.

q = (q1, q2, x, y, theta): joint angles [rad] from the x axis and from link 1, the disk's centre [m] and angle [rad].
Base parameters: three of the arm's inertia, a1 = I1 + m1 c1^2 + m2 l1^2 + I2 + m2 c2^2, a2 = m2 l1 c2 and
a3 = I2 + m2 c2^2, one more that gravity shows, a4 = m1 c1 + m2 l1 (the paper counts three), and the disk's mass and
inertia.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.identify.planar.stepping import GRAVITY, Contacts, Trajectory, simulate
from contact_estimation.identify.planar.window import Slack, Step, WindowEstimate, identify_window

NAMES = ("a1 [kg m^2]", "a2 [kg m^2]", "a3 [kg m^2]", "a4 [kg m]", "disk m [kg]", "disk I [kg m^2]")


@dataclass(frozen=True)
class ArmDisk:
    """The system; contacts are (0) second link and disk, (1) disk and ground. ``base`` (2,) [m] is the shoulder's
    place."""

    parameters: tuple[float, ...] = (0.35, 0.10, 0.09, 0.75, 0.5, 0.0025)
    lengths: tuple[float, float] = (0.5, 0.5)
    radius: float = 0.1
    base: tuple[float, float] = (-0.1, 0.45)
    friction: tuple[float, float] = (0.3, 0.3)
    restitution: tuple[float, float] = (0.0, 0.0)

    def mass(self, q) -> np.ndarray:
        """M(q) (5, 5)."""
        return np.column_stack([self.regressor(q, np.zeros(5), unit, 0.0) @ self.parameters for unit in np.eye(5)])

    def force(self, q, v) -> np.ndarray:
        """Gravity and velocity terms (5,)."""
        return -self.regressor(q, v, np.zeros(5), 1.0) @ self.parameters

    def regressor(self, q, v, change, h) -> np.ndarray:
        """Y (5, 6) with Y parameters = M(q) change + h (C(q, v) v + G(q))."""
        c1, c12 = np.cos(q[0]), np.cos(q[0] + q[1])
        c2, s2 = np.cos(q[1]), np.sin(q[1])
        y = np.zeros((5, 6))
        y[0, 0] = change[0]
        weight = GRAVITY * c12 / self.lengths[0]
        y[0, 1] = c2 * (2 * change[0] + change[1]) + h * (weight - s2 * (2 * v[0] * v[1] + v[1]**2))
        y[1, 1] = c2 * change[0] + h * (weight + s2 * v[0]**2)
        y[0, 2], y[1, 2] = change[1], change[0] + change[1]
        y[0, 3] = h * GRAVITY * c1
        y[2, 4], y[3, 4] = change[2], change[3] + h * GRAVITY
        y[4, 5] = change[4]
        return y

    def contacts(self, q) -> Contacts:
        """Distances and rows of both contacts."""
        link = np.array([np.cos(q[0] + q[1]), np.sin(q[0] + q[1])])
        elbow = np.array(self.base) + self.lengths[0] * np.array([np.cos(q[0]), np.sin(q[0])])
        centre = np.asarray(q[2:4])
        along = np.clip((centre - elbow) @ link, 0.0, self.lengths[1])
        point = elbow + along * link
        distance = np.linalg.norm(centre - point)
        n = (centre - point) / max(distance, 1e-12)
        t = np.array([-n[1], n[0]])
        turned = point - elbow
        arm = np.array([_perp(point - np.array(self.base)), _perp(turned)])
        normal = np.array([[*(-arm @ n), *n, 0.0], [0, 0, 0, 1.0, 0]])
        tangent = np.array([[*(-arm @ t), *t, -self.radius], [0, 0, 1.0, 0, self.radius]])
        phi = np.array([distance - self.radius, q[3] - self.radius])
        return Contacts(phi, normal, tangent, np.array(self.friction), np.array(self.restitution))


def push(system: ArmDisk = ArmDisk(), h: float = 0.0025, steps: int = 200) -> tuple[Trajectory, np.ndarray]:
    """The paper's experiment: the disk drops, the arm comes down on it, pushes, and the disk rolls out of the wedge.

    Returns the trajectory and the joint torques applied, as generalised forces (steps, 5).
    """
    start = np.array([-0.70, 1.10, 0.53, 0.12, 0.0])
    gravity = -system.force(start, np.zeros(5))

    def torque(k):
        t = k * h
        swing = np.array([0.5 * np.sin(9.0 * t), -0.8 + 0.4 * np.sin(13.0 * t + 0.7)])
        return np.concatenate([gravity[:2] + swing, np.zeros(3)])

    applied = np.array([torque(k) for k in range(steps)])
    return simulate(system, start, np.zeros(5), h, steps, lambda k, q, v: applied[k]), applied


def arm_disk_steps(system: ArmDisk, q, v, applied, h: float) -> list[Step]:
    """Steps of eq. 18 from states (N+1, 5) and applied generalised forces (N, 5); theta as in :data:`NAMES`."""
    steps = []
    for k in range(len(q) - 1):
        contacts = system.contacts(q[k])
        gap, slip = contacts.phi + h * contacts.normal @ v[k], contacts.tangent @ v[k + 1]
        steps.append(Step(system.regressor(q[k], v[k], v[k + 1] - v[k], h), h * applied[k], contacts.normal,
                          contacts.tangent, gap, slip, contacts.friction))
    return steps


@dataclass(frozen=True)
class PushResult:
    """Simulated push, what was identified from its noisy states, true ``parameters``, and per contact the error of
    normal and friction impulses [%]: summed absolute difference over the summed impulse."""

    trajectory: Trajectory
    estimate: WindowEstimate
    parameters: tuple[float, ...]
    impulse_error_pct: dict[str, tuple[float, float]]


def identify_push(noise: float = 1e-4, seed: int = 0, system: ArmDisk = ArmDisk()) -> PushResult:
    """Push, add white noise of ``noise`` [rad/s, m/s] to velocities and a hundredth of it to configurations,
    identify."""
    trajectory, applied = push(system)
    rng = np.random.default_rng(seed)
    q = trajectory.q + 0.01 * noise * rng.standard_normal(trajectory.q.shape)
    v = trajectory.v + noise * rng.standard_normal(trajectory.v.shape)
    slack = Slack(distance=2e-4 + 0.1 * noise, slip=1e-5 + 5.0 * noise)
    estimate = identify_window(arm_disk_steps(system, q, v, applied, trajectory.h), slack)
    errors = {}
    for c, name in enumerate(("arm-disk", "disk-ground")):
        true = trajectory.normal[:, c], trajectory.friction_impulse[:, c]
        found = estimate.normal[:, c], estimate.tangent[:, c]
        errors[name] = tuple(float(100.0 * np.abs(f - t).sum() / np.abs(t).sum()) for f, t in zip(found, true))
    return PushResult(trajectory, estimate, system.parameters, errors)


def _perp(arm):
    return np.array([-arm[1], arm[0]])
