"""Calibrated friction along a motion: from the measured torque to what moves the links, and how uncertain that is."""

from __future__ import annotations

import numpy as np

from contact_estimation.robot.actuators import ActuatorSettings, actuators_of
from contact_estimation.robot.arm import Arm
from contact_estimation.robot.friction import friction_torque, presliding_slope, presliding_step

#: Variance of a second difference of white noise over the variance of the noise: 1 + 4 + 1.
_SECOND_DIFFERENCE = 6.0


class FrictionModel:
    """Torque scale and joint friction of ``actuators.yaml``, for observers that do not estimate them.

    The presliding states follow positions behind a low-pass and a deadband, which grows with the encoders' noise.

    Args:
        arm: the robot.
        choice: as :func:`~contact_estimation.robot.actuators.actuators_of` takes it; None takes nothing off, and what
            the robot's own friction may be is uncertainty.

    Attributes:
        actuators: joint friction and actuators. presliding: states (n,) of the friction.
    """

    def __init__(self, arm: Arm, choice: str | ActuatorSettings | None) -> None:
        self.actuators = actuators_of(arm, choice or "robot", told=choice is not None)
        self._compensates, friction = choice is not None, self.actuators.friction
        self._scale = np.array(friction.torque_scale) if self._compensates else np.ones(arm.n)
        self._length = np.maximum(friction.presliding, 1e-6)  # [rad] an encoder's resolution; it is divided by
        self.reset(np.zeros(arm.n))

    def reset(self, q: np.ndarray) -> None:
        """Start at rest at ``q`` (n,) [rad]: which way the joints came from is not known."""
        self._filtered, self._followed, self._last, self._before_last = (np.array(q, float) for _ in range(4))
        self.presliding, self._slope, self._noise = np.zeros((3, len(q)))
        self._dq, self._tau = np.zeros((2, len(q)))

    def take(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return the torque that moves the links, with the robot's viscous friction B dq inside.

        Args:
            dt: time since the last sample [s].
            q: positions (n,) [rad].
            dq: velocities (n,) [rad/s].
            tau: measured torque (n,) [Nm].
        """
        a = self.actuators
        jump = (q - 2 * self._last + self._before_last) ** 2 / _SECOND_DIFFERENCE
        self._noise += min(dt / a.noise_time, 1.0) * (jump - self._noise)
        self._before_last, self._last = self._last, np.array(q, float)
        self._filtered += (1.0 - np.exp(-2 * np.pi * a.position_filter * dt)) * (q - self._filtered)
        width = np.maximum(a.deadband, a.deadband_noise * np.sqrt(self._noise))
        moved = np.clip(self._followed, self._filtered - width, self._filtered + width)
        step, self._followed = moved - self._followed, moved
        self._slope = presliding_slope(self.presliding, self._slope, step, self._length)
        self.presliding = presliding_step(self.presliding, step, self._length)
        self._dq, self._tau = np.array(dq, float), self._scale * tau
        if not self._compensates:
            return self._tau
        return np.asarray(self._tau - friction_torque(a.friction, dq, self.presliding))

    def variance(self) -> np.ndarray:
        """Return the variance (n,) [Nm^2] of the last :meth:`take`: what friction and scale may be off, and noise."""
        a, speed = self.actuators, self._dq
        f = {name: np.array(value) for name, value in vars(a.friction).items()}
        errors = [f["bias_std"], np.array(a.disturbance_std), np.array(a.torque_noise)]
        errors += [f["viscous_std"] * speed, f["asymmetry_std"] * speed, f["torque_scale_std"] * self._tau]
        errors += [f["coulomb_std"] * self.presliding, f["coulomb"] * self._slope * f["presliding_std"] / self._length]
        if not self._compensates:
            errors += [f["bias"], f["coulomb"], f["viscous"] * speed, f["asymmetry"] * speed]
            errors += [(f["torque_scale"] - 1) * self._tau]
        return np.asarray(np.sum(np.square(errors), axis=0))
