"""Where the noise of a filter is set: an EKF's in its configuration, a contact IMM filter's in ``actuators.yaml``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.imm.observer import ContactImm
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.observer import KalmanObserver
from contact_estimation.filters.settings import EkfSettings, SensorSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import ActuatorSettings, actuators_of

#: Name -> key of the settings, of an EKF.
EKF_NOISE = {
    "torque": "process_noise.unknown_torque",
    "torque_share": "process_noise.unknown_torque_share",
    "velocity": "process_noise.velocity",
    "stiffness": "process_noise.stiffness",
    "rest": "process_noise.rest",
    "point": "process_noise.point",
    "position": "measurement_noise.position",
}
#: The same of a contact IMM filter. The values of all joints keep their proportions.
IMM_NOISE = {
    "torque": "torque_noise",
    "disturbance": "disturbance_std",
    "bias": "bias_random_walk",
    "model": "model_error",
    "velocity": "velocity_noise",
    "elastic": "elastic.noise",
    "offset": "elastic.offset_random_walk",
    "transmission": "elastic.transmission_error",
}


@dataclass(frozen=True)
class NoiseSettings:
    """Settings of a filter that hold its noise.

    Attributes:
        values: the settings.
        keys: name of a noise -> dotted key of ``values``.
        usual: names that are tuned by default.
        observer: makes the filter with such settings, its noise constant.
        deployed: makes it as a node runs it, where the noise of an IMM filter follows the measured scatter.
        file: of a robot's profile, that holds them; ``{}`` is the configuration's name.
    """

    values: Any
    keys: Mapping[str, str]
    usual: tuple[str, ...]
    observer: Callable[[Any], KalmanObserver]
    deployed: Callable[[Any], KalmanObserver]
    file: str

    def value(self, name: str) -> Any:
        """Return the noise ``name``: a number, or one per joint."""
        found = self.values
        for field in self._key(name).split("."):
            found = getattr(found, field)
        return found

    def scaled(self, factors: Mapping[str, float]) -> NoiseSettings:
        """Return the settings with noises times factors.

        Raises:
            ConfigError: unknown name, or a noise that is zero, which no factor changes.
        """
        values = self.values
        for name, factor in factors.items():
            if not any(value > 0 for value in _numbers(self.value(name))):
                raise ConfigError(f"{self._key(name)} is 0, which no factor changes; give it a small positive value")
            values = _scaled(values, self._key(name).split("."), factor)
        return dataclasses.replace(self, values=values)

    def profile_file(self, config: str) -> str:
        """Return the path within a robot's profile that holds the settings of the configuration ``config``."""
        return self.file.format(config)

    def _key(self, name: str) -> str:
        if name not in self.keys:
            raise ConfigError(f"cannot tune '{name}'; known: {', '.join(self.keys)}")
        return self.keys[name]


def noise_settings(arm: Arm, settings: Any, sensors: SensorSettings) -> NoiseSettings:
    """Return the noise of the filter that ``settings`` describe.

    Args:
        arm: the robot.
        settings: of the filter.
        sensors: what is measured.

    Raises:
        ConfigError: the observer has no noise that can be tuned.
    """
    if isinstance(settings, EkfSettings):
        ekf = partial(Ekf, arm)
        return NoiseSettings(settings, EKF_NOISE, ("torque", "torque_share"), ekf, ekf, "observers/{}.yaml")
    if not isinstance(settings, ImmSettings):
        kind = getattr(settings, "observer", "unknown")
        raise ConfigError(f"an observer of kind '{kind}' cannot be tuned; choose one of kind 'ekf' or 'contact_imm'")
    arm = arm.measured_at(sensors.torque_side)

    def deployed(values: ActuatorSettings) -> ContactImm:
        return ContactImm(arm, settings, sensors=sensors, actuators=values)

    def constant(values: ActuatorSettings) -> ContactImm:
        # Noise that follows the measured scatter would explain the data whatever its setting is.
        return deployed(dataclasses.replace(values, max_noise_ratio=0.0, least_noise_share=1.0))

    actuators = actuators_of(arm, settings.actuators)
    return NoiseSettings(actuators, IMM_NOISE, ("torque", "disturbance"), constant, deployed, "actuators.yaml")


def _numbers(value: Any) -> list[float]:
    return value if isinstance(value, list) else [value]


def _scaled(settings: Any, path: list[str], factor: float) -> Any:
    """Return ``settings`` with the value at ``path`` times a factor."""
    value = getattr(settings, path[0])
    if len(path) > 1:
        changed: Any = _scaled(value, path[1:], factor)
    elif isinstance(value, list):
        changed = [float(factor * entry) for entry in value]
    else:
        changed = float(factor * value)
    return dataclasses.replace(settings, **{path[0]: changed})
