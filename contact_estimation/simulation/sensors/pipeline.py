"""Convert the simulated arm's state to the signals of its sensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from contact_estimation.simulation.sensors.settings import ImperfectionSettings, per_joint, strength


class Plant(Protocol):
    """What the sensors are mounted on; see :class:`~contact_estimation.simulation.arm.SimulatedArm`."""

    motor_position: np.ndarray
    motor_velocity: np.ndarray
    motor_torque: np.ndarray
    link_torque: np.ndarray
    wrench_tcp: np.ndarray

    @property
    def q(self) -> np.ndarray:
        """Link positions (n,) [rad]."""

    @property
    def dq(self) -> np.ndarray:
        """Link velocities (n,) [rad/s]."""


@dataclass(frozen=True)
class Readings:
    """One sample of the sensors.

    Attributes:
        q: joint positions (n,) [rad].
        dq: joint velocities (n,) [rad/s].
        tau: joint torque (n,) [Nm].
        wrench_tcp: force and torque (6,) [N, Nm], TCP axes.
    """

    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    wrench_tcp: np.ndarray


class SensorPipeline:
    """Noise, quantisation, side of the gear and bias, in the order in which they happen.

    Args:
        settings: imperfections of the sensors.
        n: number of joints.
        period: between two samples [s].
        rng: draws the noise.
    """

    def __init__(self, settings: ImperfectionSettings, n: int, period: float, rng: np.random.Generator) -> None:
        self.settings, self._rng, self._n = settings, rng, n
        torque = settings.torque
        self._torque_scale = strength(torque)
        self._torque_step = self._torque_scale * per_joint(torque.resolution, n, "torque.resolution")
        self._torque_noise = self._torque_scale * per_joint(torque.noise, n, "torque.noise")
        self._colour_std = self._torque_scale * per_joint(torque.coloured_noise, n, "torque.coloured_noise")
        self._torque_bias = self._torque_scale * per_joint(torque.bias, n, "torque.bias")
        self._keep = math.exp(-period / torque.correlation_time)
        self._colour = self._colour_std * rng.standard_normal(n)
        wrench = settings.wrench
        self._wrench_std = strength(wrench) * np.array([wrench.noise] * 3 + [wrench.torque_noise] * 3)
        self._wrench_bias = strength(wrench) * np.array(list(wrench.bias) + [0.0] * 3)

    def read(self, arm: Plant) -> Readings:
        """Read the sensors of a :class:`~contact_estimation.simulation.arm.SimulatedArm` now."""
        s, rng, n = self.settings, self._rng, self._n
        encoder, velocity = s.encoder, s.velocity
        q = self.position(arm)
        scale = strength(encoder)
        q = quantise(q + scale * encoder.noise * rng.standard_normal(n), scale * encoder.resolution)
        dq = arm.motor_velocity if velocity.side == "motor" else arm.dq
        scale = strength(velocity)
        dq = dq + scale * velocity.noise * rng.standard_normal(n)
        dq = quantise(np.where(np.abs(dq) < scale * velocity.deadband, 0.0, dq), scale * velocity.resolution)
        self._colour = self._keep * self._colour + math.sqrt(
            1.0 - self._keep**2
        ) * self._colour_std * rng.standard_normal(n)
        tau = arm.motor_torque if s.torque.side == "motor" else arm.link_torque
        tau = quantise(
            tau + self._torque_noise * rng.standard_normal(n) + self._colour + self._torque_bias, self._torque_step
        )
        wrench = arm.wrench_tcp + self._wrench_std * rng.standard_normal(6) + self._wrench_bias
        return Readings(q, dq, tau, wrench)

    def position(self, arm: Plant) -> np.ndarray:
        """Return the joint positions (n,) [rad] on the side the encoders are, before noise and quantisation.

        Args:
            arm: the plant.
        """
        return arm.motor_position if self.settings.encoder.side == "motor" else arm.q


def quantise(values: np.ndarray, step: Any) -> np.ndarray:
    """``values`` rounded to multiples of ``step`` (number or per entry); entries with step 0 stay as they are."""
    if np.ndim(step) == 0:
        return np.array(values if step == 0 else np.round(values / step) * step)
    safe = np.where(step > 0, step, 1.0)
    return np.where(step > 0, np.round(values / safe) * safe, values)
