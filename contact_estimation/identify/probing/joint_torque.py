"""The wrench from joint torque, without a force sensor.

The external joint torque tau_e = J^T w + slow error + noise gives the weighted least-squares wrench
w = (J R^-1 J^T)^-1 J R^-1 tau_e. The slow error (friction that the model lacks) is a state of the filter per joint. The
same matrix maps it to the wrench, so a change of posture separates it from contact.

Leaning the probe accelerates the arm, and M ddq is several newtons at the tip. Without a correction the estimate
becomes overconfident and wrong. With p = M dq, dp/dt = tau + drift + tau_e (De Luca and Mattone 2005). Over a block of
length T the mean of tau_e is therefore (p_end - p_begin) / T - mean(tau + drift), without differentiating a velocity
per sample. Whether M includes the reflected rotors depends on where the torque is measured
(:meth:`~contact_estimation.robot.arm.Arm.measured_at`).
"""

from __future__ import annotations

import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.momentum import build_step
from contact_estimation.robot import Arm


def tool_jacobian(arm: Arm, q: np.ndarray) -> np.ndarray:
    """Return the TCP Jacobian (6, n) in tool axes at ``q`` (n,)."""
    jacobian, rotation = arm.tcp_jacobian(q), arm.tcp_pose(q)[1]
    return np.vstack([rotation.T @ jacobian[:3], rotation.T @ jacobian[3:]])


def torque_to_wrench(jacobian: np.ndarray, torque_variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weigh the joints so that their external torque tells the wrench.

    Args:
        jacobian: (6, n), whose first three rows are dual to the force.
        torque_variance: (n,) [Nm^2].

    Returns:
        matrix (6, n) from external joint torque to the wrench in the Jacobian's axes, and the wrench's covariance.

    Raises:
        ConfigError: the arm is singular there, so the wrench cannot be told.
    """
    weighted = jacobian / torque_variance
    information = weighted @ jacobian.T
    if np.linalg.cond(information) > 1e12:
        raise ConfigError(
            "the arm is at a singular posture, where joint torque does not determine the wrench; move it away"
        )
    covariance = np.linalg.inv(information)
    return covariance @ weighted, covariance


class TorqueBlock:
    """Means of position, velocity and external torque over a block of samples, since the last :meth:`take`.

    Args:
        arm: the robot, as its torque sensors see it.
    """

    def __init__(self, arm: Arm) -> None:
        self._terms = compile_function(build_step(arm))
        self._n = arm.n
        self.reset()

    def reset(self) -> None:
        """Begin at rest."""
        self._momentum = self._begin = np.zeros(self._n)
        self._clear()

    def _clear(self) -> None:
        self.elapsed, self._sums = 0.0, np.zeros((3, self._n))

    def add(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Take one sample.

        Args:
            dt: time since the last sample [s].
            q: positions (n,) [rad].
            dq: velocities (n,) [rad/s].
            tau: measured torque (n,) [Nm].

        Returns:
            external torque (n,) [Nm] of this sample, were the arm's momentum constant.
        """
        self._terms.inputs["q"][:], self._terms.inputs["dq"][:] = q, dq
        self._terms()
        out = self._terms.outputs
        self._momentum = out["momentum"].copy()
        driven: np.ndarray = tau + out["drift"]
        self._sums += dt * np.array([q, dq, driven])
        self.elapsed += dt
        return -driven

    def take(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the means (n,) of position, velocity and external torque [rad, rad/s, Nm]; begin the next block."""
        q, dq, driven = self._sums / self.elapsed
        external = (self._momentum - self._begin) / self.elapsed - driven
        self._begin = self._momentum
        self._clear()
        return q, dq, external
