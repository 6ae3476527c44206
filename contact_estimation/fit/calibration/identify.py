"""Identification of the torque model from recordings of free motion.

A joint that carries no gravity shows its torque scale by its inertia alone, which the description may have wrong. Such
a scale is kept at 1. Kept in one regression, it would turn the payload, which every joint moves: a scale of 0.85 on all
joints of a UR16e looks like 0.5 kg. So the payload comes from a first regression, in which every joint's scale is free.
The second has that payload and the scales kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.fit.calibration import checks
from contact_estimation.fit.calibration.estimate import Estimate, Prior, estimate
from contact_estimation.fit.calibration.model import LENGTHS, Design, Layout, design, evaluate, link_parameters
from contact_estimation.fit.calibration.motion import DEADBAND, prepare
from contact_estimation.fit.calibration.settings import CalibrationSettings
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm

_DEFAULT = CalibrationSettings()
#: Error of a breakaway length that is read between two of the grid's, relative.
_GRID_ERROR = 0.02


@dataclass(frozen=True)
class Identified:
    """Parameters and their uncertainty.

    Attributes:
        layout: where each kind of parameter is in ``theta``.
        theta: (P,) parameters.
        covariance: (P, P) of these.
        std_residual: (n,) [Nm] of the torque that is left.
        correlation_time: (n,) [s] of it.
        condition: (n,) condition numbers of the joints' friction regressors.
        weighed: (n,) whether gravity shows the joint's torque scale.
        designs: regressors of each recording.
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
    prior = prior_of(arm, layout, settings)
    start = prior.mean.copy()
    start[layout["log_presliding"]] = _best_lengths(designs)
    fit, covariance = _without_kept_scales(layout, designs, prior, start, weighed, settings)
    lengths = np.arange(layout.size)[layout["log_presliding"]]
    # Behind a deadband d the motion reverses 2 d late: a length comes out shorter by 3 to 4 d.
    lost = 4 * DEADBAND * np.exp(-fit.theta[lengths])
    covariance[lengths, lengths] += lost**2 + _GRID_ERROR**2
    rate = designs[0].motion.rate
    found = Identified(layout, fit.theta, covariance, fit.scale, fit.time / rate, condition, weighed, designs)
    try:
        checks.result(arm, found, fit.residual, settings)
    except IdentificationError as error:
        from contact_estimation.fit.calibration.doubts import gravity_and_load  # it needs an Identified

        other = gravity_and_load(arm, found, settings)
        raise IdentificationError("; or ".join([str(error), *other])) if other else error from None
    return found


def _without_kept_scales(
    layout: Layout,
    designs: list[Design],
    prior: Prior,
    start: np.ndarray,
    weighed: np.ndarray,
    settings: CalibrationSettings,
) -> tuple[Estimate, np.ndarray]:
    """Estimate with the scales of joints without gravity at 1, which tell nothing of the payload.

    Returns:
        The estimate, and the covariance (P, P) with that of the payload.
    """
    load, kept = layout["payload"], np.arange(layout["gain"].start, layout["gain"].stop)[~weighed]
    both = (prior.std[load] > 0).any() and (prior.std[kept] > 0).any()
    first = estimate(layout, designs, prior, start, settings.outlier) if both else None
    mean, std = prior.mean.copy(), prior.std.copy()
    std[kept] = 0.0
    if first is not None:
        mean[load], std[load] = first.theta[load], 0.0
        start = np.where(std > 0, first.theta, mean)
    second = estimate(layout, designs, Prior(mean, std), start, settings.outlier)
    if first is None:
        return second, second.covariance
    # d theta / d payload = -H^-1 H_payload of what is free; the payload's own derivative is 1
    free = std > 0
    slope = np.zeros((layout.size, load.stop - load.start))
    slope[load] = np.eye(len(slope[load]))
    slope[free] = -np.linalg.solve(second.hessian[np.ix_(free, free)], second.hessian[free, load])
    return second, second.covariance + slope @ first.covariance[load, load] @ slope.T


def _weighed(arm: Arm, designs: list[Design]) -> np.ndarray:
    """Whether gravity makes up a good part (30 %) of the spread of the joints' torque (n,)."""
    gravity = np.concatenate([[arm.gravity(q) for q in d.motion.q] for d in designs])
    return np.asarray(gravity.std(axis=0) > 0.3 * np.concatenate([d.motion.tau for d in designs]).std(axis=0))


def prior_of(arm: Arm, layout: Layout, settings: CalibrationSettings) -> Prior:
    """Return what is known before the recordings."""
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
    return Prior(mean, std)


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
