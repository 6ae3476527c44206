"""The 3-D page: an arm with its estimated contacts, plots and a time slider, in one HTML file that needs nothing else.

The page draws by itself. It gets either a whole recording with its frames, or frames one by one over
:mod:`contact_estimation.viz.server`.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contact_estimation.robot import Arm
from contact_estimation.robot.posture import ready_posture
from contact_estimation.viz.frames import RecordedFrames, short
from contact_estimation.viz.markers import LEGEND
from contact_estimation.viz.meshes import Link, Mesh, arm_meshes, chain, tcp_of, units
from contact_estimation.viz.raster import Camera

_PAGE = Path(__file__).with_name("page")
_SCRIPTS = ("scene.js", "plots.js", "player.js")
#: Where a picture is taken from: azimuth from the TCP's and elevation [rad], distance over the reach of the arm.
_AZIMUTH, _ELEVATION, _DISTANCE = -1.0, 0.38, 1.15


class Box(NamedTuple):
    """A body beside the arm.

    Attributes:
        rotation: (3, 3) in the base frame.
        position: (3,) [m] of its centre in the base frame.
        size: (3,) [m] edges.
        colour: red, green and blue, each 0 to 1.
    """

    rotation: np.ndarray
    position: np.ndarray
    size: np.ndarray
    colour: tuple[float, ...]


def recording_page(arm: Arm, title: str, observers: Mapping[str, RecordedFrames], boxes: Sequence[Box] = ()) -> str:
    """Make the page of a replayed recording.

    Args:
        arm: the robot.
        title: of the page.
        observers: name -> its frames, all of one recording.
        boxes: bodies to draw.

    Returns:
        The text of the HTML file.
    """
    any_ = next(iter(observers.values()))
    about: dict[str, Any] = {"live": False, "end": any_.frames[-1]["t"], "period": any_.spacing, "truth": any_.truth}
    about["observers"] = {name: {"modes": own.modes, "frames": own.frames} for name, own in observers.items()}
    return _page_text(arm, title, f"{arm.name}, {_thinned(any_, observers)}", about, boxes)


def live_page(arm: Arm, title: str, subtitle: str, observers: Sequence[str], period: float) -> str:
    """Make the page that follows a server of frames.

    Args:
        arm: the robot.
        title: of the page.
        subtitle: below it.
        observers: names of those whose frames follow.
        period: of the frames [s].

    Returns:
        The text of the HTML file.
    """
    about: dict[str, Any] = {"live": True, "end": 0.0, "period": period, "truth": False}
    about["observers"] = {name: {"modes": [], "frames": []} for name in observers}
    return _page_text(arm, title, subtitle, about, ())


def _thinned(any_: RecordedFrames, observers: Mapping[str, RecordedFrames]) -> str:
    """Say what of a recording the page has."""
    rate = 1.0 / any_.period
    words = f"{any_.duration:.1f} s, {any_.samples} samples"
    if any_.samples > rate * any_.duration:
        words += f"; shown: {rate:.3g} frames per second with every peak and mode change"
    for name, own in observers.items():
        words += f"; {own.left_out} mode changes of {name} are too close to be shown" if own.left_out else ""
    return words


def _page_text(arm: Arm, title: str, subtitle: str, about: dict[str, Any], boxes: Sequence[Box]) -> str:
    """Fill the page; ``about`` holds what differs between a recording and a live arm."""
    about |= {"title": title, "subtitle": subtitle, "begin": 0.0, "scene": _scene(arm, boxes)}
    about["legend"] = [*LEGEND, *([["true force", "#262626"]] if about["truth"] else [])]
    data = json.dumps(about, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    script = "\n".join((_PAGE / name).read_text() for name in _SCRIPTS)
    page = (_PAGE / "page.html").read_text().replace("@TITLE@", html.escape(title))
    return page.replace("@SCRIPT@", script).replace("@DATA@", data)


def camera_of(arm: Arm, q: np.ndarray) -> Camera:
    """Return a camera that looks at the arm at ``q`` (n,) [rad] from the side, the TCP in front."""
    position = arm.tcp_pose(q)[0]
    reach = sum(float(np.linalg.norm(link.position)) for link in [*chain(arm), tcp_of(arm)])
    target = 0.5 * position + [0.0, 0.0, 0.10 * reach]
    azimuth = float(np.arctan2(position[1], position[0])) + _AZIMUTH
    return Camera(target, _DISTANCE * reach, azimuth, _ELEVATION)


def _scene(arm: Arm, boxes: Sequence[Box]) -> dict[str, Any]:
    links, tcp, camera = chain(arm), tcp_of(arm), camera_of(arm, ready_posture(arm))
    return {
        "meshes": [
            _mesh(mesh) | {"joint": mesh.joint, "colour": short(np.array(mesh.colour), 3)} for mesh in arm_meshes(arm)
        ],
        "units": {name: _mesh(mesh) for name, mesh in units().items()},
        "links": [_link(link) for link in links],
        "tcp": _link(tcp),
        "boxes": [
            {"pose": _pose(b.rotation, b.position), "size": short(b.size, 5), "colour": short(np.array(b.colour), 3)}
            for b in boxes
        ],
        "camera": {**camera._asdict(), "target": short(camera.target, 4)},
    }


def _mesh(mesh: Mesh) -> dict[str, str]:
    rows = np.hstack([mesh.vertices, mesh.normals]).astype("<f4")
    return {"vertices": _base64(rows), "triangles": _base64(mesh.triangles.astype("<u4"))}


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _link(link: Link) -> dict[str, Any]:
    pose = _pose(link.rotation, link.position)
    return {"parent": link.parent, "pose": pose, "axis": link.axis.tolist(), "prismatic": link.prismatic}


def _pose(rotation: np.ndarray, position: np.ndarray) -> list[float]:
    """Return a pose as a 4 x 4 matrix in columns."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, position
    return [round(value, 7) for value in matrix.T.ravel().tolist()]
