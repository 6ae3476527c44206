"""What makes a calibration doubtful: a late torque, links of another robot, a torque scale that all joints share.

Each is looked for in what the calibration leaves, by a regression on columns that the model does not have. The model's
own parameters are free beside them, also scale and rotor inertia that were not asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from contact_estimation.fit.calibration.estimate import score_covariance
from contact_estimation.fit.calibration.identify import Identified, prior_of
from contact_estimation.fit.calibration.model import evaluate
from contact_estimation.fit.calibration.regression import huber_weights
from contact_estimation.fit.calibration.settings import CalibrationSettings
from contact_estimation.robot import Arm

#: A delay counts beyond this [s] and beyond this many of its standard deviations.
_LEAST_DELAY, _SIGMAS = 2e-3, 4.0
#: Share of a joint's squared residuals that corrected links may explain: at most 0.1 of a right description, 0.6 where
#: moments of inertia are off by up to a factor of two (0.9 in fast motion), 0.1 to 0.9 of another robot
#: (``python benchmark/calibration_truth.py --links 5``).
_MAX_LINKS = 0.5
#: A torque scale is off from here on if all joints share it, or if one has it alone, and beyond this many standard
#: deviations.
_COMMON_SCALE, _OWN_SCALE, _SCALE_SIGMAS = 0.05, 0.1, 3.0
#: [kg] A payload that changes by more, and by more than this many standard deviations, depends on what is kept.
_LEAST_LOAD, _LOAD_SIGMAS = 0.1, 3.0


class _Rows(NamedTuple):
    """All samples of all recordings, N together.

    Attributes:
        jacobian: (N, n, P) of the predicted torque.
        residual: (N, n) [measured Nm].
        weight: (N, n) of its square.
        late: (N, n) change of the rigid torque [Nm/s], which a delay [s] leaves.
        links: (N, n, 10 n) change with the links' inertial parameters.
        counts: samples of each recording.
    """

    jacobian: np.ndarray
    residual: np.ndarray
    weight: np.ndarray
    late: np.ndarray
    links: np.ndarray
    counts: list[int]


class _Regression(NamedTuple):
    """Coefficients (p,), what they leave (N, n), and the inverse (p, p) of the normal equations."""

    values: np.ndarray
    left: np.ndarray
    inverse: np.ndarray


class _Free(NamedTuple):
    """Regression of the residuals on all parameters of the model and a delay.

    Attributes:
        prior: (P,) standard deviations of the parameters.
        own: (p,) indices of those that are free.
        columns: (N, n, p + 1) of those, and of the delay.
        precision: (p + 1,) of their priors.
        regression: what was found.
    """

    prior: np.ndarray
    own: np.ndarray
    columns: np.ndarray
    precision: np.ndarray
    regression: _Regression


def doubts(arm: Arm, found: Identified, settings: CalibrationSettings) -> list[str]:
    """Look for what contradicts a calibration that was not refused.

    Args:
        arm: the robot.
        found: the calibration.
        settings: with which it was found.

    Returns:
        A sentence for each thing that is wrong; empty if nothing is.
    """
    rows = _rows(found, settings)
    free = _all_free(arm, found, settings, rows)
    found_doubts = [
        _scale_doubt(arm, found),
        _load_doubt(found, free.regression.values[:-1][free.own == found.layout["payload"].start]),
        _delay_doubt(found, rows, free),
    ]
    if "links" not in settings.identify:
        found_doubts.append(_links_doubt(arm, _share_of_links(arm, found, settings, rows, free)))
    return [doubt for doubt in found_doubts if doubt]


def explained_by_links(arm: Arm, found: Identified, settings: CalibrationSettings) -> np.ndarray:
    """Return per joint (n,) the share of the squared residuals that corrected inertial parameters of links explain.

    Args:
        arm: the robot.
        found: the calibration, without links.
        settings: with which it was found.
    """
    rows = _rows(found, settings)
    return _share_of_links(arm, found, settings, rows, _all_free(arm, found, settings, rows))


def _all_free(arm: Arm, found: Identified, settings: CalibrationSettings, rows: _Rows) -> _Free:
    """Regress on the parameters, also those that were not asked for, and on a delay of the torque."""
    identified = settings.identify
    free = identified if "links" in identified else [*identified, "scale", "armature", "asymmetry"]
    prior = prior_of(arm, found.layout, replace(settings, identify=free)).std
    own = np.flatnonzero(prior > 0)
    columns = np.concatenate([rows.jacobian[:, :, own], rows.late[:, :, None]], axis=2)
    precision = np.append(prior[own] ** -2.0, 0.0)
    return _Free(prior, own, columns, precision, _regress(columns, rows.weight, rows.residual, precision))


def _share_of_links(arm: Arm, found: Identified, settings: CalibrationSettings, rows: _Rows, free: _Free) -> np.ndarray:
    """Return the shares of :func:`explained_by_links`."""
    # links and scales cannot be told apart, and the payload is a part of the last link
    layout = found.layout
    instead = np.setdiff1d(free.own, np.arange(layout.size)[np.r_[layout["gain"], layout["payload"]]])
    links = prior_of(arm, layout, CalibrationSettings(identify=["links"], link_std=settings.link_std)).std
    columns = np.concatenate([rows.jacobian[:, :, instead], rows.late[:, :, None], rows.links], axis=2)
    precision = np.concatenate([free.prior[instead] ** -2.0, [0.0], links[layout["links"]] ** -2.0])
    after = _regress(columns, rows.weight, rows.residual, precision).left
    power = [np.sum(rows.weight * left**2, axis=0) for left in (free.regression.left, after)]
    return np.asarray(1 - power[1] / np.maximum(power[0], 1e-300))


def _rows(found: Identified, settings: CalibrationSettings) -> _Rows:
    parts = []
    for d in found.designs:
        m = d.motion
        torque, jacobian = evaluate(found.layout, found.theta, d)
        residual = m.tau - torque
        weight = huber_weights(residual, found.std_residual, settings.outlier)
        # Without friction: how fast it turns over is not known well enough to tell a delay.
        gain, load = found.value("gain"), found.value("payload")
        rigid = gain * (d.rigid + d.payload @ load) + found.value("armature") * m.ddq
        late = -np.gradient(rigid, 1 / m.rate, axis=0)
        parts.append((jacobian, residual, weight / _variance(found), late, gain[:, None] * d.links))
    counts = [len(part[0]) for part in parts]
    jacobian, residual, weight, late, links = (np.concatenate(values) for values in zip(*parts))
    return _Rows(jacobian, residual, weight, late, links, counts)


def _variance(found: Identified) -> np.ndarray:
    """Variance (n,) of a sample that is independent of the others: times the autocorrelation time in samples."""
    return np.asarray(found.std_residual**2 * found.correlation_time * found.designs[0].motion.rate)


def _regress(columns: np.ndarray, weight: np.ndarray, residual: np.ndarray, precision: np.ndarray) -> _Regression:
    """Weighted least squares of residuals (N, n) on columns (N, n, p), with the precision (p,) of priors about zero."""
    flat = columns.reshape(-1, columns.shape[2])
    weighted = flat * weight.reshape(-1, 1)
    inverse = np.linalg.inv(weighted.T @ flat + np.diag(precision))
    values = inverse @ (weighted.T @ residual.ravel())
    return _Regression(values, residual - columns @ values, inverse)


def _delay_doubt(found: Identified, rows: _Rows, free: _Free) -> str:
    """Say by how much the torque is late, the last coefficient of the regression."""
    regression = free.regression
    scores = np.einsum("tjp,tj->tp", free.columns, rows.weight * regression.left)
    pieces = np.split(scores, np.cumsum(rows.counts)[:-1])
    time = found.correlation_time * found.designs[0].motion.rate
    middle = score_covariance(pieces, time) + np.diag(free.precision)
    delay = float(regression.values[-1])
    std = float(np.sqrt((regression.inverse @ middle @ regression.inverse)[-1, -1]))
    if abs(delay) <= max(_LEAST_DELAY, _SIGMAS * std):
        return ""
    return (
        f"the torque is {1e3 * abs(delay):.1f} +- {1e3 * std:.1f} ms {'late' if delay > 0 else 'early'} beside the "
        "positions: a filter of the sensor, or two clocks; scales, rotor inertia and payload are off by it. Shift the "
        "stamps of one of them"
    )


def _load_doubt(found: Identified, change: np.ndarray) -> str:
    """Say that the payload is another one where all else is free; ``change`` (1,) [kg], or (0,) without a payload."""
    mass, std = found.value("payload")[0], found.std("payload")[0]
    if not len(change) or abs(change[0]) <= max(_LEAST_LOAD, _LOAD_SIGMAS * std):
        return ""
    return (
        f"the payload would be {mass + change[0]:.2f} kg if torque scale, rotor inertia and a delay of the torque were "
        "free, too: identify them all (--identify scale armature payload asymmetry), or distrust it"
    )


def _links_doubt(arm: Arm, share: np.ndarray) -> str:
    """Say whose torque the description's links do not explain, and others nearby would, by their shares (n,)."""
    j = int(np.argmax(share))
    if share[j] <= _MAX_LINKS:
        return ""
    return (
        f"the links of robot '{arm.name}' do not fit: others explain {100 * share[j]:.0f} % of what is left of the "
        f"torque of {arm.joint_names[j]}. Another robot (--robot), a tool that is not there (--tool), or masses of the "
        "description that are wrong (--identify links)"
    )


