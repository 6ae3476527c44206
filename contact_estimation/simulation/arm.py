"""One simulated arm among surfaces.

MuJoCo moves the links; joint friction, elastic gears and contacts act through applied forces.
"""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
from scipy.linalg import lapack

from contact_estimation.exceptions import DriverError, shape_error
from contact_estimation.robot import Arm, RobotSettings
from contact_estimation.settings import replace
from contact_estimation.simulation.friction import LuGreFriction
from contact_estimation.simulation.model import TCP_SITE, build_spec
from contact_estimation.simulation.sensors.settings import ImperfectionSettings, per_joint, strength
from contact_estimation.simulation.surfaces import PointMemory, Surface, Touch


class SimulatedArm:
    """Steps of one fixed length; everything between two steps is readable as attributes.

    Args:
        arm: the robot.
        q: (n,) [rad] at the start, at rest.
        surfaces: what may be touched.
        points_tcp: (P, 3) [m] tool points that touch, TCP frame.
        settings: friction, elasticity and payload of the joints.
        timestep: of a step [s].
        rng: draws the unmodelled torque.

    Attributes:
        q: link side (n,) [rad].
        dq: link side (n,) [rad/s].
        motor_position: motor side (n,) [rad], the same for rigid gears.
        motor_velocity: motor side (n,) [rad/s], the same for rigid gears.
        motor_torque: torque of the motors at the joint side of an ideal gear (n,) [Nm].
        link_torque: what passes the gear (n,) [Nm].
        friction_torque: (n,) [Nm] opposing motion.
        tau_ext: (n,) [Nm] of the environment.
        wrench_tcp: environment ON the robot (6,), about the TCP, TCP axes.
        touches: per tool point, per surface, what acts now.
        position: of the TCP (3,) [m], base frame.
        rotation: of the TCP (3, 3), base frame.
        pushes: further forces: joint from 1 whose link is pushed (0: the TCP), point (3,) [m] in its frame, force (3,)
            [N] in base axes. ``wrench_tcp`` holds those at the TCP, ``tau_ext`` all.
        time: [s].
        limited_time: (n,) [s] since the start in which more than the joint's effort limit was asked of its motor.
    """

    def __init__(
        self,
        arm: Arm,
        q: np.ndarray,
        surfaces: list[Surface],
        points_tcp: np.ndarray,
        settings: ImperfectionSettings,
        timestep: float,
        rng: np.random.Generator,
    ) -> None:
        n = arm.n
        if np.shape(q) != (n,):
            raise shape_error(f"SimulatedArm '{arm.name}'", "q", np.shape(q), (n,))
        self.arm, self.timestep, self.surfaces = arm, float(timestep), list(surfaces)
        self._points = np.atleast_2d(np.array(points_tcp, float))
        payload = strength(settings.payload) * settings.payload.mass
        plant = arm if payload == 0 else Arm(_with_payload(arm.settings, payload, settings.payload.com))
        self._gravity_error = (
            strength(settings.payload)
            * per_joint(settings.payload.gravity_error, n, "payload.gravity_error")
            * rng.standard_normal(n)
        )
        elasticity = settings.elasticity
        self.elastic = strength(elasticity) > 0 and elasticity.stiffness is not None
        if self.elastic and not (arm.motor.armature > 0).all():
            raise DriverError(
                f"robot '{arm.name}' has no rotor inertia; elastic joints need it (rotor_inertia in its YAML)"
            )
        self._stiffness = per_joint(elasticity.stiffness, n, "elasticity.stiffness") / max(strength(elasticity), 1e-12)
        self._gear_damping = self._stiffness * elasticity.damping_time
        friction = settings.friction
        coulomb = strength(friction) * per_joint(friction.coulomb, n, "friction.coulomb")
        self._friction = LuGreFriction(
            coulomb, friction.static_ratio * coulomb, friction.stribeck_velocity, friction.presliding, arm.motor.viscous
        )
        self.model = build_spec(plant, timestep, rotor_inertia=not self.elastic).compile()
        self.data = mujoco.MjData(self.model)
        self._tcp_body = int(self.model.site_bodyid[self.model.site(TCP_SITE).id])
        self._site = self.data.site(TCP_SITE)
        self._mass, self._jacobian = np.zeros((n, n)), np.zeros((3, n))
        self._velocity6 = np.zeros(6)
        self._diagonal = np.diag_indices(n)
        self._limit = np.where(arm.effort_limit > 0, arm.effort_limit, np.inf)
        self._memories = [[PointMemory() for _ in self.surfaces] for _ in self._points]
        self.touches: list[list[Touch]] = []
        self.pushes: list[tuple[int, np.ndarray, np.ndarray]] = []
        self.reset(q)

    def reset(self, q: np.ndarray) -> None:
        """At rest at ``q`` (n,) [rad], with unloaded friction and no memory."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = q
        mujoco.mj_step1(self.model, self.data)
        n = self.arm.n
        self.limited_time = np.zeros(n)
        self.motor_position, self.motor_velocity = np.array(q, float), np.zeros(n)
        self.motor_torque, self.friction_torque = np.array(self.data.qfrc_bias), np.zeros(n)
        self.link_torque, self.tau_ext = np.array(self.data.qfrc_bias), np.zeros(n)
        if self.elastic:  # the gears are already wound up by gravity
            self.motor_position = self.motor_position + self.link_torque / self._stiffness
        self.wrench_tcp = np.zeros(6)
        self._friction.bristle[:] = 0.0
        for memory in (memory for memories in self._memories for memory in memories):
            memory.clear()
        self._contact_forces()

    @property
    def q(self) -> np.ndarray:
        """Link positions (n,) [rad]; a view."""
        view: np.ndarray = self.data.qpos
        return view

    @property
    def dq(self) -> np.ndarray:
        """Link velocities (n,) [rad/s]; a view."""
        view: np.ndarray = self.data.qvel
        return view

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return float(self.data.time)

    @property
    def position(self) -> np.ndarray:
        """TCP position (3,) [m]; a view."""
        view: np.ndarray = self._site.xpos
        return view

    @property
    def rotation(self) -> np.ndarray:
        """TCP rotation (3, 3); a view."""
        view: np.ndarray = self._site.xmat.reshape(3, 3)
        return view

    def point(self, index: int = 0) -> np.ndarray:
        """Tool point ``index`` (3,) [m] in the base frame."""
        return np.array(self.position + self.rotation @ self._points[index])

    def step(self, motor_torque: np.ndarray) -> None:
        """Advance by one step under ``motor_torque`` (n,) [Nm]; torques beyond the joints' effort limits are cut off.

        Raises:
            DriverError: the simulation left the realm of finite numbers.
        """
        model, data = self.model, self.data
        self.motor_torque = np.minimum(np.maximum(motor_torque, -self._limit), self._limit)
        self.limited_time += self.timestep * (self.motor_torque != motor_torque)
        drive = self.motor_torque + self._gravity_error
        if self.elastic:
            self._step_gears(drive)
            data.qfrc_applied[:] = self.link_torque + self.tau_ext
            mujoco.mj_step2(model, data)
        else:
            self.friction_torque = self._friction.torque(data.qvel, self.timestep)
            data.qfrc_applied[:] = drive - self.friction_torque + self.tau_ext
            mujoco.mj_step2(model, data)
            self.link_torque = drive - self.friction_torque - self.arm.motor.armature * data.qacc
            self.motor_position, self.motor_velocity = data.qpos, data.qvel
        mujoco.mj_step1(model, data)  # so that poses, forces and truth belong to the new state
        self._contact_forces()
        if not math.isfinite(sum(data.qvel.tolist())):
            limited = [name for name, time in zip(self.arm.joint_names, self.limited_time) if time > 0.0]
            advice = "use a shorter timestep, a softer surface or lower gains"
            if limited:
                advice += f", or ask less of {', '.join(limited)}: their motors were at their effort limit"
            raise DriverError(f"the simulation of '{self.arm.name}' diverged at {self.time:.3f} s; {advice}")

    def _contact_forces(self) -> None:
        data = self.data
        mujoco.mj_objectVelocity(self.model, data, mujoco.mjtObj.mjOBJ_SITE, self._site.id, self._velocity6, 0)
        angular, linear = self._velocity6[:3], self._velocity6[3:]
        position, rotation = self.position, self.rotation
        self.tau_ext = np.zeros(self.arm.n)
        force_sum, torque_sum = np.zeros(3), np.zeros(3)
        self.touches = []
        for i, local in enumerate(self._points):
            lever = rotation @ local
            point, velocity = position + lever, linear + np.array(_cross(angular, lever))
            row = [
                surface.touch(point, velocity, self._memories[i][k], self.timestep)
                for k, surface in enumerate(self.surfaces)
            ]
            self.touches.append(row)
            force = sum((touch.force for touch in row if touch.closed), np.zeros(3))
            if force.any():
                mujoco.mj_jac(self.model, data, self._jacobian, None, point, self._tcp_body)
                self.tau_ext += self._jacobian.T @ force
                force_sum += force
                torque_sum += _cross(lever, force)
        for joint, local, force in self.pushes:
            point = self.push_point(joint, local)
            body = int(self.model.body(self.arm.joint_names[joint - 1]).id) if joint else self._tcp_body
            mujoco.mj_jac(self.model, data, self._jacobian, None, point, body)
            self.tau_ext += self._jacobian.T @ force
            if not joint:
                force_sum += force
                torque_sum += _cross(point - position, force)
        self.wrench_tcp = np.concatenate([rotation.T @ force_sum, rotation.T @ torque_sum])

    def push_point(self, joint: int, local: np.ndarray) -> np.ndarray:
        """Return a point (3,) [m] of a frame of the arm in the base frame.

        Args:
            joint: from 1, whose link has the frame; 0: the TCP.
            local: (3,) [m] in that frame.
        """
        if not joint:
            return np.array(self.position + self.rotation @ local)
        body = self.data.body(self.arm.joint_names[joint - 1])
        return np.array(body.xpos + body.xmat.reshape(3, 3) @ local)

    def _step_gears(self, drive: np.ndarray) -> None:
        """Step the rotor side of elastic gears, the spring taken at the end of the step (linearly implicit).

        With d = theta - q, tau = k d+ + c d'+ = k d + (k h + c) d'+ and d'+ = d' + h (I^-1 (drive - tau) - M^-1 (tau +
        f)).
        """
        h, inertia = self.timestep, self.arm.motor.armature
        mujoco.mj_fullM(self.model, self.data, self._mass)
        self.friction_torque = self._friction.torque(self.motor_velocity, h)
        rotor = (drive - self.friction_torque) / inertia
        # LAPACK itself: at this size numpy's wrappers cost several times the work.
        factor, _ = lapack.dpotrf(self._mass, lower=1)
        inverse, _ = lapack.dpotri(factor, lower=1)  # the lower triangle
        link, _ = lapack.dpotrs(factor, self.tau_ext - self.data.qfrc_bias, lower=1)
        gain = self._stiffness * h + self._gear_damping
        free = self._stiffness * (self.motor_position - self.q) + gain * (
            self.motor_velocity - self.dq + h * (rotor - link)
        )
        inverse[self._diagonal] += 1.0 / inertia + 1.0 / (gain * h)
        _, self.link_torque, _ = lapack.dposv(inverse, free / (gain * h), lower=1)
        self.motor_velocity = self.motor_velocity + h * (rotor - self.link_torque / inertia)
        self.motor_position = self.motor_position + h * self.motor_velocity

    def truth(self) -> dict[str, np.ndarray]:
        """Ground truth by the names of :data:`contact_estimation.io.recording.TRUTH_COLUMNS`.

        ``stiffness``, ``rest`` and ``contact_point`` are those of the touch with the largest force, else of the nearest
        surface to the first tool point; ``wrench_tcp`` and ``tau_ext`` sum over all touches.

        Returns:
            Name -> values: ``wrench_tcp`` (6,) [N, Nm], TCP axes; ``stiffness`` (3,) [N/m], ``rest`` and
                ``contact_point`` (3,) [m], base frame; ``tau_ext`` (n,) [Nm].
        """
        best, best_point, best_key = None, self.point(), -np.inf
        for i, row in enumerate(self.touches):
            for touch in row:
                rank = 1.0 + float(touch.force @ touch.force) if touch.closed else min(touch.penetration, 0.0)
                if rank > best_key:
                    best, best_point, best_key = touch, self.point(i), rank
        nothing = np.full(3, np.nan)
        return {
            "wrench_tcp": self.wrench_tcp.copy(),
            "tau_ext": self.tau_ext.copy(),
            "stiffness": nothing if best is None else best.stiffness.copy(),
            "rest": nothing if best is None else best.rest.copy(),
            "contact_point": np.array(best_point),
        }


def _with_payload(settings: RobotSettings, mass: float, com: list[float]) -> RobotSettings:
    total = settings.tool_mass + mass
    centre = (settings.tool_mass * np.array(settings.tool_com) + mass * np.array(com)) / total
    return replace(settings, tool_mass=float(total), tool_com=[float(c) for c in centre])


def _cross(a: np.ndarray, b: np.ndarray) -> tuple[Any, Any, Any]:
    # Numbers of Python: for three of them numpy costs several times as much.
    (a0, a1, a2), (b0, b1, b2) = a.tolist(), b.tolist()
    return (a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0)
