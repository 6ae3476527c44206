"""A recording's effort as total joint torque, by the sensor set: unit, scale, gravity."""

from __future__ import annotations

import dataclasses

import numpy as np

from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm


def with_total_torque(arm: Arm, sensors: SensorSettings, recording: Recording) -> Recording:
    """Return the recording with its effort turned into the total joint torque [Nm], gravity and friction inside.

    Joints that turn without limit go on where they are told within one turn.

    Args:
        arm: the robot.
        sensors: what the effort means.
        recording: as it was read.

    Raises:
        ConfigError: the sensor set does not fit the arm. IdentificationError: the effort is the environment's torque
            alone.
    """
    if sensors.torque_meaning == "external":
        raise IdentificationError(
            "the sensor set says that the effort is the environment's torque: friction and "
            "gravity are gone from it. Record the drives' torque or current (torque_meaning: "
            "total)"
        )
    if sensors.torque_scale is not None and len(sensors.torque_scale) != arm.n:
        raise ConfigError(
            f"torque_scale has {len(sensors.torque_scale)} entries, robot '{arm.name}' has {arm.n} joints"
        )
    tau = recording.tau * (1.0 if sensors.torque_scale is None else np.array(sensors.torque_scale))
    if sensors.torque_unit == "A":
        tau = arm.motor.torque_from_current(tau)
    if sensors.torque_meaning == "gravity_compensated":
        tau = tau + np.array([arm.gravity(q) for q in recording.q])
    return dataclasses.replace(recording, q=arm.unwrap(recording.q), tau=tau)
