"""Admittance on a position-controlled arm: measured force moves the target pose, and a stiff joint servo follows it.

This is how an industrial arm such as the UR16e realises compliance: dx_d = dx_ref + (f_d + f) / D, with f the measured
force of the environment on the robot, and the servo tracking x_d in joint space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_estimation.control.impedance import clip_norm
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm
from contact_estimation.settings import key, non_negative, positive


@dataclass(frozen=True, kw_only=True)
class ServoSettings:
    """Joint position servo: computed torque with PID action on inertia-normalised gains."""

    bandwidth: float = key(
        12.0,
        doc="natural frequency of the position loop; a high one makes an arm with elastic gears ring",
        unit="Hz",
        check=positive,
    )
    damping_ratio: float = key(0.9, doc="damping ratio of the position loop", unit="", check=positive)
    integral: float = key(8.0, doc="rate of the integral action; 0 turns it off", unit="1/s", check=non_negative)
    deadband: float = key(
        2.0e-5,
        doc="position error below which the integral rests, so that presliding friction does not make it hunt",
        unit="rad",
        check=non_negative,
    )


@dataclass(frozen=True, kw_only=True)
class AdmittanceSettings:
    """The admittance and the servo under it."""

    damping: float = key(
        2000.0, doc="force per commanded speed; smaller follows force faster", unit="Ns/m", check=positive
    )
    rotational_damping: float = key(100.0, doc="torque per commanded angular speed", unit="Nms/rad", check=positive)
    stiffness: float = key(
        0.0,
        doc="stiffness with which the reference is followed under measured force; 0: as stiff as when jogging",
        unit="N/m",
        check=non_negative,
    )
    max_force: float = key(30.0, doc="largest force of that stiffness", unit="N", check=positive)
    max_speed: float = key(0.05, doc="largest commanded speed of the TCP", unit="m/s", check=positive)
    servo: ServoSettings = key(ServoSettings(), doc="the joint servo that follows")


class JointServo:
    """Motor torque that makes the joints follow a reference.

    Args:
        arm: the robot.
        settings: of the servo.
        period: between two calls [s].
    """

    def __init__(self, arm: Arm, settings: ServoSettings, period: float) -> None:
        self.arm, self.settings, self._period = arm, settings, period
        self._omega = 2.0 * np.pi * settings.bandwidth
        self._integral = np.zeros(arm.n)

    def reset(self) -> None:
        """Forget the integral action."""
        self._integral[:] = 0.0

    def torque(
        self, q: np.ndarray, dq: np.ndarray, q_ref: np.ndarray, dq_ref: np.ndarray, ddq_ref: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the motor torque (n,) [Nm] towards a reference.

        Args:
            q: (n,) measured [rad].
            dq: (n,) measured [rad/s].
            q_ref: (n,) reference [rad].
            dq_ref: (n,) reference [rad/s].
            ddq_ref: (n,) [rad/s^2]; without it the reference does not accelerate.
        """
        error = q_ref - q
        active = np.abs(error) > self.settings.deadband
        self._integral += self.settings.integral * self._period * np.where(active, error, 0.0)
        omega = self._omega
        wanted = omega**2 * (error + self._integral) + 2.0 * self.settings.damping_ratio * omega * (dq_ref - dq)
        if ddq_ref is not None:
            wanted = wanted + ddq_ref
        terms = self.arm.terms(q, dq)
        return np.asarray(terms.mass @ wanted + terms.coriolis + terms.gravity)


