"""Closed forms for one contact whose mode is known: impulses and regressions (paper 5, eq. 20-25, 27, appendices).

They are derived again, because the printed appendices have errors (M^-1 has 1/m for 1/I, signs of h g, eq. 22's third
row). Two results differ from the paper. Multiplied out, the column of m/I^2 vanishes identically in both modes.
Sticking has no column of 1/m. The parameters are therefore theta = (m/I, 1/m, 1/I), and sticking gives the mass as
(m/I) / (1/I).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.identify.arrays import Array


@dataclass(frozen=True)
class ContactStep:
    """One step of a body with one contact."""

    v: ArrayLike  # velocity before the step (3,) = (vx, vy, omega)
    lever: ArrayLike  # offset (r_x, r_y) [m] of the contact from the centre of mass
    h: float  # step [s]
    gravity: ArrayLike  # free acceleration (3,)
    external: ArrayLike = (0.0, 0.0, 0.0)  # known force and moment (3,) [N, N, Nm]
    restitution: float = 0.0  # Newton's coefficient

    @property
    def _rows(self) -> Array:
        """J_n and J_t (2, 3)."""
        rx, ry = np.asarray(self.lever, float)
        return np.array([[0.0, 1.0, rx], [1.0, 0.0, -ry]])

    def _target(self, free: Array) -> Array:
        """Return the (normal, tangential) velocity (2,) that the impulses must undo after a contact-free step."""
        rows = self._rows
        return np.asarray(rows @ free + np.array([self.restitution * float(rows[0] @ np.asarray(self.v, float)), 0.0]))

    def _free(self, mass: float, inertia: float) -> Array:
        forces = np.asarray(self.external, float) / np.array([mass, mass, inertia])
        return np.asarray(np.asarray(self.v, float) + self.h * (np.asarray(self.gravity, float) + forces))

    def sliding_impulse(self, mass: float, inertia: float, friction: float, slip_sign: float) -> tuple[float, float]:
        """Impulse (c_n, c_t) [N s] of a contact that slides along ``slip_sign`` x after the step (eq. 20, 21)."""
        normal, tangent = self._rows
        edge = -_sign(slip_sign) * friction
        effect = (normal + edge * tangent) / np.array([mass, mass, inertia])
        impulse = -float(self._target(self._free(mass, inertia))[0] / (normal @ effect))
        return impulse, edge * impulse

    def sticking_impulse(self, mass: float, inertia: float) -> tuple[float, float]:
        """Impulse (c_n, c_t) [N s] of a contact that sticks (eq. 24, 25)."""
        rows = self._rows
        effect = rows @ np.diag([1.0 / mass, 1.0 / mass, 1.0 / inertia]) @ rows.T
        normal, tangent = -np.linalg.solve(effect, self._target(self._free(mass, inertia)))
        return float(normal), float(tangent)

    def _momentum(self, v_next: ArrayLike) -> tuple[Array, Array, Array]:
        """Unexplained change of velocity (3,), known impulse (3,), and (normal, tangential) target per unit mass."""
        v, acceleration = np.asarray(self.v, float), np.asarray(self.gravity, float)
        change = np.asarray(v_next, float) - v - self.h * acceleration
        return change, self.h * np.asarray(self.external, float), self._target(v + self.h * acceleration)

    def sliding_regression(self, v_next: ArrayLike, friction: float, slip_sign: float) -> tuple[Array, Array]:
        """Y (3, 3) and f (3,) with Y (m/I, 1/m, 1/I) = f for a sliding contact (eq. 22, appendix 1)."""
        change, force, target = self._momentum(v_next)
        rx, ry = np.asarray(self.lever, float)
        direction, before = np.array([-_sign(slip_sign) * friction, 1.0]), target[0]
        moment = rx - direction[0] * ry
        y = np.zeros((3, 3))
        y[:2, 0] = rx * moment * change[:2]
        y[:2, 1] = force[1] * direction - force[:2]
        y[:2, 2] = rx * force[2] * direction - rx * moment * force[:2]
        y[2] = rx * moment * change[2] + moment * before, 0.0, moment * force[1] - force[2]
        return y, -np.array([*(change[:2] + before * direction), change[2]])

    def sticking_regression(self, v_next: ArrayLike) -> tuple[Array, Array]:
        """Y (3, 3) and f (3,) with Y (m/I, 1/m, 1/I) = f for a sticking contact (appendix 2); column 1/m is zero."""
        change, force, target = self._momentum(v_next)
        rx, ry = np.asarray(self.lever, float)
        p, slip = np.array([-ry, rx]), target[::-1]
        y = np.zeros((3, 3))
        y[:2, 0] = p @ p * (change[:2] + slip) - p * (p @ slip)
        y[:2, 2] = p * force[2] - p * (p @ force[:2])
        y[2] = p @ p * change[2] + p @ slip, 0.0, p @ force[:2] - force[2]
        return y, -np.array([*(change[:2] + slip), change[2]])


def ratio_least_squares(v: ArrayLike, v_next: ArrayLike, levers: ArrayLike, h: float, gravity: ArrayLike) -> float:
    """m/I [1/m^2] of contact steps without external force (eq. 27).

    Args:
        v: velocities before (n, 3).
        v_next: velocities after (n, 3).
        levers: offsets of the contacts (n, 2) [m].
        h: step [s].
        gravity: free acceleration (3,).

    Raises:
        IdentificationError: no impulse has a moment about the centre of mass (the landing of figure 18a).
    """
    change = np.asarray(v_next, float) - np.asarray(v, float) - h * np.asarray(gravity, float)
    lever = np.asarray(levers, float)
    moment = lever[:, 0] * change[:, 1] - lever[:, 1] * change[:, 0]
    power = float(moment @ moment)
    if power < 1e-12 * max(float((change[:, :2] ** 2).sum()), 1e-300):
        raise IdentificationError(
            "no impulse has a moment about the centre of mass: m/I is not excited (figure 18a); land tilted"
        )
    return float(moment @ change[:, 2]) / power


def _sign(value: float) -> float:
    if value == 0:
        raise ConfigError("slip_sign is 0: a sliding contact has a direction, +1 or -1; else use the sticking form")
    return 1.0 if value > 0 else -1.0
