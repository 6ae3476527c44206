"""The tool behind the flange: mass, centre of mass, inertia, TCP and shape, as links of the robot's description.

Every reader of the description (dynamics, collision geometry, 3-D views, robot_state_publisher) then has the tool.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_estimation.exceptions import ConfigError, ModelError
from contact_estimation.settings import find_config, from_yaml, key, non_negative

#: Names of the links that a tool adds: its body, and its TCP.
LINK, TCP = "tool", "tool_tcp"
#: Shape -> what its size lists.
SHAPES = {"box": ("x", "y", "z"), "cylinder": ("radius", "length"), "sphere": ("radius",)}
_COLOUR = "0.35 0.38 0.42 1"

#: No arm here carries more [kg], or further away [m]: a larger number has another unit.
_HEAVIEST, _FARTHEST = 100.0, 2.0

Vector = Sequence[float] | np.ndarray


def _mass(value: float) -> str | None:
    """Check: not negative, and at most what an arm carries."""
    return non_negative(value) or (f"must be at most {_HEAVIEST:g} (in grams?)" if value > _HEAVIEST else None)


def _length(value: float) -> str | None:
    """Check: a length that a tool may have."""
    return None if abs(value) <= _FARTHEST else f"must be at most {_FARTHEST:g} (in millimetres?)"


@dataclass(frozen=True, kw_only=True)
class ToolShape:
    """A body of the tool: where it may be touched, and what views draw."""

    shape: str = key(doc="kind of body", choices=tuple(SHAPES))
    size: list[float] = key(
        doc="box: edges x, y, z; cylinder about its z axis: radius, length; sphere: radius", unit="m", check=_length
    )
    position: list[float] = key([0.0, 0.0, 0.0], doc="its centre", unit="m, flange frame", check=_length, length=3)
    rotation: list[float] = key([0.0, 0.0, 0.0], doc="rotation vector of its axes", unit="rad, flange axes", length=3)

    def __post_init__(self) -> None:
        names = SHAPES[self.shape]
        if len(self.size) != len(names) or not all(edge > 0 for edge in self.size):
            raise ConfigError(
                f"size of a {self.shape} is {self.size}, expected {len(names)} positive numbers [m]: {', '.join(names)}"
            )


@dataclass(frozen=True, kw_only=True)
class ToolSettings:
    """What is behind the flange (the robot's ``tcp_frame``)."""

    mass: float = key(0.0, doc="mass", unit="kg", check=_mass)
    com: list[float] = key([0.0, 0.0, 0.0], doc="centre of mass", unit="m, flange frame", check=_length, length=3)
    inertia: list[float] = key(
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        doc="inertia about the centre of mass: xx, yy, zz, xy, xz, yz",
        unit="kg m^2, flange axes",
        length=6,
    )
    tcp: list[float] = key(
        [0.0, 0.0, 0.0],
        doc="tool centre point: forces and contact points refer to it",
        unit="m, flange frame",
        check=_length,
        length=3,
    )
    tcp_rotation: list[float] = key(
        [0.0, 0.0, 0.0], doc="rotation vector of the TCP's axes", unit="rad, flange axes", length=3
    )
    geometry: list[ToolShape] = key([], doc="bodies of the tool (keys: ToolShape)")

    def __post_init__(self) -> None:
        moments = np.linalg.eigvalsh(self.tensor)
        if moments[0] < 0.0 or moments[2] > moments[0] + moments[1] + 1e-12:
            raise ConfigError(
                f"key 'inertia' has the principal moments {moments.tolist()} kg m^2; no body has: they must not be "
                "negative, and the largest at most the sum of the others"
            )
        if not self.mass and np.any(moments):
            raise ConfigError("key 'inertia' is given without a mass; give 'mass' too")

    @property
    def tensor(self) -> np.ndarray:
        """Inertia (3, 3) [kg m^2] about the centre of mass, flange axes."""
        xx, yy, zz, xy, xz, yz = self.inertia
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    @property
    def has_tcp(self) -> bool:
        """Whether the TCP is another than the flange."""
        return any(self.tcp) or any(self.tcp_rotation)


def load_tool(name: str, folder: Path | str | None = None) -> ToolSettings:
    """Load a tool.

    Args:
        name: of config/tools or of the profile's tools/, or the path of a YAML; empty: no tool.
        folder: of the robot's profile.

    Raises:
        ConfigError: there is no such tool, or the file has an error.
    """
    return from_yaml(ToolSettings, find_config("tools", name, folder)) if name else ToolSettings()


def add_tool(urdf: str, tool: ToolSettings, flange: str) -> str:
    """Return a URDF with the tool's links behind the link ``flange``.

    Args:
        urdf: text of the description.
        tool: what is added.
        flange: name of the link that carries it.

    Raises:
        ModelError: the text is no XML, or has a link of that name already.
    """
    try:
        robot = ET.fromstring(urdf)
    except ET.ParseError as error:
        raise ModelError(f"the description is no XML ({error}); give the URDF, not the xacro it is made of") from error
    if taken := {LINK, TCP} & {str(link.get("name")) for link in robot.iter("link")}:
        raise ModelError(
            f"the description has a link '{taken.pop()}' already: describe the tool there, or here, not both"
        )
    link = _fixed(robot, LINK, flange, np.zeros(3), np.zeros(3))
    if tool.mass > 0.0:
        inertial = ET.SubElement(link, "inertial")
        _origin(inertial, tool.com, np.zeros(3))
        ET.SubElement(inertial, "mass", value=repr(tool.mass))
        names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        ET.SubElement(inertial, "inertia", {name: repr(value) for name, value in zip(names, tool.inertia)})
    for body in tool.geometry:
        for purpose in ("visual", "collision"):
            element = ET.SubElement(link, purpose)
            _origin(element, body.position, body.rotation)
            sizes = {name: repr(value) for name, value in zip(SHAPES[body.shape], body.size)}
            given = {"size": " ".join(sizes.values())} if body.shape == "box" else sizes
            ET.SubElement(ET.SubElement(element, "geometry"), body.shape, given)
            if purpose == "visual":
                ET.SubElement(ET.SubElement(element, "material", name="tool"), "color", rgba=_COLOUR)
    if tool.has_tcp:
        _fixed(robot, TCP, LINK, tool.tcp, tool.tcp_rotation)
    return ET.tostring(robot, encoding="unicode")


def _fixed(robot: ET.Element, name: str, parent: str, position: Vector, rotation: Vector) -> ET.Element:
    """Add a link that is fixed to another, and return it."""
    link = ET.SubElement(robot, "link", name=name)
    joint = ET.SubElement(robot, "joint", name=f"{name}_joint", type="fixed")
    _origin(joint, position, rotation)
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=name)
    return link


def _origin(element: ET.Element, position: Vector, rotation: Vector) -> None:
    """Place an element at ``position`` (3,) [m] with the rotation vector ``rotation`` (3,) [rad]."""
    angles = pin.rpy.matrixToRpy(pin.exp3(np.asarray(rotation, dtype=float)))  # URDF: roll, pitch, yaw about fixed axes
    ET.SubElement(element, "origin", xyz=_text(position), rpy=_text(angles))


def _text(values: Vector) -> str:
    return " ".join(repr(float(value)) for value in values)