class AdmittanceController:
    """Turns a reference pose and a wanted force into joint references by differential inverse kinematics.

    The state is the wanted joint position; the pose reference enters as velocity plus a slow pull towards it along
    directions without wanted force, so that a force-controlled direction is free to move.

    Args:
        arm: the robot.
        settings: of the admittance.
        period: between two calls [s].
    """

    #: Pull towards the reference pose [1/s] in directions that are position controlled.
    PULL = 10.0

    def __init__(self, arm: Arm, settings: AdmittanceSettings, period: float) -> None:
        self.arm, self.settings, self._period = arm, settings, period
        self.servo = JointServo(arm, settings.servo, period)
        self._pseudo_inverse_damping = 1e-8 * np.eye(6)  # damped least squares: J^T (J J^T + damping)^-1
        self.q_ref = np.zeros(arm.n)
        self.dq_ref = np.zeros(arm.n)
        self._stiffness, self._max_force = np.full(3, settings.stiffness), settings.max_force
        self._damping = settings.damping

    def comply(self, stiffness: np.ndarray, damping: float, max_force: float = np.inf) -> None:
        """Follow poses under measured force from now on, whatever the settings say.

        Args:
            stiffness: (3,) [N/m], base axes.
            damping: force per commanded speed [Ns/m].
            max_force: limit of the stiffness' force [N].
        """
        self._stiffness, self._damping, self._max_force = np.array(stiffness, float), float(damping), float(max_force)

    def reset(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Start at rest at ``q`` (n,) [rad]; returns the TCP pose there, the reference that commands no motion."""
        self.q_ref = np.array(q, float)
        self.dq_ref = np.zeros(self.arm.n)
        self.servo.reset()
        return self.arm.tcp_pose(q)

    def update(
        self,
        x_ref: np.ndarray,
        rotation_ref: np.ndarray,
        twist_ref: np.ndarray,
        force_wanted: np.ndarray | None = None,
        force_measured: np.ndarray | None = None,
        free_rotation: bool = False,
    ) -> None:
        """Advance the joint reference by one period.

        Args:
            x_ref: (3,) reference position [m], base frame.
            rotation_ref: (3, 3) reference attitude, base frame.
            twist_ref: (6,) twist of the reference, linear [m/s] over angular [rad/s], base axes.
            force_wanted: (3,) [N] the robot shall exert, base axes; zero components are position controlled. None, or
                all zero: every component is.
            force_measured: (6,) wrench of the environment ON the robot about the TCP, base axes. Without it a pose is
                followed stiffly.
            free_rotation: measured torque may turn the tool (an arm that arcs about a contact point).

        Raises:
            ConfigError: there is no measured wrench for a wanted force, or for a tool that turns freely.
        """
        at_rest = self.arm.terms(self.q_ref)
        x, rotation, jacobian = at_rest.position, at_rest.rotation, at_rest.jacobian
        twist = np.array(twist_ref, float)
        settings = self.settings
        if self._stiffness.any() and force_wanted is None and force_measured is not None:
            spring = clip_norm(self._stiffness * (x_ref - x), self._max_force)
            pull = (spring + force_measured[:3]) / self._damping
        else:
            pull = self.PULL * (x_ref - x)
        size = 0.0 if force_wanted is None else float(np.linalg.norm(force_wanted))
        if force_wanted is not None and size > 0:
            if force_measured is None:
                raise ConfigError(_unmeasured(f"force_wanted is {force_wanted} N"))
            direction = force_wanted / size
            pull -= (pull @ direction) * direction
            balance = float(direction @ (force_wanted + force_measured[:3]))
            pull += direction * balance / self._damping
        twist[:3] = clip_norm(twist[:3] + pull, settings.max_speed)
        if free_rotation:
            if force_measured is None:
                raise ConfigError(_unmeasured("free_rotation is True"))
            twist[3:] += force_measured[3:] / settings.rotational_damping
        else:
            twist[3:] += self.PULL * (rotation @ pin.log3(rotation.T @ rotation_ref))
        self.dq_ref = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + self._pseudo_inverse_damping, twist)
        self.q_ref = self.q_ref + self._period * self.dq_ref

    def torque(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """Motor torque (n,) [Nm] that follows the joint reference.

        Args:
            q: (n,) measured [rad].
            dq: (n,) measured [rad/s].
        """
        return self.servo.torque(q, dq, self.q_ref, self.dq_ref)


def _unmeasured(given: str) -> str:
    return f"{given}, but force_measured is None; give the measured wrench (6,) [N, Nm] ON the robot, base axes"
