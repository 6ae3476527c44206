"""Identification: robust Gauss-Newton on the torque model, colour-aware weights and intervals.

Every residual is weighted by 1 / (variance x autocorrelation time), so that the weak priors (scale near 1, armature
near the description, ...) count as what they are; then iteratively reweighted for outliers (Huber).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.fit.calibration import checks
from contact_estimation.fit.calibration.model import LENGTHS, Design, Layout, design, evaluate, link_parameters
from contact_estimation.fit.calibration.motion import prepare
from contact_estimation.fit.calibration.regression import (
    huber_weights,
    integrated_time,
    long_run_covariance,
    robust_scale,
)
from contact_estimation.fit.calibration.settings import CalibrationSettings
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm

_ITERATIONS = 12
_MAX_TIME = 5.0  # [s] longest autocorrelation time looked for


_DEFAULT = CalibrationSettings()


@dataclass(frozen=True)
class Identified:
    """Parameters and their uncertainty.

    ``theta`` (P,), ``covariance`` (P, P) in the order of ``layout``; ``std_residual`` (n,) [Nm]; ``correlation_time``
    (n,) [s];
    ``condition`` (n,) condition numbers of the joints' friction regressors; ``weighed`` (n,) whether gravity shows the
    joint's torque scale; ``designs``.
    """

    layout: Layout
    theta: np.ndarray
    covariance: np.ndarray
    std_residual: np.ndarray
    correlation_time: np.ndarray
    condition: np.ndarray
    weighed: np.ndarray
    designs: list[Design]

    def std(self, name: str) -> np.ndarray:
        """Return standard deviations (k,) of a kind of parameter, in its unit.

        Args:
            name: of the kind.
        """
        return np.sqrt(np.diag(self.covariance)[self.layout[name]])

    def value(self, name: str) -> np.ndarray:
        """Return the values (k,) of a kind of parameter, in its unit.

        Args:
            name: of the kind.
        """
        return self.theta[self.layout[name]]

    def predict(self, d: Design) -> np.ndarray:
        """Return the torque (T, n) [measured Nm] of another recording.

        Args:
            d: its regressors.
        """
        return evaluate(self.layout, self.theta, d)[0]


def identify(arm: Arm, recordings: Sequence[Recording], settings: CalibrationSettings = _DEFAULT) -> Identified:
    """Identify the parameters from recordings of free motion.

    Args:
        arm: the robot.
        recordings: joints in the arm's order, ``tau`` the total torque [Nm].
        settings: what is identified, and what is refused.

    Raises:
        IdentificationError: too little motion, contact or saturated torque in a recording, or a robot other than
            ``arm``; names the joint and the number.
        RecordingError: a recording cannot be used.
    """
    checks.options(settings)
    for recording in recordings:
        checks.inside_limits(arm, recording)
        checks.measured_force(recording, settings)
        checks.saturated(recording)
    designs = [design(arm, prepare(recording, settings.cutoff)) for recording in recordings]
    return identify_designs(arm, designs, settings)


def identify_designs(arm: Arm, designs: list[Design], settings: CalibrationSettings) -> Identified:
    """:func:`identify` on recordings that are already prepared.

    Args:
        arm: the robot.
        designs: regressors of the recordings.
        settings: of the calibration.

    Raises:
        IdentificationError: as of :func:`identify`.
    """
    if not designs:
        raise IdentificationError("no recording was given")
    layout = Layout(arm.n)
    condition = checks.excitation(arm, [d.motion for d in designs], settings)
    weighed = _weighed(arm, designs)
    mean, std = _prior(arm, layout, settings)
    # A joint that lifts nothing shows its scale only by its inertia, which the description may have wrong: it stays 1.
    std[layout["gain"]] *= weighed
    free = std > 0
    theta = mean.copy()
    theta[layout["log_presliding"]] = _best_lengths(designs)
    precision = np.zeros(layout.size)
    precision[free] = 1 / std[free] ** 2
    tau = [d.motion.tau for d in designs]
    rate = designs[0].motion.rate
    for _ in range(_ITERATIONS):
        parts = [evaluate(layout, theta, d) for d in designs]
        residual = [t - p for t, (p, _) in zip(tau, parts)]
        scale = robust_scale(np.concatenate(residual))
        time = np.max([[integrated_time(column, int(_MAX_TIME * rate)) for column in r.T] for r in residual], axis=0)
        weight = [huber_weights(r, scale, settings.outlier) / (scale**2 * time) for r in residual]
        hessian, gradient = np.diag(precision), precision * (mean - theta)
        for (_, jacobian), r, w in zip(parts, residual, weight):
            rows = (jacobian * w[:, :, None]).reshape(-1, layout.size)
            hessian += rows.T @ jacobian.reshape(-1, layout.size)
            gradient += rows.T @ r.ravel()
        step = np.zeros(layout.size)
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        lengths = layout["log_presliding"]
        step[lengths] = np.clip(step[lengths], -0.5, 0.5)
        theta = theta + step
        theta[lengths] = np.clip(theta[lengths], np.log(LENGTHS[0]), np.log(LENGTHS[-1]))
    scores = [np.einsum("tjp,tj->tp", jacobian, w * r) for (_, jacobian), r, w in zip(parts, residual, weight)]
    lags = int(np.ceil(5 * time.max()))
    middle = long_run_covariance([s[:, free] for s in scores], lags) + np.diag(precision[free])
    bread = np.linalg.inv(hessian[np.ix_(free, free)])
    covariance = np.zeros((layout.size, layout.size))
    covariance[np.ix_(free, free)] = bread @ middle @ bread
    found = Identified(layout, theta, covariance, scale, time / rate, condition, weighed, designs)
    checks.result(arm, found, residual, settings)
    return found


def _weighed(arm: Arm, designs: list[Design]) -> np.ndarray:
    """Whether gravity makes up a good part (30 %) of the spread of the joints' torque (n,)."""
    gravity = np.concatenate([[arm.gravity(q) for q in d.motion.q] for d in designs])
    return np.asarray(gravity.std(axis=0) > 0.3 * np.concatenate([d.motion.tau for d in designs]).std(axis=0))


