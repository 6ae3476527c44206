"""Zero, direction and scale of the known force of a window: tested where the motion shows them, else named.

A force sensor may have an offset, or axes that are turned by an angle. To first order the impulse h f_ext + B a acts
in a step instead of h f_ext, with a = -(offset along x, along y, of the moment, angle). A score test (Rao 1948)
estimates each with states, parameters and impulses free beside it. A contact impulse takes up what pushes along it, so
a window checks them to different degrees. The scale of the force is that of mass, inertia and impulses together;
nothing checks it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.errors_in_variables import ForceErrors
from contact_estimation.identify.planar.stepping import GRAVITY
from contact_estimation.identify.verdict import Finding

_ALARM = 0.01  # probability of a false alarm of each test
_LEAST = 5e-3, 1e-2  # errors let pass: offset [weights, or weights times the outline's radius], angle [rad]
_LARGEST = 1.0  # offset [the same] and angle [rad] that nothing need exclude
_NAMES = "offset along x", "offset along y", "offset of the moment", "rotation"
_UNITS = "N", "N", "Nm", "degrees"


class ForceVerdict(NamedTuple):
    """What a window says about the errors of its force."""

    findings: list[Finding]
    unchecked: list[str]
    shifts: list[Array]  # of theta (r,), where the gravest error found is freed


def force_error_columns(force: Array, h: float) -> Array:
    """Return impulses B (N, 3, 4) of unit errors of a force (N, 3): three offsets and a rotation by 1 rad."""
    columns = np.zeros((len(force), 3, 4))
    columns[:, :, :3] = h * np.eye(3)
    columns[:, 0, 3], columns[:, 1, 3] = -h * force[:, 1], h * force[:, 0]
    return columns


def judge_force(errors: ForceErrors, theta: Array, std: Array, radius: float) -> ForceVerdict:
    """Test the force's offsets and rotation, and name what stays unchecked.

    Args:
        errors: of the fit, with the columns of :func:`force_error_columns`.
        theta: mass [kg] and inertia [kg m^2].
        std: their standard deviations (2,).
        radius: of the outline [m].
    """
    weight = GRAVITY * theta[0]
    unit = np.array([weight, weight, weight * radius, 1.0])
    least = unit * np.array([_LEAST[0]] * 3 + [_LEAST[1]])
    own = np.maximum(np.diag(errors.information), 1.0 / (_LARGEST * unit) ** 2)
    found, spread = -errors.score / own, 1.0 / np.sqrt(own)
    limit = np.maximum(norm.isf(0.5 * _ALARM) * spread, least)
    gravest = int(np.argmax(np.abs(errors.score) / np.sqrt(own) * (np.abs(found) > limit)))
    shown = np.array([1.0, 1.0, 1.0, np.degrees(1.0)])
    findings = [
        Finding(
            f"force[{name}]",
            float(abs(found[k])),
            float(limit[k]),
            f"'force' seems to have {-shown[k] * found[k]:+.3g} {_UNITS[k]} of {name}: tare the sensor, or turn the "
            "force into the axes of q and v"
            if k == gravest
            else "",
        )
        for k, name in enumerate(_NAMES)
    ]
    shifts = [errors.moves[:, gravest] * found[gravest]] if findings[gravest].flagged else []
    return ForceVerdict(findings, _unchecked(errors, theta, std, unit, least * shown, shown), shifts)


def _unchecked(errors: ForceErrors, theta: Array, std: Array, unit: Array, least: Array, shown: Array) -> list[str]:
    """Return sentences on the scale, and on offsets and rotation where they would move theta by more than its noise."""
    said = [
        "no measurement checks the scale of 'force': mass and inertia are wrong by the same share, m/I is not affected"
    ]
    covariance = np.linalg.inv(errors.information + np.diag(1.0 / (_LARGEST * unit) ** 2))
    moved = 1.96 * np.sqrt(np.maximum(np.diag(errors.moves @ covariance @ errors.moves.T), 0.0))
    spread = 1.96 * shown * np.sqrt(np.diag(covariance))
    rests = [f"{n} {s:.2g} {u}" for n, s, u, enough in zip(_NAMES, spread, _UNITS, least) if s > enough]
    if rests and np.any(moved > 1.96 * std):
        mass, inertia = 100.0 * moved / theta
        said.append(
            f"the motion checks errors of 'force' only down to: {', '.join(rests)} (95 %); together they may move "
            f"mass by {mass:.2g} % and inertia by {inertia:.2g} %"
        )
    return said
