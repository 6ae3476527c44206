"""Contacts in parallel (paper 2, eq. 7), their parameters packed into vectors.

``phi`` (9 I,) holds all parameters [K; x_rest; x_tcp] of I contacts in internal units (stiffness in 1e4 N/m, so that
covariances of stiffness and length have similar magnitude); ``p`` is the part of it that is estimated. Internal units
never leave the
package: everything numeric here takes and gives SI.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from contact_estimation.contact.primitive import force_base
from contact_estimation.contact.settings import KINDS, ContactSettings
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm
from contact_estimation.robot.rigid_body import Kinematics

#: Internal unit of stiffness [N/m].
STIFFNESS_UNIT = 1e4
_SCALE = {"stiffness": STIFFNESS_UNIT, "rest": 1.0, "point": 1.0}


class ParallelContacts:
    """Compliant contacts acting on one arm.

    Attributes:
        contacts: their settings. size: 9 I. estimated: indices of ``p`` within ``phi``.
        scale: (9 I,) SI value of one internal unit.
    """

    def __init__(self, arm: Arm, contacts: list[ContactSettings]):
        names = [c.name for c in contacts]
        if len(set(names)) != len(names):
            raise ConfigError(f"contacts need different names, found {names}")
        self.arm, self.contacts, self.size = arm, list(contacts), 9 * len(contacts)
        self.estimated = np.array([9 * i + 3 * k + axis for i, c in enumerate(contacts) for k, kind in enumerate(KINDS)
                                   if kind in c.estimate for axis in range(3)], dtype=int)
        self.scale = np.tile(np.repeat([_SCALE[kind] for kind in KINDS], 3), len(contacts))
        # Made once, because in_si runs with every estimate.
        self._place, self._unit = np.ix_(self.estimated, self.estimated), np.outer(self.scale, self.scale)

    @property
    def n_estimated(self) -> int:
        """Number of estimated parameters."""
        return len(self.estimated)

    # -- numbers -------------------------------------------------------------------------------------------------------

    def initial(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``phi`` (9 I,) and the standard deviations of ``p`` at the configuration ``q`` (n,), both in internal
        units."""
        position, rotation = self.arm.tcp_pose(q)
        phi, std = [], []
        for c in self.contacts:
            rest = position + rotation @ np.asarray(c.point) if isinstance(c.rest, str) else np.asarray(c.rest)
            phi += [np.asarray(c.stiffness, float), rest, np.asarray(c.point, float)]
            std += [np.full(3, c.stiffness_std), np.full(3, c.rest_std), np.full(3, c.point_std)]
        if not phi:
            return np.zeros(0), np.zeros(0)
        return np.concatenate(phi) / self.scale, (np.concatenate(std) / self.scale)[self.estimated]

    def in_si(self, phi: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``phi`` (I, 9) and its covariance (I, 9, 9) in SI from internal ``phi`` and the covariance of ``p``."""
        full = np.zeros((self.size, self.size))
        full[self._place] = covariance
        full *= self._unit
        blocks = [full[9 * i:9 * i + 9, 9 * i:9 * i + 9] for i in range(len(self.contacts))]
        return (phi * self.scale).reshape(-1, 9), np.array(blocks).reshape(-1, 9, 9)

    # -- symbols -------------------------------------------------------------------------------------------------------

    def merge(self, phi: ca.SX, p: ca.SX) -> ca.SX:
        """``phi`` with its estimated entries replaced by ``p``."""
        full = ca.SX(phi)
        for k, index in enumerate(self.estimated):
            full[int(index)] = p[k]
        return full

    def split(self, phi: ca.SX) -> list[tuple[ca.SX, ca.SX, ca.SX]]:
        """Per contact K [N/m], x_rest [m, base], x_tcp [m, TCP] of an internal ``phi``."""
        parts = []
        for i in range(len(self.contacts)):
            parts.append((phi[9 * i:9 * i + 3] * STIFFNESS_UNIT, phi[9 * i + 3:9 * i + 6], phi[9 * i + 6:9 * i + 9]))
        return parts

    def points(self, kinematics: Kinematics, phi: ca.SX) -> list[ca.SX]:
        """Contact points (3,) [m] in the base frame: p(q) + R(q) x_tcp."""
        rotation, position = self.arm.tcp(kinematics)
        return [position + rotation @ point for _, _, point in self.split(phi)]

    def forces(self, kinematics: Kinematics, phi: ca.SX) -> list[ca.SX]:
        """Forces (3,) [N] on the robot in base axes, one per contact."""
        points = self.points(kinematics, phi)
        return [force_base(k, rest, x) for (k, rest, _), x in zip(self.split(phi), points)]

    def joint_torque(self, kinematics: Kinematics, phi: ca.SX) -> ca.SX:
        """tau_e(q, phi) (n,) [Nm]: sum of J_i^T n_i F_i (eq. 5-7)."""
        torque = ca.SX.zeros(self.arm.n)
        for x, force in zip(self.points(kinematics, phi), self.forces(kinematics, phi)):
            torque += kinematics.point_jacobian(self.arm.tcp_frame, x).T @ force
        return torque

    def wrench_base(self, kinematics: Kinematics, phi: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Total force (3,) [N] and torque (3,) [Nm] about the TCP, both in base axes."""
        position = self.arm.tcp(kinematics)[1]
        force, torque = ca.SX.zeros(3), ca.SX.zeros(3)
        for x, f in zip(self.points(kinematics, phi), self.forces(kinematics, phi)):
            force += f
            torque += ca.cross(x - position, f)
        return force, torque
