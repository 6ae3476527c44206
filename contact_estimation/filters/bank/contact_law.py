"""The closed contact of the bank, and its force at a configuration.

    F_n = K (d - n^T x),   K = e^(ln K),   n = n0 + a1 t1 + a2 t2 (normalised),   x = p(q) + R(q) p_tcp
    F = n F_n + (t1 f1 + t2 f2) F_n                       of a point that slides: f are coefficients of friction
    F = n F_n + t1 K (f1 - t1^T x) + t2 K (f2 - t2^T x)   of a point that sticks: f is where it is held

It is eq. 4 of paper 2 with K > 0 by construction (neither the sign of K nor K = 0 can be reached). A single normal
feels d = n^T x_rest only; the spring of paper 1 in all three directions is the point that sticks.
"""

from __future__ import annotations

import casadi as ca

from contact_estimation.filters.bank.layout import CONTACT_SIZE, BankLayout
from contact_estimation.robot import Arm
from contact_estimation.robot.rigid_body import Kinematics


class ContactForces:
    """Expressions for the contacts of a bank at a configuration.

    Args:
        x: (N,) state. theta: (9 I,) parameters that are not estimated. basis: (9 I,) normals and tangents, column by
        column.
        unilateral: never let a contact pull, nor rub without pressing; for what is published. The filters keep the
            linear law, whose pull makes a closed contact that has opened lose against the free mode at once.

    Attributes:
        parameters: per contact the (9,) expression with estimates in place. normals, points, forces: per contact (3,)
        in the base frame [-, m, N], the forces those of closed contacts. axes: per contact (3, 3), columns normal and
        tangents before any tilt. rests: per contact x_rest (3,) [m]. normal_force: per contact [N]. depth: per contact
        d - n^T x [m].
    """

    def __init__(
        self,
        arm: Arm,
        layout: BankLayout,
        kinematics: Kinematics,
        x: ca.SX,
        theta: ca.SX,
        basis: ca.SX,
        unilateral: bool = False,
    ):
        rotation, position = arm.tcp(kinematics)
        self._arm, self._kinematics = arm, kinematics
        self.parameters, self.axes, self.normals, self.points, self.rests = [], [], [], [], []
        self.forces, self.normal_force, self.depth = [], [], []
        for i, (slots, where) in enumerate(zip(layout.estimated, layout.contact)):
            p = ca.SX(theta[CONTACT_SIZE * i : CONTACT_SIZE * (i + 1)])
            for k, slot in enumerate(slots):
                p[slot] = x[where.start + k]
            axes = ca.reshape(basis[9 * i : 9 * i + 9], 3, 3)
            normal = axes[:, 0]
            if {2, 3} & set(slots):
                normal = normal + axes[:, 1] * p[2] + axes[:, 2] * p[3]
                normal = normal / ca.norm_2(normal)
            point = position + rotation @ p[4:7]
            depth = p[1] - ca.dot(normal, point)
            self.depth.append(depth)
            pressed = ca.exp(p[0]) * depth
            if unilateral:
                pressed = ca.fmax(pressed, 0)
            self.parameters.append(p)
            self.axes.append(axes)
            self.normals.append(normal)
            self.points.append(point)
            self.normal_force.append(pressed)
            rest = point + normal * depth
            if layout.sticks[i]:
                sideways = p[7:9] - axes[:, 1:].T @ point
                held = ca.exp(p[0]) * sideways
                if unilateral:  # nothing holds a point that is not pressed
                    held = held * (pressed > 0)
                self.forces.append(normal * pressed + axes[:, 1:] @ held)
                rest += axes[:, 1:] @ sideways
            else:
                self.forces.append(pressed * (normal + axes[:, 1:] @ p[7:9]))
            self.rests.append(rest)

    def joint_torque(self, closed: ca.SX) -> ca.SX:
        """tau_e (n,) [Nm] of the closed contacts; ``closed`` (I,) is one or zero."""
        torque = ca.SX.zeros(self._arm.n)
        for i, (point, force) in enumerate(zip(self.points, self.forces)):
            torque += closed[i] * (self._kinematics.point_jacobian(self._arm.tcp_frame, point).T @ force)
        return torque

    def wrench_base(self, closed: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Total force [N] and torque [Nm] about the TCP (3,) each, in base axes."""
        position = self._arm.tcp(self._kinematics)[1]
        force, torque = ca.SX.zeros(3), ca.SX.zeros(3)
        for i, (point, f) in enumerate(zip(self.points, self.forces)):
            force += closed[i] * f
            torque += closed[i] * ca.cross(point - position, f)
        return force, torque
