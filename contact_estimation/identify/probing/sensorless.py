"""Probing without a force sensor: the wrench from joint torque, with the error that this brings.

The joint torque of the environment, tau_ext = J^T w + slow error + noise, gives the weighted least-squares wrench
w = (J R^-1 J^T)^-1 J R^-1 tau_ext. The slow error (friction that the model does not know) is a state of the filter
per joint; how it reaches the wrench is the same matrix, so posture tells it apart from contact.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import ConfigError
from contact_estimation.identify.probing.experiment import Data, Experiment, simulate
from contact_estimation.identify.probing.world_spatial import homogeneous
from contact_estimation.robot import Arm, load_arm
from contact_estimation.settings import replace


@dataclass(frozen=True)
class TorqueError:
    """Error of the external joint torque of an arm at 25 Hz: ``white`` per sample and ``slow`` with correlation time
    ``time`` [s], standard deviations per joint [Nm]; ``posture`` [rad] is where the example probes."""

    white: tuple[float, ...]
    slow: tuple[float, ...]
    time: float
    posture: tuple[float, ...]


#: Motor currents (friction inside) of a UR16e: the residual spread of recorded motions. Joint-torque sensors of an
#: FR3: a bias that drifts by a few per mille of the range.
ARMS = {
    "ur16e": TorqueError((0.44, 0.66, 0.27, 0.14, 0.07, 0.06), (1.5, 2.0, 1.0, 0.5, 0.3, 0.2), 2.0,
                         (0.0, -1.4, 1.9, -2.07, -1.57, 0.0)),
    "fr3": TorqueError((0.05,) * 7, (0.2, 0.2, 0.2, 0.2, 0.08, 0.08, 0.08), 2.0, (0.0, -0.5, 0.0, -2.2, 0.0, 1.7, 0.8)),
}


def torque_to_wrench(jacobian: np.ndarray, torque_variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matrix (6, n) from external joint torque to wrench, and the covariance (6, 6) of the wrench, in the Jacobian's
    axes.

    Args:
        jacobian: (6, n), force of the wrench dual to its first three rows. torque_variance: (n,) [Nm^2].

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


def tool_jacobian(arm: Arm, q: np.ndarray) -> np.ndarray:
    """TCP Jacobian (6, n) in tool axes at ``q`` (n,)."""
    jacobian, rotation = arm.tcp_jacobian(q), arm.tcp_pose(q)[1]
    return np.vstack([rotation.T @ jacobian[:3], rotation.T @ jacobian[3:]])


def sensorless_experiment(experiment: Experiment, name: str) -> tuple[Experiment, Data, "TorqueWrench"]:
    """The spatial experiment with the wrench of an arm's joint torque: adapted experiment, data, and the sensor for
    :func:`~contact_estimation.identify.probing.runs.filter_spatial`.

    Raises:
        ConfigError: there is no torque error for this arm.
    """
    if name not in ARMS:
        raise ConfigError(f"there is no torque error for the arm '{name}'; known: {', '.join(ARMS)}")
    error = ARMS[name]
    settings = replace(experiment.settings, torque_bias_std=error.slow, torque_bias_time=error.time)
    experiment = dataclasses.replace(experiment, settings=settings)
    data = simulate(experiment)
    return experiment, data, TorqueWrench(load_arm(name), error, data, experiment)


class TorqueWrench:
    """Wrench sensor made of an arm: turns the measured wrench of a recording into the joint torque it causes, adds
    the torque's error, and gives back the wrench that the torque tells."""

    def __init__(self, arm: Arm, error: TorqueError, data: Data, experiment: Experiment):
        self._arm, self._error = arm, error
        self._rng = np.random.default_rng([experiment.seed, 1])
        self._decay = np.exp(-1.0 / (experiment.rate * error.time))
        position, rotation = arm.tcp_pose(np.array(error.posture))
        self._posture = homogeneous(rotation, position)
        self._guess = data.guess

    def __call__(self, run: int, k: int, pose: np.ndarray, wrench: np.ndarray):
        """Wrench (6,) in tool axes told by the torque at sample ``k`` of ``run``, its covariance (6, 6) and the map
        (6, n) of the slow error. Samples of a run come in order."""
        if k == 0:
            self._q = np.array(self._error.posture)
            self._slow = np.array(self._error.slow) * self._rng.standard_normal(self._arm.n)
            self._to_base = self._posture @ np.linalg.inv(self._guess.pose(run))
        else:
            kick = np.sqrt(1.0 - self._decay**2) * np.array(self._error.slow)
            self._slow = self._decay * self._slow + kick * self._rng.standard_normal(self._arm.n)
        goal = self._to_base @ pose
        self._q = self._arm.solve_pose(goal[:3, 3], goal[:3, :3], self._q, 1e-6, 20)
        jacobian = tool_jacobian(self._arm, self._q)
        white = np.array(self._error.white)
        torque = jacobian.T @ wrench + self._slow + white * self._rng.standard_normal(self._arm.n)
        to_wrench, covariance = torque_to_wrench(jacobian, white**2)
        return to_wrench @ torque, covariance, to_wrench
