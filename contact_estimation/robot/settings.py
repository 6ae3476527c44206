"""Settings of a robot: one YAML per robot in ``config/robots``."""

from __future__ import annotations

from dataclasses import dataclass

from contact_estimation.settings import find_config, from_yaml, key, non_negative, positive


@dataclass(frozen=True, kw_only=True)
class RobotSettings:
    """An arm: its description and the motor side, which a URDF does not carry."""

    name: str = key(doc="name of the robot, used in messages and reports")
    urdf: str = key(doc="URDF file: a path, or the name of a file this package ships in urdf/")
    base_frame: str = key(doc="link in which poses and forces are expressed; fixed to the world")
    tcp_frame: str = key(doc="link at the tool flange; forces of the estimate are at its origin, in its axes")
    joints: list[str] = key(doc="joint names, base to tip, as the driver publishes them")
    sensors: str = key(doc="sensor set in config/sensors used when none is asked for")
    gear_ratio: list[float] = key(doc="gear ratio per joint", check=positive, length="joints")
    torque_constant: list[float] | None = key(None, doc="motor torque constant per joint; without it currents cannot "
                                                        "be used",
                                              unit="Nm/A", check=positive, length="joints")
    rotor_inertia: list[float] = key(doc="rotor inertia per joint, on the motor side; gear_ratio^2 times it adds to "
                                         "the mass matrix",
                                     unit="kg m^2", check=non_negative, length="joints")
    viscous_friction: list[float] = key(doc="viscous friction B per joint, on the joint side", unit="Nms/rad",
                                        check=non_negative, length="joints")
    gravity: list[float] = key([0.0, 0.0, -9.81], doc="gravity in base axes; change it for an arm on a wall or ceiling",
                               unit="m/s^2", length=3)
    tool_mass: float = key(0.0, doc="mass of the tool behind the flange", unit="kg", check=non_negative)
    tool_com: list[float] = key([0.0, 0.0, 0.0], doc="centre of mass of the tool in the TCP frame", unit="m", length=3)


def load_robot_settings(name: str) -> RobotSettings:
    """Settings of a shipped robot by name, or of the YAML file at a path.

    Raises:
        ConfigError: there is no such robot, or the file has an error.
    """
    return from_yaml(RobotSettings, find_config("robots", name))
