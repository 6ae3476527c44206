"""Observers by name: what the command line and the nodes choose from."""

from __future__ import annotations

import difflib
import importlib
from pathlib import Path

from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.kinds import KINDS
from contact_estimation.filters.observer import Observer
from contact_estimation.filters.settings import SensorSettings, load_sensor_settings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot import Arm, load_arm
from contact_estimation.settings import find_config, from_mapping, load_yaml


def load_observer_settings(config: str):
    """Settings object of a shipped observer configuration by name (``ekf``, ``paper_online``, ...) or of a YAML file by
    path.

    Raises:
        ConfigError: unknown name, unknown kind, or an error in the file.
    """
    path = find_config("observers", config)
    mapping = load_yaml(path)
    kind = mapping.get("observer")
    if kind not in KINDS:
        near = difflib.get_close_matches(str(kind), KINDS, n=1, cutoff=0.0)[0]
        raise ConfigError(f"{path}: key 'observer' is {kind!r}; expected one of {', '.join(KINDS)} (nearest: '{near}')")
    module, settings, _ = KINDS[kind]
    return from_mapping(getattr(importlib.import_module(module), settings), mapping, str(path))


def make_observer(arm: Arm, settings, name: str | None = None, sensors: SensorSettings | None = None) -> Observer:
    """Observer of ``settings`` for ``arm``, as the torque sensors see it; ``name`` defaults to its kind, ``sensors`` to
    :class:`SensorSettings`'s defaults."""
    sensors = sensors or SensorSettings()
    module, _, observer = KINDS[settings.observer]
    cls = getattr(importlib.import_module(module), observer)
    if not getattr(cls, "keeps_rotors", False):
        arm = arm.measured_at(sensors.torque_side)
    extra = {"sensors": sensors} if getattr(cls, "uses_sensors", False) else {}
    return cls(arm, settings, name or settings.observer, **extra)


def robot_for(arm: Arm, settings) -> Arm:
    """``arm``, or the description the observer's settings name instead of it (``models``)."""
    return load_arm(settings.models[arm.name]) if arm.name in settings.models else arm


def open_stream(robot: str | Arm, config: str = "ekf", sensors: str | None = None) -> SampleStream:
    """A stream ready for samples.

    Args:
        robot: shipped robot, robot YAML, or an arm. config: observer configuration, shipped name or YAML path.
        sensors: sensor set, shipped name or YAML path; default the observer's, else the robot's.

    Raises:
        ConfigError, ModelError: as the parts do.
    """
    settings = load_observer_settings(config)
    arm = robot_for(robot if isinstance(robot, Arm) else load_arm(robot), settings)
    chosen: SensorSettings = load_sensor_settings(sensors or settings.sensors or arm.settings.sensors)
    return SampleStream(make_observer(arm, settings, Path(config).stem, chosen), arm, chosen)