def _prior(arm: Arm, layout: Layout, settings: CalibrationSettings) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (P,) before the recordings; a standard deviation of zero keeps a parameter."""
    wanted, effort = set(settings.identify), np.maximum(arm.effort_limit, 1.0)
    mean, std = np.zeros(layout.size), np.zeros(layout.size)
    mean[layout["log_presliding"]], std[layout["log_presliding"]] = np.log(1e-3), 2.0
    for name in ("viscous", "coulomb", "bias"):
        std[layout[name]] = effort
    mean[layout["gain"]] = 1.0
    mean[layout["armature"]] = arm.motor.armature
    if "asymmetry" in wanted:
        std[layout["asymmetry"]] = 0.1 * effort
    if "scale" in wanted:
        std[layout["gain"]] = settings.scale_std
    if "armature" in wanted:
        std[layout["armature"]] = arm.motor.armature + 0.05
    if "payload" in wanted:
        std[layout["payload"]] = settings.payload_std * np.array([1.0, 0.2, 0.2, 0.2])
    if "links" in wanted:
        pi = link_parameters(arm).reshape(-1, 10)
        mass, inertia = pi[:, :1], pi[:, [4, 6, 9]].sum(axis=1, keepdims=True)
        length = np.sqrt(inertia / mass)  # how far the mass is from the joint
        std[layout["links"]] = (
            settings.link_std * np.hstack([mass, np.repeat(mass * length, 3, 1), np.repeat(inertia, 6, 1)]).ravel()
        )
    return mean, std


def _best_lengths(designs: list[Design]) -> np.ndarray:
    """Logarithm of the grid's breakaway length (n,) with the smallest residual, joint by joint."""
    n = designs[0].rigid.shape[1]
    best = np.zeros(n)
    for j in range(n):
        fixed = np.concatenate(
            [
                np.column_stack([d.rigid[:, j], d.motion.ddq[:, j], d.motion.dq[:, j], np.ones(len(d.rigid))])
                for d in designs
            ]
        )
        tau = np.concatenate([d.motion.tau[:, j] for d in designs])
        sliding = np.concatenate([d.sliding[:, j] for d in designs])
        costs = []
        for column in sliding.T:
            rows = np.column_stack([fixed, column])
            costs.append(np.sum((tau - rows @ np.linalg.lstsq(rows, tau, rcond=None)[0]) ** 2))
        best[j] = np.log(LENGTHS[int(np.argmin(costs))])
    return best
