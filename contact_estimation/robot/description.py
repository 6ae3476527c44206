"""URDF -> pinocchio.Model, checked: every joint known, every moving link with mass and inertia."""

from __future__ import annotations

import difflib
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_estimation.exceptions import ContactEstimationError, ModelError
from contact_estimation.robot.settings import RobotSettings
from contact_estimation.robot.tool import add_tool, load_tool
from contact_estimation.settings import share_file


def urdf_path(settings: RobotSettings) -> Path:
    """Where the robot's URDF is: a path as given, in its profile folder, or in that of a shipped robot.

    Args:
        settings: of the robot.

    Raises:
        ModelError: it is in none of these places.
    """
    shipped = share_file("config", "robots")
    places = [Path(settings.urdf), Path(settings.folder or ".") / settings.urdf, *shipped.glob(f"*/{settings.urdf}")]
    for place in places:
        if place.is_file():
            return place
    known = sorted(path.name for path in shipped.glob("*/*.urdf"))
    raise ModelError(
        f"robot '{settings.name}': no URDF at '{settings.urdf}', nor in {settings.folder or 'its folder'}, nor under "
        f"that name among the shipped ones ({', '.join(known)})"
    )


def description_text(settings: RobotSettings) -> str:
    """Return the text of the robot's URDF, with the links of its tool.

    Args:
        settings: of the robot.

    Raises:
        ConfigError: there is no such tool.
        ModelError: there is no URDF, or the tool's links do not fit it.
    """
    text = urdf_path(settings).read_text(encoding="utf-8")
    if not settings.tool:
        return text
    return add_tool(text, load_tool(settings.tool, settings.folder), settings.tcp_frame)


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
            f"robot '{settings.name}': every joint must have one degree of freedom with one position "
            "(revolute with limits, or prismatic); use 'revolute' instead of 'continuous'"
        )
    for frame in (settings.base_frame, settings.tcp_frame):
        if not model.existFrame(frame):
            raise ModelError(
                f"robot '{settings.name}': frame '{frame}' is not in {path.name}; it has "
                f"{', '.join(f.name for f in model.frames if f.type == pin.FrameType.BODY)}"
            )
    if model.frames[model.getFrameId(settings.base_frame)].parentJoint != 0:
        raise ModelError(
            f"robot '{settings.name}': base_frame '{settings.base_frame}' moves; name a link fixed to the world"
        )
    model.gravity.linear = model.frames[model.getFrameId(settings.base_frame)].placement.rotation @ np.asarray(
        settings.gravity, float
    )
    _check_inertias(model, path)
    if settings.tool_mass > 0:
        _add_load(model, settings)
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


def _add_load(model: pin.Model, settings: RobotSettings) -> None:
    frame = model.frames[model.getFrameId(settings.tcp_frame)]
    load = pin.Inertia(settings.tool_mass, np.asarray(settings.tool_com, float), np.zeros((3, 3)))
    joint = frame.parentJoint
    model.inertias[joint] = model.inertias[joint] + frame.placement.act(load)
