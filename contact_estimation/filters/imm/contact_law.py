"""The contacts of the IMM filter at a configuration: depth and slip from the filter's coordinates, force from the law.

    k = e^(ln K),   n = n0 + a1 t1 + a2 t2 (normalised),   x = p(q) + R(q) p_tcp,   x0 = x at the last block
    depth = d - n^T (x - x0),   slip_i = r_i - t_i^T (x - x0),   F = n N + t1 T1 + t2 T2,
    friction_i = f_i - mu g t_i^T s,   g = max(1 - 2 (n^T s)^2, 0)

The state holds ln K, so K > 0 by construction: neither K = 0 nor a change of sign is possible. It holds depth and slip
where the arm is, not a place in the base frame: about the base's origin a tilt of 0.1 rad would move a surface by
centimetres, and the equations would be linear nowhere. So only motion along the surface shows its tilt (robocentric
coordinates: Castellanos, Neira, Tardos, Limits to the consistency of EKF-based SLAM, 2004). A rest height that is
configured and not estimated is a place in the base frame. The slip r exists if the law depends on it. Coulomb friction
mu opposes the direction s in which the tool goes, as far as it goes along the surface rather than into it (g): a tool
that goes into a surface at 45 degrees to n touches another surface. f_i is what deviates from that, as of a point that
sticks.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from contact_estimation.contact.closed import ClosedContact
from contact_estimation.filters.imm.state import ContactPart, StateLayout
from contact_estimation.robot import Arm
from contact_estimation.robot.rigid_body import Kinematics

#: [N] A contact that has just closed has zero depth but for rounding (1e-16 m times 1e6 N/m at most). There the force
#: has the mean of its slopes on both sides, so that its uncertainty does not depend on rounding.
_ROUNDING = 1e-6


class ContactExpressions(NamedTuple):
    """One contact at a configuration.

    Attributes:
        part: its parameters and its part of the state.
        axes: (3, 3), columns normal and tangents before any tilt, base axes.
        normal: (3,) with tilt, base axes.
        point_tcp: (3,) [m], TCP frame.
        point: (3,) [m], base frame.
        closed: what its law sees.
        normal_force: [N].
        force: (3,) [N] of the closed contact on the robot, base axes.
        rest: x_rest (3,) [m], base frame.
    """

    part: ContactPart
    axes: ca.SX
    normal: ca.SX
    point_tcp: ca.SX
    point: ca.SX
    closed: ClosedContact
    normal_force: ca.SX
    force: ca.SX
    rest: ca.SX


def pose_of(values: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return rotation (3, 3) and position (3,) [m] of a pose (12,): its position, then its rotation by columns."""
    return ca.reshape(values[3:], 3, 3), values[:3]


def contacts_at(
    layout: StateLayout,
    pose: tuple[ca.SX, ca.SX],
    x: ca.SX,
    theta: ca.SX,
    basis: ca.SX,
    slip_direction: ca.SX | None = None,
    reference: tuple[ca.SX, ca.SX] | None = None,
    unilateral: bool = False,
) -> list[ContactExpressions]:
    """Return the expressions of all contacts where the TCP is.

    Args:
        layout: parts of the filters' state.
        pose: rotation (3, 3) and position (3,) [m] of the TCP.
        x: (N,) state.
        theta: (theta_size,) parameters that are not estimated.
        basis: (9 I,) normals and tangents, column by column.
        slip_direction: s (3,) in base axes, of length one while the tool slides; zero by default.
        reference: the pose at which the state holds depth and slip; default ``pose``.
        unilateral: never let a contact pull, nor rub without pressing, unless its law opens by itself; for what is
            published. The filters keep the law of the closed contact, whose pull makes a closed contact that has opened
            lose against the free mode at once.
    """
    (rotation, position), contacts = pose, []
    before = pose if reference is None else reference
    direction = ca.SX(3, 1) if slip_direction is None else slip_direction
    for i, part in enumerate(layout.contacts):
        values = ca.SX(theta[part.theta_where])
        values[part.estimated] = x[part.where]
        p, axes = part.theta.split(values), ca.reshape(basis[9 * i : 9 * i + 9], 3, 3)
        normal, tangents = axes[:, 0], axes[:, 1:]
        if any(index is not None for index in part.indices("tilt")):
            normal = normal + tangents @ p.tilt
            normal = normal / ca.norm_2(normal)
            tangents = tangents - normal @ (normal.T @ tangents)
        point = position + rotation @ p.point
        way = point - (before[1] + before[0] @ p.point)
        slip = p.rest_tangential - tangents.T @ way if part.law.feels_slip else ca.SX(2, 1)
        parameters = p.law * ca.DM([q.scale for q in part.law.parameters])
        if part.friction:
            along = ca.fmax(1 - 2 * ca.dot(normal, direction) ** 2, 0)
            parameters[part.friction] -= p.slip_friction * along * (tangents.T @ direction)
        (rest,) = part.indices("rest")
        depth = p.rest - ca.dot(normal, point if rest is None else way)
        closed = ClosedContact(part.law, ca.horzcat(normal, tangents), ca.exp(p.stiffness), depth, slip, parameters)
        force = closed.force
        if unilateral and not part.law.opens:  # no tangential force without normal force
            force = force * (0.5 * ((force[0] > -_ROUNDING) + (force[0] > _ROUNDING)))
        known = point + normal * depth + tangents @ slip
        base = ca.densify(closed.axes @ force)
        contacts.append(ContactExpressions(part, axes, normal, p.point, point, closed, force[0], base, known))
    return contacts


class ContactForces:
    """Forces of the contacts of the IMM filter at a configuration.

    Args:
        arm: the robot.
        kinematics: of the robot at the configuration.
        contacts: per contact its expressions there, of :func:`contacts_at`.
    """

    def __init__(self, arm: Arm, kinematics: Kinematics, contacts: list[ContactExpressions]) -> None:
        self._arm, self._kinematics, self._pose, self.contacts = arm, kinematics, arm.tcp(kinematics), contacts

    @property
    def depth(self) -> ca.SX:
        """Depths (I,) [m]."""
        return ca.vertcat(*[contact.closed.depth for contact in self.contacts])

    def joint_torque(self, closed: ca.SX) -> ca.SX:
        """Return tau_e (n,) [Nm] of the closed contacts; ``closed`` (I,) is one or zero."""
        torque = ca.SX.zeros(self._arm.n)
        for i, contact in enumerate(self.contacts):
            torque += closed[i] * self.point_torque(contact, contact.force)
        return torque

    def point_torque(self, contact: ContactExpressions, force: ca.SX) -> ca.SX:
        """Return the joint torque (n, k) [Nm] of forces (3, k) [N] at a contact's point, base axes."""
        torque: ca.SX = self._kinematics.point_jacobian(self._arm.tcp_frame, contact.point).T @ force
        return torque

    def wrench_base(self, closed: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the total force [N] and torque [Nm] about the TCP, (3,) each, in base axes."""
        force, torque = ca.SX.zeros(3), ca.SX.zeros(3)
        for i, contact in enumerate(self.contacts):
            force += closed[i] * contact.force
            torque += closed[i] * ca.cross(contact.point - self._pose[1], contact.force)
        return force, torque
