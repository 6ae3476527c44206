"""A payload that no tool tells of: joint torque that turns with gravity, by Bayesian linear regression.

A load of mass m with its centre of mass at r in the flange's frame is an external joint torque

    tau_e = Y(q) pi,    pi = [m; m r],    Y = [J_v^T g, J_w^T (R e_k x g)],

with gravity g and the flange's Jacobian J and rotation R in base axes. Free of contact the torque of a block is then
y = Y pi - b - c s + noise, with torque bias b, Coulomb friction c and presliding states s of known prior. The posterior
of pi (Bishop, Pattern Recognition and Machine Learning, 2006, section 3.3) tells of a payload where

- its mass is above zero by the one-sided quantile of the normal distribution, and
- the data are within the chi-square quantile of what the prior of pi, b and c predicts: no push explains them better.

The data are forgotten within ``payload_memory``, and at once where they change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_built, named_function, symbols
from contact_estimation.filters.chi_square import chi_square_survival
from contact_estimation.filters.imm.settings import MismatchSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import ActuatorSettings

#: [s] Data are collected over this before anything is judged.
_COLLECT = 1.0
#: Parameters of a payload: its mass, and its first moment.
_PAYLOAD = 4


@dataclass(frozen=True)
class Payload:
    """A load behind the flange.

    Attributes:
        mass: [kg]. mass_std: its standard deviation [kg].
        com: centre of mass (3,) [m] in the flange's frame.
    """

    mass: float
    mass_std: float
    com: np.ndarray


class _Information:
    """Sums of a linear regression: L (p, p), eta (p,), squared measurement and effective number of samples."""

    def __init__(self, size: int) -> None:
        self.matrix, self.vector = np.zeros((size, size)), np.zeros(size)
        self.square = self.samples = self.time = 0.0

    def add(self, other: _Information, keep: float) -> None:
        """Add what ``other`` knows, and keep a share of what was known."""
        self.matrix, self.vector = keep * self.matrix + other.matrix, keep * self.vector + other.vector
        self.square, self.samples = keep * self.square + other.square, keep * self.samples + other.samples
        self.time += other.time

    def of_slow_friction(self) -> _Information:
        """Return the sums for a friction disturbance with 1 + t / (2 T) independent samples in a time t."""
        found, factor = _Information(len(self.vector)), 1.0 + 1.0 / max(self.samples, 1e-9)
        found.matrix, found.vector = factor * self.matrix, factor * self.vector
        found.square, found.samples, found.time = factor * self.square, self.samples + 1.0, self.time
        return found

    def misfit(self, mean: np.ndarray, covariance: np.ndarray) -> float:
        """Return the chi-square of the data where the parameters are known with a mean and a covariance."""
        left = self.vector - self.matrix @ mean
        total = self.square - 2 * self.vector @ mean + mean @ self.matrix @ mean
        return float(total - left @ np.linalg.solve(np.linalg.inv(covariance) + self.matrix, left))


class PayloadTest:
    """Compares torque that is free of known contacts with that of a payload.

    Args:
        arm: the robot.
        actuators: prior of bias and friction, and noise.
        settings: prior of the payload, and how sure to be.

    Attributes:
        found: the payload, None while there is none to be told.
    """

    def __init__(self, arm: Arm, actuators: ActuatorSettings, settings: MismatchSettings) -> None:
        self._n, self._settings = arm.n, settings
        self._regressor = compile_built(build_regressor, arm)
        friction = actuators.friction
        self._known = np.array(friction.bias), np.array(friction.coulomb)
        load = [settings.payload_std] + [settings.payload_std * settings.payload_lever] * 3
        std = np.maximum(np.concatenate([friction.bias_std, friction.coulomb_std, load]), 1e-6)
        self._prior = np.diag(np.square(std))
        self._variance = np.square(actuators.torque_noise) + np.square(actuators.disturbance_std)
        self._model_error = actuators.model_error
        # Between two independent samples [s]. A disturbance that lasts longer is a bias, which has a prior of its own.
        self._correlation = min(2.0 * actuators.disturbance_time, settings.payload_correlation)
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.found: Payload | None = None
        self._forget()

    def _forget(self) -> None:
        self._past, self._now = _Information(len(self._prior)), _Information(len(self._prior))

    def add(self, duration: float, q: np.ndarray, presliding: np.ndarray, torque: np.ndarray) -> None:
        """Take the torque of a block without a known contact.

        Args:
            duration: time since the last one [s].
            q: joint positions (n,) [rad] of the block.
            presliding: states (n,) of the friction.
            torque: tau_e less friction (n,) [Nm], as measured.
        """
        n, regressor = self._n, self._regressor
        regressor.inputs["q"][:] = q
        regressor()
        of_load = regressor.outputs["regressor"].reshape(n, _PAYLOAD, order="F")
        rows = np.hstack([-np.eye(n), -np.diag(presliding), of_load])  # (n, 2 n + 4)
        bias, coulomb = self._known
        measured = torque + bias + coulomb * presliding
        samples = min(duration / self._correlation, 1.0)
        weight = samples / (self._variance + (self._model_error * measured) ** 2)
        now, weighted = self._now, rows.T * weight
        now.matrix += weighted @ rows
        now.vector += weighted @ measured
        now.square += float(weight @ measured**2)
        now.samples += samples
        now.time += duration
        if now.time >= _COLLECT:
            self._judge()

    def _judge(self) -> None:
        """Add what was collected to what was known, or start anew where the two contradict each other."""
        s, now = self._settings, self._now
        past = self._past.of_slow_friction()
        covariance = self._covariance(past.matrix)
        # Slow friction is one sample of its distribution for as long as the data were collected, not a part of one.
        misfit = now.misfit(covariance @ past.vector, covariance) / min(now.samples, 1.0)
        if chi_square_survival(self._n, misfit) < s.significance**2:
            self._forget()
        self._past.add(now, float(np.exp(-now.time / s.payload_memory)))
        self._now = _Information(len(self._prior))
        self.found = self._payload() if self._past.time >= s.payload_time else None

    def _covariance(self, matrix: np.ndarray) -> np.ndarray:
        """Return the posterior covariance (p, p) of the parameters after data with the information ``matrix``."""
        return np.asarray(np.linalg.inv(np.linalg.inv(self._prior) + matrix))

    def _payload(self) -> Payload | None:
        """Return the payload where its mass is sure, and the prior explains the data."""
        s, past, load = self._settings, self._past.of_slow_friction(), 2 * self._n
        covariance = self._covariance(past.matrix)
        mean = covariance @ past.vector
        mass, std = float(mean[load]), float(np.sqrt(covariance[load, load]))
        misfit, dof = past.misfit(0.0 * mean, self._prior), past.samples * self._n
        no_mass = 0.5 * math.erfc(mass / (math.sqrt(2.0) * std))  # probability of zero or less
        if no_mass > s.significance or chi_square_survival(dof, misfit) < s.significance:
            return None
        return Payload(mass, std, mean[load + 1 :] / mass)


def build_regressor(arm: Arm) -> ca.Function:
    """Return the function q (n,) -> ``regressor`` (n, 4) of a payload's mass [kg] and first moment [kg m]."""
    s = symbols(q=arm.n)
    kinematics, flange = arm.kinematics(s.q), arm.settings.tcp_frame
    jacobian, (rotation, _) = kinematics.jacobian(flange), kinematics.frame(flange)
    gravity = ca.DM(arm.settings.gravity)
    columns = [jacobian[:3, :].T @ gravity]
    columns += [jacobian[3:, :].T @ ca.cross(rotation[:, k], gravity) for k in range(3)]
    return named_function("payload_regressor", s, {"regressor": ca.horzcat(*columns)})
