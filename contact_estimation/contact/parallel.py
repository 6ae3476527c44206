"""Contacts in parallel (paper 2, eq. 7), their parameters packed into vectors.

``phi`` holds all parameters of the contacts, [K; x_rest; x_tcp; law parameters] of one after the other, in internal
units (stiffness in 1e4 N/m, so that covariances of stiffness and length have similar magnitude); ``p`` is the part of
it that is estimated. :meth:`ParallelContacts.in_si` turns them into SI units; what takes or returns ``phi`` or ``p``
elsewhere says so.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from contact_estimation.contact.closed import ClosedContact, from_stiffness_vector
from contact_estimation.contact.registry import find_law
from contact_estimation.contact.settings import CONTACT_PARAMETERS, ContactSettings
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm
from contact_estimation.robot.rigid_body import Kinematics

#: Internal unit of stiffness [N/m].
STIFFNESS_UNIT = 1e4
_SCALE = {"stiffness": STIFFNESS_UNIT, "rest": 1.0, "point": 1.0}
_UNIT = {"stiffness": "N/m", "rest": "m", "point": "m"}


class Entry(NamedTuple):
    """One entry of ``phi``.

    Attributes:
        contact: index of its contact.
        kind: stiffness, rest, point, or the name of a law's parameter.
        group: word of ``estimate`` that asks for it.
        axis: 0, 1, 2 of a vector; None for a law's parameter.
        unit: SI unit.
        scale: SI value of one internal unit.
        intensity: of the noise that drives a law's parameter [internal unit^2/s].
        time_constant: [s] after which a law's parameter has forgotten its deviation from the start.
    """

    contact: int
    kind: str
    group: str
    axis: int | None
    unit: str
    scale: float
    intensity: float = 0.0
    time_constant: float = math.inf


class ContactParts(NamedTuple):
    """Expressions of one contact's parameters.

    Attributes:
        stiffness: K (3,) [N/m], base axes.
        rest: x_rest (3,) [m], base frame.
        point: x_tcp (3,) [m], TCP frame.
        law: (P,) [SI] the law's own parameters.
    """

    stiffness: ca.SX
    rest: ca.SX
    point: ca.SX
    law: ca.SX


class ParallelContacts:
    """Compliant contacts acting on one arm.

    Args:
        arm: the robot.
        contacts: their settings.

    Attributes:
        contacts: their settings.
        laws: the law of each.
        entries: what every entry of ``phi`` is.
        size: number of entries of ``phi``.
        places: per contact its slice of ``phi``.
        estimated: indices of ``p`` within ``phi``.
        scale: (size,) SI value of one internal unit.

    Raises:
        ConfigError: two contacts have the same name.
    """

    def __init__(self, arm: Arm, contacts: list[ContactSettings]) -> None:
        names = [c.name for c in contacts]
        if len(set(names)) != len(names):
            raise ConfigError(f"contacts need different names, found {names}")
        self.arm, self.contacts = arm, list(contacts)
        self.laws = [find_law(c.law) for c in contacts]
        self.entries: list[Entry] = []
        self.places: list[slice] = []
        for i, law in enumerate(self.laws):
            start = len(self.entries)
            self.entries += [
                Entry(i, kind, kind, axis, _UNIT[kind], _SCALE[kind])
                for kind in CONTACT_PARAMETERS
                for axis in range(3)
            ]
            self.entries += [
                Entry(i, p.name, p.group, None, p.unit, p.scale, p.intensity, p.time_constant) for p in law.parameters
            ]
            self.places.append(slice(start, len(self.entries)))
        self.size = len(self.entries)
        self.estimated = np.array(
            [k for k, entry in enumerate(self.entries) if entry.group in contacts[entry.contact].estimate], dtype=int
        )
        self.scale = np.array([entry.scale for entry in self.entries])
        # Made once, because in_si runs with every estimate.
        self._place, self._unit = np.ix_(self.estimated, self.estimated), np.outer(self.scale, self.scale)

    @property
    def n_estimated(self) -> int:
        """Number of estimated parameters."""
        return len(self.estimated)

    # -- numbers -------------------------------------------------------------------------------------------------------

    def initial(self, q: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the parameters before anything was measured.

        Args:
            q: (n,) configuration [rad], where a contact's rest is ``start``.

        Returns:
            phi: (size,) in internal units.
            std: standard deviations of ``p`` in internal units.
        """
        position, rotation = self.arm.tcp_pose(q)
        phi: list[float] = []
        std: list[float] = []
        for c in self.contacts:
            rest = position + rotation @ np.asarray(c.point) if isinstance(c.rest, str) else c.rest
            phi += [*c.stiffness, *rest, *c.point, *(mean for _, mean, _ in c.law_prior)]
            std += [
                *[c.stiffness_std] * 3,
                *[c.rest_std] * 3,
                *[c.point_std] * 3,
                *(spread for *_, spread in c.law_prior),
            ]
        return np.array(phi) / self.scale, (np.array(std) / self.scale)[self.estimated]

    def in_si(
        self, phi: NDArray[np.float64], covariance: NDArray[np.float64]
    ) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Return per contact its parameters [SI] and their covariance, from internal units.

        Args:
            phi: (size,) internal.
            covariance: of ``p``, internal.

        Returns:
            Per contact its parameters (9 + the law's own,) and their covariance, square of that size.
        """
        full = np.zeros((self.size, self.size))
        full[self._place] = covariance
        full *= self._unit
        values = phi * self.scale
        return [(values[place], full[place, place]) for place in self.places]

    # -- symbols -------------------------------------------------------------------------------------------------------

    def merge(self, phi: ca.SX, p: ca.SX) -> ca.SX:
        """Return ``phi`` with its estimated entries replaced by ``p``."""
        full = ca.SX(phi)
        for k, index in enumerate(self.estimated):
            full[int(index)] = p[k]
        return full

    def split(self, phi: ca.SX) -> list[ContactParts]:
        """Return the parts of an internal ``phi`` per contact."""
        values = [phi[place] * ca.DM(self.scale[place]) for place in self.places]
        return [ContactParts(v[:3], v[3:6], v[6:9], v[9:]) for v in values]

    def points(self, kinematics: Kinematics, phi: ca.SX) -> list[ca.SX]:
        """Return the contact points (3,) [m] in the base frame: p(q) + R(q) x_tcp.

        Args:
            kinematics: placements at a configuration, as the arm gives them.
            phi: (size,) parameters of all contacts, internal units.
        """
        rotation, position = self.arm.tcp(kinematics)
        return [position + rotation @ parts.point for parts in self.split(phi)]

    def closed(self, kinematics: Kinematics, phi: ca.SX) -> list[ClosedContact]:
        """Return the contacts as their laws see them.

        Args:
            kinematics: placements at a configuration, as the arm gives them.
            phi: (size,) parameters of all contacts, internal units.
        """
        return [
            from_stiffness_vector(law, parts.stiffness, parts.rest - x, parts.law, np.asarray(c.stiffness))
            for law, c, parts, x in zip(self.laws, self.contacts, self.split(phi), self.points(kinematics, phi))
        ]

    def forces(self, kinematics: Kinematics, phi: ca.SX) -> list[ca.SX]:
        """Return the forces (3,) [N] on the robot in base axes, one per contact.

        Args:
            kinematics: placements at a configuration, as the arm gives them.
            phi: (size,) parameters of all contacts, internal units.
        """
        return [contact.force_base for contact in self.closed(kinematics, phi)]

    def joint_torque(self, kinematics: Kinematics, phi: ca.SX) -> ca.SX:
        """Return tau_e(q, phi) (n,) [Nm]: sum of J_i^T n_i F_i (eq. 5-7).

        Args:
            kinematics: placements at a configuration, as the arm gives them.
            phi: (size,) parameters of all contacts, internal units.
        """
        torque = ca.SX.zeros(self.arm.n)
        for x, force in zip(self.points(kinematics, phi), self.forces(kinematics, phi)):
            torque += kinematics.point_jacobian(self.arm.tcp_frame, x).T @ force
        return torque

    def wrench_base(self, kinematics: Kinematics, phi: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the total force (3,) [N] and torque (3,) [Nm] about the TCP, both in base axes.

        Args:
            kinematics: placements at a configuration, as the arm gives them.
            phi: (size,) parameters of all contacts, internal units.
        """
        position = self.arm.tcp(kinematics)[1]
        force, torque = ca.SX.zeros(3), ca.SX.zeros(3)
        for x, f in zip(self.points(kinematics, phi), self.forces(kinematics, phi)):
            force += f
            torque += ca.cross(x - position, f)
        return force, torque
