"""The arm: description, symbolic dynamics and motor side in one object."""

from __future__ import annotations

import copy
import dataclasses
import functools
import os
from pathlib import Path
from typing import NamedTuple

import casadi as ca
import numpy as np
import pinocchio as pin

from contact_estimation.codegen import CompiledFunction, compile_built
from contact_estimation.exceptions import shape_error
from contact_estimation.robot.description import UNLIMITED, find_frame, load_model
from contact_estimation.robot.motor import MotorSide
from contact_estimation.robot.rigid_body import Expression, Kinematics, RigidBody
from contact_estimation.robot.settings import RobotSettings, load_robot_settings
from contact_estimation.robot.tool import LINK, TCP, load_tool


class RigidBodyTerms(NamedTuple):
    """What a torque law of the TCP needs at one state, from one evaluation of the generated code.

    Attributes:
        position: of the TCP (3,) [m], base frame.
        rotation: of the TCP (3, 3), base frame.
        jacobian: of the TCP (6, n), base axes, linear above angular.
        mass: M(q) (n, n) [kg m^2] with reflected rotor inertia.
        gravity: G(q) (n,) [Nm].
        coriolis: C(q, dq) dq (n,) [Nm].
    """

    position: np.ndarray
    rotation: np.ndarray
    jacobian: np.ndarray
    mass: np.ndarray
    gravity: np.ndarray
    coriolis: np.ndarray


