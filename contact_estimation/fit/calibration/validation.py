"""Prediction error of a calibration on other recordings, compared with the rigid model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.fit.calibration.identify import identify_designs
from contact_estimation.fit.calibration.model import Design
from contact_estimation.fit.calibration.motion import Motion
from contact_estimation.fit.calibration.settings import CalibrationSettings
from contact_estimation.robot import Arm


@dataclass(frozen=True)
class Prediction:
    """Torque errors of one recording, RMS per joint (n,) [Nm].

    Attributes:
        source: name of the recording.
        rigid: of the description's rigid model.
        calibrated: calibrated on the other recordings.
    """

    source: str
    rigid: np.ndarray
    calibrated: np.ndarray


def cross_validate(
    arm: Arm, designs: list[Design], settings: CalibrationSettings, progress: Callable[[int], None] | None = None
) -> list[Prediction]:
    """Predict every recording with what the others identify; a single recording is cut into halves.

    The rigid model is the description's with its rotor inertia and viscous friction.

    Args:
        arm: the robot.
        designs: regressors of the recordings.
        settings: of the calibration.
        progress: called with the number of recordings that are done.

    Raises:
        IdentificationError: the others of a recording do not identify the parameters.
    """
    if len(designs) == 1:
        half = len(designs[0].rigid) // 2
        designs = [_part(designs[0], slice(0, half), "first half"), _part(designs[0], slice(half, None), "second half")]
    out = []
    for k, d in enumerate(designs):
        m = d.motion
        try:
            found = identify_designs(arm, designs[:k] + designs[k + 1 :], settings)
        except IdentificationError as error:
            raise IdentificationError(f"without {m.source}, {error}") from error
        rigid = d.rigid + arm.motor.armature * m.ddq + arm.motor.viscous * m.dq
        out.append(Prediction(m.source, _rms(m.tau - rigid), _rms(m.tau - found.predict(d))))
        if progress is not None:
            progress(k + 1)
    return out


def shrinkage(predictions: list[Prediction]) -> np.ndarray:
    """Return the calibrated over the rigid RMS (n,), over all recordings.

    Args:
        predictions: of the recordings that were left out.
    """
    calibrated, rigid = (np.array([getattr(p, name) for p in predictions]) for name in ("calibrated", "rigid"))
    return np.asarray(_rms(calibrated) / _rms(rigid))


def _part(d: Design, rows: slice, name: str) -> Design:
    m: Motion = d.motion
    motion = replace(
        m, source=f"{m.source} ({name})", t=m.t[rows], q=m.q[rows], dq=m.dq[rows], ddq=m.ddq[rows], tau=m.tau[rows]
    )
    return Design(motion, d.rigid[rows], d.payload[rows], d.links[rows], d.sliding[rows], d.flange)


def _rms(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.mean(values**2, axis=0)))
