"""Probing without a force sensor: the wrench from the joint torque of an arm, with the error that this brings."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import ConfigError
from contact_estimation.identify.probing.joint_torque import tool_jacobian, torque_to_wrench
from contact_estimation.identify.probing.spatial import homogeneous
from contact_estimation.robot import Arm, load_arm
from contact_estimation.settings import replace
from contact_estimation.studies.probing.experiment import Data, Experiment, simulate


@dataclass(frozen=True)
class TorqueError:
    """Error of an arm's external joint torque at 25 Hz, standard deviations per joint.

    Attributes:
        white: per sample [Nm].
        slow: of an error with a correlation time [Nm].
        time: that correlation time [s].
        posture: where the example probes [rad].
    """

    white: tuple[float, ...]
    slow: tuple[float, ...]
    time: float
    posture: tuple[float, ...]


#: Motor currents (friction inside) of a UR16e: the residual spread of recorded motions. Joint-torque sensors of an
#: FR3: a bias that drifts by a few per mille of the range.
ARMS = {
    "ur16e": TorqueError(
        (0.44, 0.66, 0.27, 0.14, 0.07, 0.06), (1.5, 2.0, 1.0, 0.5, 0.3, 0.2), 2.0, (0.0, -1.4, 1.9, -2.07, -1.57, 0.0)
    ),
    "fr3": TorqueError((0.05,) * 7, (0.2, 0.2, 0.2, 0.2, 0.08, 0.08, 0.08), 2.0, (0.0, -0.5, 0.0, -2.2, 0.0, 1.7, 0.8)),
}


def sensorless_experiment(experiment: Experiment, name: str) -> tuple[Experiment, Data, TorqueWrench]:
    """Replace the force sensor of the spatial experiment by an arm's joint torque.

    Args:
        experiment: a spatial experiment.
        name: name of the arm.

    Returns:
        the adapted experiment, its data, and the sensor for :func:`~contact_estimation.studies.probing.experiment.run`.

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
    """Wrench sensor made of an arm.

    It turns the measured wrench of a recording into the joint torque it causes, adds the torque's error, and gives back
    the wrench that the torque tells.

    Args:
        arm: the robot.
        error: its torque error.
        data: recording of the experiment.
        experiment: rate and seed.
    """

    def __init__(self, arm: Arm, error: TorqueError, data: Data, experiment: Experiment) -> None:
        self._arm, self._white, self._slow_std = arm, np.array(error.white), np.array(error.slow)
        self._rng = np.random.default_rng([experiment.seed, 1])
        self._decay = np.exp(-1.0 / (experiment.rate * error.time))
        self._start = np.array(error.posture)
        position, rotation = arm.tcp_pose(self._start)
        self._posture = homogeneous(rotation, position)
        self._guess = data.guess

    def __call__(
        self, run: int, k: int, pose: np.ndarray, wrench: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sense one sample; those of a run come in order.

        Args:
            run: number of the run.
            k: number of the sample.
            pose: pose (4, 4) of the tool.
            wrench: wrench (6,), tool axes.

        Returns:
            wrench (6,) that the torque tells, its covariance (6, 6), and the map (6, n) of the slow error.
        """
        n = self._arm.n
        if k == 0:
            self._q = self._start
            self._slow = self._slow_std * self._rng.standard_normal(n)
            self._to_base = self._posture @ np.linalg.inv(self._guess.pose(run))
        else:
            kick = np.sqrt(1.0 - self._decay**2) * self._slow_std
            self._slow = self._decay * self._slow + kick * self._rng.standard_normal(n)
        goal = self._to_base @ pose
        self._q = self._arm.solve_pose(goal[:3, 3], goal[:3, :3], self._q, 1e-6, 20)
        jacobian = tool_jacobian(self._arm, self._q)
        torque = jacobian.T @ wrench + self._slow + self._white * self._rng.standard_normal(n)
        to_wrench, covariance = torque_to_wrench(jacobian, self._white**2)
        return to_wrench @ torque, covariance, to_wrench