class Arm:
    """A robot arm with n joints.

    Its numeric methods write into buffers of the object: only one thread at a time may call them.

    Attributes:
        settings: the robot's settings.
        tool: what is behind the flange.
        model: Pinocchio model (links, gravity and tool; without rotor inertia).
        n: number of joints.
        joint_names: their names, base to tip.
        base_frame: name of the frame in which poses and forces are expressed.
        tcp_frame: name of the flange's frame.
        motor: motor side.
        lower: joint limits (n,) [rad].
        upper: joint limits (n,) [rad].
        unlimited: indices of the joints that turn without limit; drivers may tell their positions within one turn.
        velocity_limit: (n,) [rad/s].
        effort_limit: (n,) [Nm], 0 where the URDF has none.
    """

    def __init__(self, settings: RobotSettings) -> None:
        self.settings = settings
        self.tool = load_tool(settings.tool, settings.folder)
        self.model = load_model(settings)
        self.motor = MotorSide.from_settings(settings)
        self.body = RigidBody(self.model, settings.base_frame)
        self.n, self.joint_names = self.body.n, tuple(settings.joints)
        self.base_frame, self.tcp_frame = settings.base_frame, TCP if self.tool.has_tcp else settings.tcp_frame
        self.lower, self.upper = np.array(self.model.lowerPositionLimit), np.array(self.model.upperPositionLimit)
        self.unlimited = np.flatnonzero(self.upper >= UNLIMITED)
        self.velocity_limit, self.effort_limit = np.array(self.model.velocityLimit), np.array(self.model.effortLimit)

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.settings.name

    @property
    def tool_name(self) -> str:
        """Name of the tool behind the flange, "" for none."""
        return Path(self.settings.tool).stem

    @property
    def tcp_lever(self) -> np.ndarray:
        """Way (3,) [m] from the flange to the TCP, TCP axes."""
        return np.asarray(pin.exp3(np.array(self.tool.tcp_rotation)).T @ np.array(self.tool.tcp))

    @property
    def determinants(self) -> tuple[object, ...]:
        """What everything else here is made from: generated code is found again by it."""
        return self.settings, self.tool, self.model

    @functools.cached_property
    def tool_link(self) -> str:
        """Name of the link that the TCP belongs to: the one its joint moves, whatever else is fixed to it."""
        if self.tool.geometry:
            return LINK
        joint = self.frame(self.tcp_frame).parentJoint
        bodies = (f.name for f in self.model.frames if f.parentJoint == joint and f.type == pin.FrameType.BODY)
        return str(next(bodies, self.tcp_frame))

    def frame(self, name: str) -> pin.Frame:
        """Return a frame of :attr:`model` by its name: that of a link before that of a joint.

        Args:
            name: of the frame; one that exists.
        """
        return find_frame(self.model, name)

    @property
    def one_turn(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends (n,) of a range of positions that holds every posture, and none twice [rad]."""
        more = self.upper - self.lower > 2.0 * np.pi + 1e-9
        return np.where(more, -np.pi, self.lower), np.where(more, np.pi, self.upper)

    def unwrap(self, q: np.ndarray) -> np.ndarray:
        """Return positions (N, n) [rad] whose unlimited joints go on where they are told within one turn.

        Args:
            q: (N, n) in the order of time.
        """
        q = np.array(q, float)
        q[:, self.unlimited] = np.unwrap(q[:, self.unlimited], axis=0)
        return q

    def measured_at(self, side: str) -> Arm:
        """Return the arm as joint torque measured there sees it.

        Args:
            side: ``motor``: torque of the motors, this arm; ``link``: behind the gears, where the reflected rotors and
                the motors' viscous friction are out of the sensors' sight.
        """
        return self if side == "motor" else self._links

    @functools.cached_property
    def _links(self) -> Arm:
        nothing = [0.0] * self.n
        return Arm(dataclasses.replace(self.settings, rotor_inertia=nothing, viscous_friction=nothing))

    # -- symbolic, for the layers above --------------------------------------------------------------------------------

    def kinematics(self, q: ca.SX) -> Kinematics:
        """Symbolic placements at ``q`` (n,); the argument of every other symbolic quantity."""
        return self.body.kinematics(q)

    def tcp(self, kinematics: Kinematics) -> tuple[ca.SX, ca.SX]:
        """Return rotation (3, 3) and position (3,) [m] of the TCP in the base frame.

        Args:
            kinematics: placements at a configuration.
        """
        return kinematics.frame(self.tcp_frame)

    def mass_matrix(self, kinematics: Kinematics) -> Expression:
        """Return M(q) (n, n) [kg m^2] with reflected rotor inertia.

        Args:
            kinematics: placements at a configuration.
        """
        return self.body.crba(kinematics) + ca.diag(ca.SX(self.motor.armature))

    def inverse_dynamics(self, kinematics: Kinematics, dq: ca.SX, ddq: ca.SX) -> Expression:
        """Return M ddq + C dq + G (n,) [Nm] with reflected rotor inertia, without friction.

        Args:
            kinematics: placements at a configuration.
            dq: (n,) [rad/s].
            ddq: (n,) [rad/s^2].
        """
        return self.body.rnea(kinematics, dq, ddq) + ca.SX(self.motor.armature) * ddq

    # -- numeric -------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _numeric(self) -> CompiledFunction:
        return compile_built(_build_numeric, self)

    def for_another_thread(self) -> Arm:
        """Return the same arm with buffers of its own, for numeric methods that run beside those of this one."""
        other, numeric = copy.copy(self), self._numeric
        other.__dict__["_numeric"] = CompiledFunction(numeric.function, numeric.backend, numeric.path)
        other.__dict__.pop("_links", None)
        return other

    def _evaluate(self, q: np.ndarray, dq: np.ndarray | None = None) -> dict[str, np.ndarray]:
        function = self._numeric
        q = np.asarray(q, float)
        if q.shape != (self.n,):
            raise shape_error(f"Arm '{self.name}'", "q", q.shape, (self.n,))
        function.inputs["q"][:] = q
        function.inputs["dq"][:] = 0.0 if dq is None else dq
        function()
        return function.outputs

    def tcp_pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position (3,) [m] and rotation (3, 3) of the TCP in the base frame at ``q`` (n,)."""
        out = self._evaluate(q)
        return out["p"].copy(), out["R"].reshape(3, 3, order="F").copy()

    def terms(self, q: np.ndarray, dq: np.ndarray | None = None) -> RigidBodyTerms:
        """Return pose, Jacobian, mass, gravity and Coriolis torque of one state at the price of one of them.

        Args:
            q: (n,) [rad].
            dq: (n,) [rad/s]; None: at rest.
        """
        out = self._evaluate(q, dq)
        return RigidBodyTerms(
            out["p"].copy(),
            out["R"].reshape(3, 3, order="F").copy(),
            np.array(out["J"].reshape(6, self.n, order="F")),
            np.array(out["M"].reshape(self.n, self.n, order="F")),
            out["G"].copy(),
            out["C"].copy(),
        )

    def tcp_jacobian(self, q: np.ndarray) -> np.ndarray:
        """Return the Jacobian (6, n) of the TCP in base axes, linear above angular.

        Args:
            q: (n,) [rad].
        """
        return np.array(self._evaluate(q)["J"].reshape(6, self.n, order="F"))

    def mass(self, q: np.ndarray) -> np.ndarray:
        """M(q) (n, n) [kg m^2] with reflected rotor inertia."""
        return np.array(self._evaluate(q)["M"].reshape(self.n, self.n, order="F"))

    def gravity(self, q: np.ndarray) -> np.ndarray:
        """G(q) (n,) [Nm]: the torque that holds the arm still in free space."""
        return np.array(self._evaluate(q)["G"])

    def coriolis(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """C(q, dq) dq (n,) [Nm]."""
        return np.array(self._evaluate(q, dq)["C"])

    def tcp_poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (N, 3) [m] and rotations (N, 3, 3) of the TCP in the base frame.

        Args:
            q: (N, n) [rad].
        """
        q = np.asarray(q, float)
        positions, rotations = np.empty((len(q), 3)), np.empty((len(q), 3, 3))
        for k, row in enumerate(q):
            positions[k], rotations[k] = self.tcp_pose(row)
        return positions, rotations

    def solve_pose(
        self,
        position: np.ndarray,
        rotation: np.ndarray,
        start: np.ndarray,
        tolerance: float = 1e-9,
        iterations: int = 200,
    ) -> np.ndarray:
        """Solve the inverse kinematics by damped least squares.

        Args:
            position: of the TCP (3,) [m], base frame.
            rotation: of the TCP (3, 3).
            start: joint positions (n,) to begin with [rad].
            tolerance: of position [m] and rotation [rad] together.
            iterations: at most.

        Returns:
            Joint positions (n,); the nearest found, so check :meth:`tcp_pose` where it matters.
        """
        q = np.array(start, float)
        for _ in range(iterations):
            p, r = self.tcp_pose(q)
            error = np.concatenate([position - p, r @ pin.log3(r.T @ rotation)])
            if np.linalg.norm(error) < tolerance:
                break
            jacobian = self.tcp_jacobian(q)
            q += jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-8 * np.eye(6), error)
        return q


def _build_numeric(arm: Arm) -> ca.Function:
    """Return the function of TCP pose and Jacobian, mass matrix, gravity and Coriolis torque at q, dq (n,)."""
    q, dq = ca.SX.sym("q", arm.n), ca.SX.sym("dq", arm.n)
    kin = arm.kinematics(q)
    rotation, position = arm.tcp(kin)
    outputs = [
        position,
        rotation,
        kin.jacobian(arm.tcp_frame),
        arm.mass_matrix(kin),
        arm.body.gravity_torque(kin),
        arm.body.rnea(kin, dq, ca.SX.zeros(arm.n), gravity=False),
    ]
    names = ["p", "R", "J", "M", "G", "C"]
    return ca.Function(f"arm_{arm.name}", [q, dq], [ca.densify(o) for o in outputs], ["q", "dq"], names)


def load_arm(name: str | os.PathLike[str], tool: str = "") -> Arm:
    """Load the arm of a shipped robot by name, or of a profile folder or robot YAML by path.

    Args:
        name: shipped robot, profile folder, or robot YAML.
        tool: behind the flange: name or YAML; empty: that of the profile.

    Raises:
        ConfigError: unknown name or bad settings. ModelError: the description cannot be used.
    """
    return Arm(load_robot_settings(name, tool))
