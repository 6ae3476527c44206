"""Observers by name, for the command line and the nodes."""

from __future__ import annotations

import dataclasses
import difflib
import os
from pathlib import Path
from typing import Any

from contact_estimation import plugins
from contact_estimation.exceptions import ConfigError, refuse_names
from contact_estimation.filters.observer import Observer
from contact_estimation.filters.settings import SensorSettings, load_sensor_settings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot import Arm, load_arm, load_robot_settings
from contact_estimation.settings import config_files, find_config, from_mapping, load_yaml


def observer_names() -> list[str]:
    """Everything ``--observer`` and the nodes take by name: shipped configurations, and observers of other packages."""
    shipped = list(config_files("observers"))
    kinds = {load_yaml(path).get("observer") for path in config_files("observers").values()}
    aliases = plugins.ALIASES[plugins.OBSERVERS]
    return [*shipped, *aliases, *(name for name in plugins.offered(plugins.OBSERVERS) if name not in kinds)]


def load_observer_settings(config: str, folder: str | None = None) -> Any:
    """Load the settings of an observer.

    Args:
        config: a shipped configuration (``ekf``, ``paper_online``, ...), a YAML file, or an observer of another
            package, by its entry point or as ``module:Class``, with the defaults of its settings.
        folder: a robot's profile folder, which may have one of its own by that name.

    Raises:
        ConfigError: unknown name, unknown kind of observer, or an error in the file.
    """
    return _load(config, folder)[0]


def _load(config: str, folder: str | None = None) -> tuple[Any, Any]:
    """Load settings and class of an observer; a robot's profile ``folder`` may have one of its own by that name."""
    config = plugins.canonical(plugins.OBSERVERS, config)
    if config not in config_files("observers", folder) and (
        config == _as_class(config) or plugins.is_offered(plugins.OBSERVERS, config)
    ):
        mapping, source = {"observer": config}, f"observer {config}"
    else:
        path = _find(config, folder)
        mapping, source = load_yaml(path), str(path)
    kind = mapping.get("observer")
    if not isinstance(kind, str) or (":" not in kind and not plugins.is_offered(plugins.OBSERVERS, kind)):
        known = plugins.offered(plugins.OBSERVERS)
        near = difflib.get_close_matches(kind, known, n=1, cutoff=0.0) if isinstance(kind, str) else []
        raise ConfigError(
            f"{source}: key 'observer' is {kind!r}; expected one of {', '.join(known)}"
            f"{f' (nearest: {near[0]!r})' if near else ''}, or module:Class"
        )
    observer = plugins.load(plugins.OBSERVERS, kind)
    settings = plugins.settings_of(observer, kind)
    keys = {field.name for field in dataclasses.fields(settings)}
    mapping = {key: value for key, value in mapping.items() if key != "observer" or key in keys}
    return from_mapping(settings, mapping, source), observer


def _as_class(config: str) -> str:
    """``config`` where it reads ``module:Class``, else nothing that a name could be."""
    return config if ":" in config and not config.endswith((".yaml", ".yml")) else ""


def _find(config: str, folder: str | None) -> Path:
    """Path of an observer configuration; the error of an unknown name lists all that can be chosen."""
    try:
        return find_config("observers", config, folder)
    except ConfigError as error:
        words, others = str(error), [name for name in observer_names() if name not in config_files("observers")]
        if not words.startswith("there is no observer") or not others:
            raise
        raise ConfigError(f"{words.rstrip('.')}. Other names: {', '.join(others)}.") from None


def make_observer(arm: Arm, settings: Any, name: str | None = None, sensors: SensorSettings | None = None) -> Observer:
    """Observer of ``settings`` for ``arm`` as the torque sensors see it.

    Args:
        arm: the robot.
        settings: settings of a shipped kind of observer.
        name: name in reports, default its kind.
        sensors: what is measured, default :class:`SensorSettings`'s defaults.

    Raises:
        ConfigError: an argument is a name, from which a loader makes it.
    """
    loaders = {"settings": (settings, "load_observer_settings"), "sensors": (sensors, "load_sensor_settings")}
    refuse_names("make_observer", arm=(arm, "load_arm"), **loaders)
    return _make(plugins.load(plugins.OBSERVERS, settings.observer), arm, settings, name or settings.observer, sensors)


def _make(cls: Any, arm: Arm, settings: Any, name: str, sensors: SensorSettings | None) -> Observer:
    sensors = sensors or SensorSettings()
    if not getattr(cls, "keeps_rotors", False):
        arm = arm.measured_at(sensors.torque_side)
    extra = {"sensors": sensors} if getattr(cls, "uses_sensors", False) else {}
    observer: Observer = cls(arm, settings, name, **extra)
    return observer


def robot_for(arm: Arm, settings: Any) -> Arm:
    """``arm``, or the description the observer's settings name instead of it (``models``), with the same tool."""
    models: dict[str, str] = getattr(settings, "models", {})
    if arm.name not in models:
        return arm
    own = arm.settings
    other = dataclasses.replace(
        load_robot_settings(models[arm.name]), tool=own.tool, tool_mass=own.tool_mass, tool_com=own.tool_com
    )
    return Arm(other)


def open_stream(
    robot: str | os.PathLike[str] | Arm,
    config: str = plugins.DEFAULT_OBSERVER,
    sensors: str | None = None,
    tool: str = "",
) -> SampleStream:
    """Make a stream that is ready for samples.

    Args:
        robot: shipped robot, profile folder, robot YAML, or an arm.
        config: observer configuration, as :func:`load_observer_settings` takes it.
        sensors: sensor set, by name or YAML path; default the observer's, else the robot's.
        tool: tool of a robot that is named, by name or YAML path; default the robot's own.

    Raises:
        ConfigError: unknown name, an error in a file, or a tool beside an arm.
        ModelError: the robot's description cannot be used.
    """
    if tool and isinstance(robot, Arm):
        raise ConfigError(
            f"open_stream got an arm and the tool '{tool}'; an arm has its tool already: give "
            f"load_arm('{robot.name}', '{tool}'), or the robot's name"
        )
    arm = robot if isinstance(robot, Arm) else load_arm(robot, tool)
    settings, observer = _load(config, arm.settings.folder)
    described = robot_for(arm, settings)
    sensor_set = sensors or getattr(settings, "sensors", None) or described.settings.sensors
    chosen = load_sensor_settings(sensor_set, arm.settings.folder)
    name = config.rpartition(":")[2] if _as_class(config) else Path(config).stem
    return SampleStream(_make(observer, described, settings, name, chosen), described, chosen, arm, sensor_set)
