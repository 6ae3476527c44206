"""What a calibration takes for granted of gravity and load: that the base is level, and that the load never changes.

Both are tested as added variables, with the model's own parameters free beside them. A base that leans turns gravity
about two axes of the base. A load that changes gives one part of the recordings another mass and first moment than the
rest; a bias of that part's own keeps a drift of the sensors from looking like a load.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contact_estimation.fit.calibration.added import Columns, Rows, covariance_of, regress, reweighted
from contact_estimation.fit.calibration.identify import Identified, prior_of
from contact_estimation.fit.calibration.model import gravity_turns
from contact_estimation.fit.calibration.settings import CalibrationSettings
from contact_estimation.robot import Arm

#: A base leans beyond this [rad] and beyond this many standard deviations. Of 20 s of a real UR10e that stands level,
#: whose residuals last for seconds, they reach 4.6; a lean of one degree has seven or more.
_LEAST_LEAN, _LEAN_SIGMAS = np.radians(0.5), 5.0
#: Columns of a load: its mass, then its first moment.
_OWN = 4
#: [kg] A load differs beyond this and beyond this many standard deviations.
_LEAST_DIFFERENCE, _DIFFERENCE_SIGMAS = 0.1, 4.0


class Taken(NamedTuple):
    """What was taken for granted and is wrong.

    Attributes:
        doubts: a sentence for each.
        columns: those that make it right, for the regressions that look for other things; none where nothing is wrong.
        rows: all samples, weighted by what is left where gravity and loads are free.
    """

    doubts: list[str]
    columns: Columns
    rows: Rows


class _Half(NamedTuple):
    """Half of a recording: index of the recording, whether it is the second, its samples."""

    recording: int
    second: bool
    rows: slice


def mount_and_load(arm: Arm, found: Identified, settings: CalibrationSettings, rows: Rows, base: Columns) -> Taken:
    """Test gravity's direction and the load of every half of the recordings.

    Args:
        arm: the robot.
        found: the calibration.
        settings: with which it was found.
        rows: all samples.
        base: columns that are free beside them.
    """
    turns, axes = _turns(arm, found)
    loads = _loads(arm, found, settings, rows)
    both = base.beside(turns, loads)
    rows = reweighted(rows, regress(rows, both).left, settings.outlier)
    doubts, wrong = [], Columns(np.zeros((*rows.residual.shape, 0)), np.zeros(0))
    first = base.values.shape[2] + turns.values.shape[2]
    if told := _difference(found, rows, both, np.arange(first, both.values.shape[2], _OWN + arm.n)):
        doubts.append(told)
        wrong = loads
    if len(axes) and (told := _lean(arm, rows, base.beside(wrong), turns, axes)):
        doubts.append(told)
        wrong = wrong.beside(turns)
    return Taken(doubts, wrong, rows)


def _turns(arm: Arm, found: Identified) -> tuple[Columns, np.ndarray]:
    """Change of the measured torque with the turn of gravity, and its axes (2, 3) in base axes."""
    load, links = found.value("payload"), found.value("links")
    both = [gravity_turns(arm, d, load, links) for d in found.designs]
    values = np.concatenate([columns for columns, _ in both]) * found.value("gain")[:, None]
    return Columns(values, np.zeros(values.shape[2])), both[0][1]


def _lean(arm: Arm, rows: Rows, base: Columns, turns: Columns, axes: np.ndarray) -> str:
    """Say by how much the base leans."""
    both = base.beside(turns)
    regression, places = regress(rows, both), slice(base.values.shape[2], None)
    turn = regression.values[places]
    angle = float(np.linalg.norm(turn))
    std = float(np.sqrt(turn @ covariance_of(rows, both, regression, places) @ turn)) / max(angle, 1e-300)
    if angle <= max(_LEAST_LEAN, _LEAN_SIGMAS * std):
        return ""
    gravity = np.asarray(arm.settings.gravity, float)
    turned = gravity + np.cross(turn @ axes, gravity)
    turned *= np.linalg.norm(gravity) / np.linalg.norm(turned)
    return (
        f"the base leans by {np.degrees(angle):.1f} +- {np.degrees(std):.1g} degrees, and friction, rotor inertia and "
        f"payload are off by it: level it, or set key 'gravity' of robot.yaml to about "
        f"[{', '.join(f'{g:.2f}' for g in turned)}] m/s^2, and calibrate again. If it is level, a cable or a hand pulls"
    )


def _halves(found: Identified) -> list[_Half]:
    """Return the halves of all recordings, in order."""
    out, start = [], 0
    for k, d in enumerate(found.designs):
        middle, end = start + len(d.rigid) // 2, start + len(d.rigid)
        out += [_Half(k, False, slice(start, middle)), _Half(k, True, slice(middle, end))]
        start = end
    return out


def _loads(arm: Arm, found: Identified, settings: CalibrationSettings, rows: Rows) -> Columns:
    """Return payload and bias of every half but the first, which has those of the model."""
    layout = found.layout
    std = prior_of(arm, layout, CalibrationSettings(identify=["payload"], payload_std=settings.payload_std)).std
    own = np.arange(layout.size)[np.r_[layout["payload"], layout["bias"]]]
    halves = _halves(found)[1:]
    values = np.zeros((*rows.residual.shape, len(halves), len(own)))
    for k, half in enumerate(halves):
        values[half.rows, :, k] = rows.jacobian[half.rows][:, :, own]
    return Columns(values.reshape(*rows.residual.shape, -1), np.tile(std[own] ** -2.0, len(halves)))


def _difference(found: Identified, rows: Rows, columns: Columns, places: np.ndarray) -> str:
    """Say which part of the recordings carries another load than the rest.

    Args:
        found: the calibration.
        rows: all samples.
        columns: of the regression.
        places: where the masses of all halves but the first are among them.
    """
    regression = regress(rows, columns)
    masses = np.append(0.0, regression.values[places])
    covariance = np.zeros((len(masses), len(masses)))
    covariance[1:, 1:] = covariance_of(rows, columns, regression, places)
    told, largest = "", _LEAST_DIFFERENCE
    for part, rest, inside in _parts(found):
        contrast = np.where(inside, 1.0 / inside.sum(), -1.0 / (~inside).sum())
        mass, std = float(contrast @ masses), float(np.sqrt(contrast @ covariance @ contrast))
        if abs(mass) > max(largest, _DIFFERENCE_SIGMAS * std):  # the part that has it most has it alone
            largest = abs(mass)
            told = (
                f"the load differs between the recordings or within one: {part} {abs(mass):.2f} +- {std:.1g} kg "
                f"{'more' if mass > 0 else 'less'} behind the flange than {rest}. Record with one load that does not "
                "change, or calibrate the recordings with one load alone"
            )
    return told


def _parts(found: Identified) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield parts of the recordings: name with a verb, name of the rest, and which halves are in it."""
    halves, names = _halves(found), [Path(d.motion.source).name for d in found.designs]
    second, recording = np.array([h.second for h in halves]), np.array([h.recording for h in halves])
    if len(names) == 1:
        yield f"the second half of {names[0]} has", "the first", second
        return
    yield "the second halves have", "the first", second
    if len(names) == 2:
        yield f"{names[1]} has", names[0], recording == 1
    else:
        yield from ((f"{name} has", "the others", recording == k) for k, name in enumerate(names))
    for half, name in zip(halves, np.repeat(names, 2)):
        inside = (recording == half.recording) & (second == half.second)
        yield f"the {'second' if half.second else 'first'} half of {name} has", "the rest", inside
