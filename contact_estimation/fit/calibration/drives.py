"""A calibration as the joint friction and actuators that the contact IMM filter starts with."""

from __future__ import annotations

import dataclasses

import numpy as np

from contact_estimation.fit.calibration.identify import Identified
from contact_estimation.fit.calibration.outcome import between_recordings
from contact_estimation.fit.calibration.settings import Calibration
from contact_estimation.robot.actuators import ActuatorSettings


def drive_settings(result: Calibration, found: Identified, base: ActuatorSettings | None) -> ActuatorSettings:
    """Drives with the calibrated friction.

    With ``base`` everything else stays. Without it the noise comes from the residual: its slow part is the deviation
    from the friction law, the part that changes from sample to sample the torque's noise, and the bias drifts by its
    change between recordings.
    """
    if base is not None:
        return dataclasses.replace(base, friction=result.friction)
    residual = [d.motion.tau - found.predict(d) for d in found.designs]
    jumps = np.concatenate([np.diff(r, axis=0) for r in residual]) / np.sqrt(2)
    duration = np.mean([d.motion.t[-1] - d.motion.t[0] for d in found.designs])
    drift = between_recordings(found)["bias"] / np.sqrt(duration)
    return ActuatorSettings(
        friction=result.friction,
        disturbance_std=[float(v) for v in found.std_residual],
        disturbance_time=float(np.median(found.correlation_time)),
        bias_random_walk=[float(v) for v in drift],
        torque_noise=[float(max(v, 1e-3)) for v in jumps.std(axis=0)],
    )
