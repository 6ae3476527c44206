"""The motor side of the joints: gear ratios, torque constants, rotor inertia, viscous friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import ConfigError
from contact_estimation.robot.settings import RobotSettings


@dataclass(frozen=True)
class MotorSide:
    """What the motors are, per joint (n,).

    Attributes:
        gear_ratio: motor turns per joint turn.
        armature: reflected rotor inertia [kg m^2].
        viscous: viscous friction B [Nms/rad].
        drive_gain: from motor current to joint torque [Nm/A]; None where the robot has no torque constants.
    """

    gear_ratio: np.ndarray
    armature: np.ndarray
    viscous: np.ndarray
    drive_gain: np.ndarray | None

    @classmethod
    def from_settings(cls, settings: RobotSettings) -> MotorSide:
        """Return the motor side of a robot.

        Args:
            settings: of the robot.

        Raises:
            ConfigError: a list has not one entry per joint.
        """
        n = len(settings.joints)
        for name in ("gear_ratio", "torque_constant", "rotor_inertia", "viscous_friction", "ready"):
            value = getattr(settings, name)
            if value is not None and len(value) != n:
                raise ConfigError(
                    f"robot '{settings.name}': {name} has {len(value)} entries, expected one per joint ({n})"
                )
        gear = np.ones(n) if settings.gear_ratio is None else np.array(settings.gear_ratio)
        rotor, viscous = (np.array(v or [0.0] * n) for v in (settings.rotor_inertia, settings.viscous_friction))
        gain = None if settings.torque_constant is None else gear * np.array(settings.torque_constant)
        return cls(gear, gear**2 * rotor, viscous, gain)

    def torque_from_current(self, current: np.ndarray) -> np.ndarray:
        """Joint torque [Nm] of motor currents (..., n) [A], friction still inside.

        Raises:
            ConfigError: the robot has no torque constants.
        """
        if self.drive_gain is None:
            raise ConfigError(
                "currents were given, but the robot's YAML has no torque_constant; add it or provide torques"
            )
        return np.array(current * self.drive_gain, float)
