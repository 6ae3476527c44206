"""What makes a calibration doubtful: a late torque, links of another robot, a base that leans, a load that changes.

Each is looked for in what the calibration leaves, by a regression on columns that the model does not have. The model's
own parameters are free beside them, also scale and rotor inertia that were not asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from contact_estimation.fit.calibration.added import Columns, Rows, covariance_of, regress, rows_of
from contact_estimation.fit.calibration.identify import Identified, prior_of
from contact_estimation.fit.calibration.mount_and_load import Taken, mount_and_load
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


class _Free(NamedTuple):
    """Regression of the residuals on all parameters of the model, a delay, and what was taken for granted and is wrong.

    Attributes:
        prior: (P,) standard deviations of the parameters.
        own: (p,) indices of those that are free.
        columns: of those, and of the delay, which is the last of them.
        wrong: sentences on gravity and load, and the columns that make them right.
    """

    prior: np.ndarray
    own: np.ndarray
    columns: Columns
    wrong: Taken

    @property
    def all(self) -> Columns:
        """All columns of the regression."""
        return self.columns.beside(self.wrong.columns)


def doubts(arm: Arm, found: Identified, settings: CalibrationSettings) -> list[str]:
    """Look for what contradicts a calibration that was not refused.

    Args:
        arm: the robot.
        found: the calibration.
        settings: with which it was found.

    Returns:
        A sentence for each thing that is wrong; empty if nothing is.
    """
    given = rows = rows_of(found, settings)
    free = _all_free(arm, found, settings, given)
    if free.wrong.doubts:
        rows = free.wrong.rows
    links = "links" not in settings.identify
    share = _share_of_links(arm, found, settings, rows, free) if links else np.zeros(arm.n)
    if free.wrong.doubts and share.max() > _MAX_LINKS:  # wrong links may look like another gravity or load
        beside = free.columns.beside(_links(arm, found, settings, given))
        free = free._replace(wrong=mount_and_load(arm, found, settings, given, beside))
        rows = free.wrong.rows if free.wrong.doubts else given
        share = _share_of_links(arm, found, settings, rows, free)
    regression = regress(rows, free.all)
    gains = np.flatnonzero(np.isin(free.own, np.arange(found.layout.size)[found.layout["gain"]]))
    covariance = covariance_of(rows, free.all, regression, np.append(gains, len(free.own)))
    delay = float(regression.values[len(free.own)])
    found_doubts = [*free.wrong.doubts, _delay_doubt(delay, float(np.sqrt(covariance[-1, -1])))]
    if free.wrong.doubts:  # they explain the payload, and torque scales by what is left without them
        if len(gains) == arm.n:
            scaled = found.value("gain") + regression.values[gains]
            found_doubts.append(_scale_doubt(arm, found.weighed, scaled, covariance[:-1, :-1]))
    else:
        gain = found.layout["gain"]
        found_doubts.append(_scale_doubt(arm, found.weighed, found.theta[gain], found.covariance[gain, gain]))
        found_doubts.append(
            _load_doubt(found, regression.values[: len(free.own)][free.own == found.layout["payload"].start])
        )
    if links:
        found_doubts.append(_links_doubt(arm, share))
    return [doubt for doubt in found_doubts if doubt]


def gravity_and_load(arm: Arm, found: Identified, settings: CalibrationSettings) -> list[str]:
    """Say whether another gravity or a load that changes may be why a calibration is refused, with all links free, too.

    Args:
        arm: the robot.
        found: the calibration.
        settings: with which it was found.
    """
    rows = rows_of(found, settings)
    columns = _own_and_delay(arm, found, settings, rows)[2].beside(_links(arm, found, settings, rows))
    return mount_and_load(arm, found, settings, rows, columns).doubts


def explained_by_links(arm: Arm, found: Identified, settings: CalibrationSettings) -> np.ndarray:
    """Return per joint (n,) the share of the squared residuals that corrected inertial parameters of links explain.

    Args:
        arm: the robot.
        found: the calibration, without links.
        settings: with which it was found.
    """
    rows = rows_of(found, settings)
    return _share_of_links(arm, found, settings, rows, _all_free(arm, found, settings, rows))


def _all_free(arm: Arm, found: Identified, settings: CalibrationSettings, rows: Rows) -> _Free:
    """Free the parameters, a delay of the torque, and what is wrong of gravity and load."""
    prior, own, columns = _own_and_delay(arm, found, settings, rows)
    return _Free(prior, own, columns, mount_and_load(arm, found, settings, rows, columns))


def _own_and_delay(
    arm: Arm, found: Identified, settings: CalibrationSettings, rows: Rows
) -> tuple[np.ndarray, np.ndarray, Columns]:
    """Return prior, places and columns of the parameters, also of those that were not asked for, and of a delay."""
    identified = settings.identify
    free = identified if "links" in identified else [*identified, "scale", "armature", "asymmetry"]
    prior = prior_of(arm, found.layout, replace(settings, identify=free)).std
    own = np.flatnonzero(prior > 0)
    values = np.concatenate([rows.jacobian[:, :, own], rows.late[:, :, None]], axis=2)
    return prior, own, Columns(values, np.append(prior[own] ** -2.0, 0.0))


def _links(arm: Arm, found: Identified, settings: CalibrationSettings, rows: Rows) -> Columns:
    """Return the columns of the links' inertial parameters."""
    layout = found.layout
    std = prior_of(arm, layout, CalibrationSettings(identify=["links"], link_std=settings.link_std)).std
    return Columns(rows.links, std[layout["links"]] ** -2.0)


def _share_of_links(arm: Arm, found: Identified, settings: CalibrationSettings, rows: Rows, free: _Free) -> np.ndarray:
    """Return the shares of :func:`explained_by_links`."""
    # links and scales cannot be told apart, and the payload is a part of the last link
    layout, columns = found.layout, free.all
    instead = np.isin(free.own, np.arange(layout.size)[np.r_[layout["gain"], layout["payload"]]], invert=True)
    kept = np.append(instead, np.ones(columns.values.shape[2] - len(instead), bool))
    others = Columns(columns.values[:, :, kept], columns.precision[kept])
    after = regress(rows, others.beside(_links(arm, found, settings, rows))).left
    power = [np.sum(rows.weight * left**2, axis=0) for left in (regress(rows, columns).left, after)]
    return np.asarray(1 - power[1] / np.maximum(power[0], 1e-300))


def _delay_doubt(delay: float, std: float) -> str:
    """Say by how much the torque is late [s]."""
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


def _scale_doubt(arm: Arm, weighed: np.ndarray, gain: np.ndarray, covariance: np.ndarray) -> str:
    """Say which torque scales are off: one that all joints share, which those without gravity may share, or its own.

    Args:
        arm: the robot.
        weighed: (n,) whether gravity shows the scale.
        gain: (n,) inverse of the scale.
        covariance: (n, n) of these, zero where they are kept.
    """
    shown = np.flatnonzero(weighed & (np.diag(covariance) > 0))
    kept = np.setdiff1d(np.arange(arm.n), shown)
    if not len(shown):
        return ""
    # logarithms: a gain and the scale, its inverse, then deviate alike
    deviation, slope = -np.log(gain[shown]), 1 / gain[shown]
    covariance = covariance[np.ix_(shown, shown)]
    own = slope * np.sqrt(np.diag(covariance))
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
