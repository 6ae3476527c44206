"""Settings of a robot, and its profile: the folder that holds everything about it, ``config/robots/<robot>``."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import config_files, find_config, from_yaml, key, non_negative, positive


@dataclass(frozen=True, kw_only=True)
class RobotSettings:
    """An arm: its description and the motor side, which a URDF does not carry."""

    name: str = key(doc="name of the robot, used in messages and reports")
    folder: str = key("", doc="profile folder with the robot's other files; empty: the folder of this file")
    urdf: str = key(doc="URDF file: a path, from the profile folder on, or the name of a shipped robot's")
    base_frame: str = key(doc="link in which poses and forces are expressed; fixed to the world")
    tcp_frame: str = key(doc="link at the tool flange; forces of the estimate are at its origin, in its axes")
    joints: list[str] = key(doc="joint names, base to tip, as the driver publishes them")
    sensors: str = key("joint_torque", doc="default sensor set: a name in config/sensors or in the profile's sensors/")
    driver_sensors: str = key("", doc="sensor set of what driver rtde publishes; empty: sensors")
    control: str = key(
        "admittance",
        doc="how the arm follows a pose: admittance of a position-controlled arm, or impedance by joint torque",
        choices=("admittance", "impedance"),
    )
    ready: list[float] | None = key(
        None,
        doc="posture in which tasks begin, the tool pointing down; null: found by inverse kinematics",
        unit="rad",
        length="joints",
    )
    gear_ratio: list[float] | None = key(None, doc="gear ratio per joint; null: 1", check=positive, length="joints")
    torque_constant: list[float] | None = key(
        None,
        doc="motor torque constant per joint; without it currents cannot be used",
        unit="Nm/A",
        check=positive,
        length="joints",
    )
    rotor_inertia: list[float] | None = key(
        None,
        doc="rotor inertia per joint, on the motor side; gear_ratio^2 times it adds to the mass matrix; null: none",
        unit="kg m^2",
        check=non_negative,
        length="joints",
    )
    viscous_friction: list[float] | None = key(
        None,
        doc="viscous friction B per joint, on the joint side; null: none",
        unit="Nms/rad",
        check=non_negative,
        length="joints",
    )
    gravity: list[float] = key(
        [0.0, 0.0, -9.81], doc="gravity in base axes; change it for an arm on a wall or ceiling", unit="m/s^2", length=3
    )
    tool: str = key(
        "",
        doc="tool behind the flange: a name in config/tools or the profile's tools/, or path of a YAML, from the "
        "profile folder on; empty: none",
    )
    tool_mass: float = key(0.0, doc="mass of a load behind the flange, beside the tool", unit="kg", check=non_negative)
    tool_com: list[float] = key(
        [0.0, 0.0, 0.0], doc="centre of mass of that load", unit="m, flange frame (tcp_frame)", length=3
    )


def load_robot_settings(name: str | os.PathLike[str], tool: str = "") -> RobotSettings:
    """Load the settings of a robot.

    Args:
        name: a shipped robot's name, the path of a profile folder, or the path of a robot YAML.
        tool: what is behind the flange instead of the profile's own tool and load: a name, or the path of a tool YAML.

    Raises:
        ConfigError: there is no such robot or tool, or the robot's file has an error.
    """
    try:
        given = os.fspath(name)
    except TypeError as error:
        raise ConfigError(f"a robot is given by its name or the path of its files, found {name!r}") from error
    path = find_config("robots", given)
    settings = from_yaml(RobotSettings, path)
    settings = dataclasses.replace(settings, folder=settings.folder or str(path.resolve().parent))
    if tool:
        settings = dataclasses.replace(settings, tool=tool, tool_mass=0.0, tool_com=[0.0, 0.0, 0.0])
    elif settings.tool.endswith((".yaml", ".yml")):
        settings = dataclasses.replace(settings, tool=str(Path(settings.folder, settings.tool)))
    if settings.tool:
        settings = dataclasses.replace(
            settings, tool=str(find_config("tools", settings.tool, settings.folder).resolve())
        )
    return settings


def robot_file(settings: RobotSettings, kind: str) -> Path | None:
    """Find a file of the robot's profile: ``actuators`` or ``simulation``.

    A robot YAML of the user's own that keeps the name of a shipped robot is that robot with another tool or mounting;
    what is not beside it is taken from the shipped profile.

    Args:
        settings: of the robot.
        kind: ``actuators`` or ``simulation``.

    Returns:
        Its path, or None where the profile has none.
    """
    own = Path(settings.folder) / f"{kind}.yaml"
    return own if settings.folder and own.is_file() else config_files(kind).get(settings.name)