def _scale_doubt(arm: Arm, found: Identified) -> str:
    """Say which torque scales are off: one that all joints share, which those without gravity may share, or its own."""
    shown = np.flatnonzero(found.weighed & (found.std("gain") > 0))
    kept = np.setdiff1d(np.arange(arm.n), shown)
    if not len(shown):
        return ""
    # logarithms: a gain and the scale, its inverse, then deviate alike
    index = found.layout["gain"].start + shown
    deviation, slope = -np.log(found.theta[index]), 1 / found.theta[index]
    own = slope * found.std("gain")[shown]
    covariance = found.covariance[np.ix_(index, index)]
    scatter = float(np.var(deviation, ddof=1)) / len(shown) if len(shown) > 1 else 0.0
    mean, std = float(np.mean(deviation)), float(np.sqrt(slope @ covariance @ slope / len(shown) ** 2 + scatter))
    if len(kept) and abs(mean) > max(_COMMON_SCALE, _SCALE_SIGMAS * std):
        return (
            f"gravity asks for {_scale(mean, std)} times the torque of {_names(arm, shown)}; of {_names(arm, kept)} it "
            "does not show the scale, which stays 1. If one scale holds for all, correct torque_scale in the sensor set"
        )
    j = int(np.argmax(np.abs(deviation) * (np.abs(deviation) > _SCALE_SIGMAS * own)))
    if abs(deviation[j]) <= max(_OWN_SCALE, _SCALE_SIGMAS * own[j]):
        return ""
    return (
        f"gravity asks for {_scale(deviation[j], own[j])} times the torque of {_names(arm, shown[[j]])}: another robot "
        "(--robot), or a wrong torque constant (torque_scale in the sensor set)"
    )


def _scale(deviation: float, std: float) -> str:
    """Return a scale by its logarithm, with its standard deviation."""
    return f"{np.exp(deviation):.3g} +- {np.exp(deviation) * std:.1g}"


def _names(arm: Arm, joints: np.ndarray) -> str:
    return ", ".join(arm.joint_names[j] for j in joints)
