"""Symbolic kinematics and dynamics of a serial arm: placements, Jacobians, RNEA and CRBA in CasADi SX.

The code works in 3-vectors directly on the placements and inertias of a ``pinocchio.Model``. SX then drops every
multiplication by the zeros and ones of the description. Generic spatial algebra needs several times the instructions.
Algorithms: Featherstone, Rigid Body Dynamics Algorithms (2008), tables 5.1 and 6.2.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_estimation.exceptions import ModelError
from contact_estimation.robot.description import find_frame

#: A CasADi matrix.
Expression: TypeAlias = Any
#: Mass [kg], first moment (3,) [kg m] and second moment (3, 3) [kg m^2] about a joint's origin.
Inertia: TypeAlias = tuple[Any, Any, Any]
#: Entries of rotations and axes nearer than this to 0 or +-1 are the description's rounding noise.
_SNAP = 1e-12


def _snap(array: npt.ArrayLike) -> np.ndarray:
    exact = np.array(array, dtype=float)
    nearest = np.round(exact)
    return np.where(np.abs(exact - nearest) < _SNAP, nearest, exact)


class Kinematics:
    """Placements of one configuration, shared by every quantity computed from it.

    Attributes:
        q: (n,) SX joint positions [rad or m].
        local: per joint (R, p): rotation and origin of the joint frame in its parent joint's frame.
        world: per joint (R, p): the same in the base frame (axes and origin of ``base_frame``).
    """

    def __init__(self, body: RigidBody, q: ca.SX) -> None:
        self.body, self.q = body, q
        self.local: list[tuple[Expression, Expression]] = []
        self.world: list[tuple[Expression, Expression]] = []
        for i in range(body.n):
            rotation, origin = body.joint_transform(i, q[i])
            if i == 0:
                parent_rotation, parent_origin = body.base_rotation, body.base_origin
            else:
                parent_rotation, parent_origin = self.world[i - 1]
            self.local.append((rotation, origin))
            self.world.append((parent_rotation @ rotation, parent_rotation @ origin + parent_origin))

    def frame(self, name: str) -> tuple[Expression, Expression]:
        """Rotation (3, 3) and origin (3,) [m] of a frame in the base frame."""
        joint, rotation, origin = self.body.frame_offset(name)
        if joint < 0:
            return ca.SX(self.body.base_rotation @ rotation), ca.SX(
                self.body.base_rotation @ origin + self.body.base_origin
            )
        joint_rotation, joint_origin = self.world[joint]
        return joint_rotation @ rotation, joint_rotation @ origin + joint_origin

    def axis(self, i: int) -> Expression:
        """Return the unit axis of joint ``i`` in base axes."""
        return self.world[i][0] @ self.body.axes[i]

    def point_jacobian(self, name: str, point: ca.SX) -> Expression:
        """(3, n) Jacobian of a ``point`` (3,) [m, base frame] fixed to frame ``name``, in base axes."""
        columns = []
        last = self.body.frame_offset(name)[0]
        for i in range(self.body.n):
            if i > last:
                columns.append(ca.SX.zeros(3))
            elif self.body.prismatic[i]:
                columns.append(self.axis(i))
            else:
                columns.append(ca.cross(self.axis(i), point - self.world[i][1]))
        return ca.horzcat(*columns)

    def jacobian(self, name: str) -> Expression:
        """(6, n) Jacobian of frame ``name`` in base axes: linear velocity of its origin, then angular velocity."""
        last = self.body.frame_offset(name)[0]
        angular = [
            self.axis(i) if i <= last and not self.body.prismatic[i] else ca.SX.zeros(3) for i in range(self.body.n)
        ]
        return ca.vertcat(self.point_jacobian(name, self.frame(name)[1]), ca.horzcat(*angular))


class RigidBody:
    """The rigid-body model of a serial arm as CasADi expressions; equal to Pinocchio to 1e-10.

    Args:
        model: fixed-base serial chain of revolute and prismatic joints.
        base_frame: frame whose axes and origin world quantities are expressed in.

    Raises:
        ModelError: the model branches or has another type of joint.
    """

    def __init__(self, model: pin.Model, base_frame: str) -> None:
        self.model, self.n = model, model.nv
        if list(model.parents)[1:] != list(range(self.n)):
            raise ModelError("the arm must be one serial chain; lock or remove the other joints of the description")
        base = self._frame(base_frame).placement.inverse()
        self.base_rotation, self.base_origin = _snap(base.rotation), _snap(base.translation)
        self._gravity = _snap(model.gravity.linear)
        self.axes: list[np.ndarray] = []
        self.prismatic: list[bool] = []
        data = model.createData()
        pin.computeJointJacobians(model, data, pin.neutral(model))
        for i in range(self.n):
            name = model.joints[i + 1].shortname()
            if not any(word in name for word in ("JointModelR", "JointModelP")) or model.joints[i + 1].nq != 1:
                raise ModelError(
                    f"joint '{model.names[i + 1]}' is a {name}; only revolute and prismatic joints are supported"
                )
            column = data.oMi[i + 1].actInv(pin.Motion(data.J[:, i]))
            self.prismatic.append("JointModelP" in name)
            self.axes.append(_snap(column.linear if self.prismatic[i] else column.angular))
        self._placements = [
            (_snap(model.jointPlacements[i + 1].rotation), _snap(model.jointPlacements[i + 1].translation))
            for i in range(self.n)
        ]
        self._inertias = [_origin_inertia(model.inertias[i + 1]) for i in range(self.n)]

    def kinematics(self, q: ca.SX) -> Kinematics:
        """Placements at ``q`` (n,)."""
        return Kinematics(self, q)

    def frame_offset(self, name: str) -> tuple[int, np.ndarray, np.ndarray]:
        """Joint a frame is fixed to (-1 for the world), and its constant rotation and origin in that joint's frame.

        Raises:
            ModelError: no such frame.
        """
        frame = self._frame(name)
        return frame.parentJoint - 1, _snap(frame.placement.rotation), _snap(frame.placement.translation)

    def _frame(self, name: str) -> pin.Frame:
        frame = find_frame(self.model, name)
        if frame is None:
            raise ModelError(f"there is no frame '{name}' in the robot's description")
        return frame

    def joint_transform(self, i: int, q: ca.SX) -> tuple[Expression, Expression]:
        """Rotation and origin of joint frame ``i`` in its parent joint's frame at joint position ``q``."""
        rotation, origin = self._placements[i]
        axis = self.axes[i]
        if self.prismatic[i]:
            return ca.SX(rotation), origin + (rotation @ axis) * q
        skew = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
        outer = np.outer(axis, axis)
        turn = ca.SX(outer) + ca.cos(q) * _snap(np.eye(3) - outer) + ca.sin(q) * skew
        return ca.SX(rotation) @ turn, ca.SX(origin)

    def rnea(self, kinematics: Kinematics, dq: ca.SX, ddq: ca.SX, gravity: bool = True) -> Expression:
        """Return the inverse dynamics M(q) ddq + C(q, dq) dq + G(q) (n,) [Nm], by recursive Newton-Euler.

        Args:
            kinematics: placements at a configuration.
            dq: (n,) [rad/s].
            ddq: (n,) [rad/s^2].
            gravity: whether G is in it.
        """
        rotations, origins = (ca.horzcat(*parts) for parts in zip(*kinematics.local))
        upwards = ca.SX(-self._gravity if gravity else np.zeros(3))
        return self._rnea(rotations, origins, upwards, dq, ddq)

    @functools.cached_property
    def _rnea(self) -> ca.Function:
        """Recursive Newton-Euler algorithm on symbols.

        Calling it with expressions simplifies as building it from them does, and takes a tenth of the time.

        Inputs: rotations (3, 3 n) and origins (3, n) of the joint frames in their parents' frames; acceleration (3,) of
        the base less gravity; dq, ddq (n,). Output: torques (n,).
        """
        rotations, origins = ca.SX.sym("rotations", 3, 3 * self.n), ca.SX.sym("origins", 3, self.n)
        dq, ddq, upwards = ca.SX.sym("dq", self.n), ca.SX.sym("ddq", self.n), ca.SX.sym("upwards", 3)
        local = list(zip(ca.horzsplit(rotations, 3), ca.horzsplit(origins)))
        w, alpha, acceleration = ca.SX.zeros(3), ca.SX.zeros(3), upwards
        forces = []
        for i, (rotation, origin) in enumerate(local):
            axis, back = ca.SX(self.axes[i]), rotation.T
            acceleration = back @ (acceleration + ca.cross(alpha, origin) + ca.cross(w, ca.cross(w, origin)))
            w, alpha = back @ w, back @ alpha
            if self.prismatic[i]:
                acceleration = acceleration + axis * ddq[i] + 2 * ca.cross(w, axis * dq[i])
            else:
                alpha = alpha + axis * ddq[i] + ca.cross(w, axis * dq[i])
                w = w + axis * dq[i]
            mass, first, second = self._inertias[i]
            force = mass * acceleration + ca.cross(alpha, first) + ca.cross(w, ca.cross(w, first))
            moment = second @ alpha + ca.cross(w, second @ w) + ca.cross(first, acceleration)
            forces.append((force, moment))
        torques: list[Expression] = [None] * self.n
        for i in reversed(range(self.n)):
            force, moment = forces[i]
            torques[i] = ca.dot(self.axes[i], force if self.prismatic[i] else moment)
            if i > 0:
                rotation, origin = local[i]
                force = rotation @ force
                forces[i - 1] = (
                    forces[i - 1][0] + force,
                    forces[i - 1][1] + rotation @ moment + ca.cross(origin, force),
                )
        return ca.Function("rnea", [rotations, origins, upwards, dq, ddq], [ca.vertcat(*torques)])

    def gravity_torque(self, kinematics: Kinematics) -> Expression:
        """Return G(q) (n,) [Nm].

        Args:
            kinematics: placements at a configuration.
        """
        return self.rnea(kinematics, ca.SX.zeros(self.n), ca.SX.zeros(self.n))

    def crba(self, kinematics: Kinematics) -> Expression:
        """Return the mass matrix M(q) (n, n) [kg m^2], by composite rigid bodies.

        Args:
            kinematics: placements at a configuration.
        """
        composite = [(mass, ca.SX(first), ca.SX(second)) for mass, first, second in self._inertias]
        matrix = ca.SX(self.n, self.n)
        for i in reversed(range(self.n)):
            mass, first, second = composite[i]
            axis = ca.SX(self.axes[i])
            force, moment = (
                (mass * axis, ca.cross(first, axis)) if self.prismatic[i] else (ca.cross(axis, first), second @ axis)
            )
            for j in reversed(range(i + 1)):
                matrix[j, i] = ca.dot(self.axes[j], force if self.prismatic[j] else moment)
                matrix[i, j] = matrix[j, i]
                rotation, origin = kinematics.local[j]
                force = rotation @ force
                moment = rotation @ moment + ca.cross(origin, force)
            if i > 0:
                composite[i - 1] = _merge(composite[i - 1], _shift(composite[i], *kinematics.local[i]))
        return ca.densify(matrix)


def _origin_inertia(inertia: pin.Inertia) -> Inertia:
    """Mass, first moment and second moment about the joint origin, in the joint's axes."""
    mass, lever = inertia.mass, np.asarray(inertia.lever)
    second = inertia.inertia + mass * (lever @ lever * np.eye(3) - np.outer(lever, lever))
    return mass, mass * lever, second


def _shift(body: Inertia, rotation: Expression, origin: Expression) -> Inertia:
    """Composite inertia (mass, first, second moment about the origin) seen from the parent joint's frame."""
    mass, first, second = body
    turned = rotation @ first
    cross = 2 * ca.dot(origin, turned) + mass * ca.dot(origin, origin)
    moved = (
        rotation @ second @ rotation.T
        + cross * ca.SX.eye(3)
        - origin @ turned.T
        - turned @ origin.T
        - mass * (origin @ origin.T)
    )
    return mass, turned + mass * origin, moved


def _merge(a: Inertia, b: Inertia) -> Inertia:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]
