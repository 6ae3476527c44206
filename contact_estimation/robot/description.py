"""URDF -> pinocchio.Model, checked: every joint known, every moving link with mass and inertia."""

from __future__ import annotations

import difflib
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_estimation.exceptions import ContactEstimationError, ModelError
from contact_estimation.robot.settings import RobotSettings
from contact_estimation.robot.tool import add_tool, load_tool
from contact_estimation.settings import find_urdf, share_file

#: [rad], [rad/s] Limit of a joint that has none: a URDF's ``continuous`` joint.
UNLIMITED = 1e4


def urdf_path(settings: RobotSettings) -> Path:
    """Where the robot's URDF is: from its profile folder on, or in that of a shipped robot.

    A file of that name in the working directory is no description of the robot.

    Args:
        settings: of the robot.

    Raises:
        ModelError: it is in none of these places.
    """
    found = find_urdf(settings.urdf, settings.folder)
    if found is None:
        known = sorted(path.name for path in share_file("config", "robots").glob("*/*.urdf"))
        raise ModelError(
            f"robot '{settings.name}': no URDF at '{settings.urdf}' from its folder on ({settings.folder or 'none'}), "
            f"nor under that name among the shipped ones ({', '.join(known)}); correct 'urdf', or give the whole path"
        )
    return found


def description_text(settings: RobotSettings) -> str:
    """Return the text of the robot's URDF, with the links of its tool.

    Joints of type ``continuous`` become revolute ones with limits of :data:`UNLIMITED`: one position each, in radians.

    Args:
        settings: of the robot.

    Raises:
        ConfigError: there is no such tool.
        ModelError: there is no URDF, or the tool's links do not fit it.
    """
    text = urdf_path(settings).read_text(encoding="utf-8")
    if settings.tool:
        text = add_tool(text, load_tool(settings.tool, settings.folder), settings.tcp_frame)
    return _limited(text) if "continuous" in text else text


def _limited(text: str) -> str:
    """Return a URDF whose continuous joints are revolute."""
    try:
        robot = ET.fromstring(text)
    except ET.ParseError:
        return text  # Pinocchio says what is wrong
    for joint in robot.iterfind("joint[@type='continuous']"):
        joint.set("type", "revolute")
        limit = joint.find("limit")
        if limit is None:
            limit = ET.SubElement(joint, "limit", effort="0", velocity=repr(UNLIMITED))
        limit.set("lower", repr(-UNLIMITED))
        limit.set("upper", repr(UNLIMITED))
    return ET.tostring(robot, encoding="unicode")


def find_frame(model: pin.Model, name: str) -> pin.Frame | None:
    """Return the frame of a link, or where no link has that name, any frame; None where there is none.

    Args:
        model: of a description, whose links and joints may have the same names.
        name: of the frame.
    """
    named = [frame for frame in model.frames if frame.name == name]
    return min(named, key=lambda frame: frame.type != pin.FrameType.BODY, default=None)


def load_model(settings: RobotSettings) -> pin.Model:
    """Pinocchio model with exactly the joints of ``settings``, in their order; other movable joints are locked at zero.

    Gravity, tool and load are those of ``settings``; rotor inertia is not in the model (see :mod:`.motor`).

    Raises:
        ModelError: the file is not a URDF, a joint or frame is unknown, the order differs, a moving link lacks inertia.
    """
    path = urdf_path(settings)
    try:
        model = pin.buildModelFromXML(description_text(settings))
    except ContactEstimationError:
        raise
    except Exception as error:  # pinocchio raises ValueError or RuntimeError, by version
        raise ModelError(f"{path} cannot be read as a URDF: {error}") from error
    names = list(model.names)[1:]
    for joint in settings.joints:
        if joint not in names:
            near = difflib.get_close_matches(joint, names, n=1, cutoff=0.0)
            raise ModelError(
                f"robot '{settings.name}': joint '{joint}' is not in {path.name}; "
                f"{'nearest: ' + repr(near[0]) if near else 'it has no movable joint'}. It has: "
                f"{', '.join(names)}"
            )
    locked = [model.getJointId(name) for name in names if name not in settings.joints]
    if locked:
        model = pin.buildReducedModel(model, locked, pin.neutral(model))
    if list(model.names)[1:] != list(settings.joints):
        raise ModelError(
            f"robot '{settings.name}': joints are listed as {settings.joints}, the chain of {path.name} "
            f"has them in the order {list(model.names)[1:]}"
        )
    if model.nq != model.njoints - 1 or model.nv != model.nq:
        raise ModelError(
            f"robot '{settings.name}': every joint must have one degree of freedom with one position: revolute, "
            "continuous or prismatic"
        )
    base, tcp = (find_frame(model, name) for name in (settings.base_frame, settings.tcp_frame))
    if base is None or tcp is None:
        missing = settings.base_frame if base is None else settings.tcp_frame
        raise ModelError(
            f"robot '{settings.name}': frame '{missing}' is not in {path.name}; it has "
            f"{', '.join(f.name for f in model.frames if f.type == pin.FrameType.BODY)}"
        )
    if base.parentJoint != 0:
        raise ModelError(
            f"robot '{settings.name}': base_frame '{settings.base_frame}' moves; name a link fixed to the world"
        )
    model.gravity.linear = base.placement.rotation @ np.asarray(settings.gravity, float)
    _check_inertias(model, path)
    if settings.tool_mass > 0:
        load = pin.Inertia(settings.tool_mass, np.asarray(settings.tool_com, float), np.zeros((3, 3)))
        joint = tcp.parentJoint
        model.inertias[joint] = model.inertias[joint] + tcp.placement.act(load)
    return model


def _check_inertias(model: pin.Model, path: Path) -> None:
    for j in range(1, model.njoints):
        inertia = model.inertias[j]
        if not inertia.mass > 0:
            raise ModelError(
                f"{path.name}: the link moved by joint '{model.names[j]}' has no mass; dynamics need the "
                "<inertial> of every moving link (use the manufacturer's description)"
            )
        moments = np.linalg.eigvalsh(inertia.inertia)
        if moments[0] <= 0:
            raise ModelError(
                f"{path.name}: the link moved by joint '{model.names[j]}' has principal moments {moments} "
                f"kg m^2; all must be positive (an <inertial> with zero inertia?)"
            )
