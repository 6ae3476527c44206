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

from contact_estimation.filters.observer import CLOSED, ContactState, Estimate
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm
from contact_estimation.robot.posture import ready_posture
from contact_estimation.viz.markers import LEGEND, Shape, arrow, estimate_shapes
from contact_estimation.viz.meshes import Link, Mesh, arm_meshes, chain, tcp_of, units
from contact_estimation.viz.raster import Camera

#: Frames per second of a recording, and at most this many in all: a longer recording has fewer per second.
FRAME_RATE, MAX_FRAMES = 30.0, 4000
_PAGE = Path(__file__).with_name("page")
_SCRIPTS = ("scene.js", "plots.js", "player.js")
#: Of true forces: thinner than the estimates.
TRUTH_COLOUR, TRUTH_SIZE = (0.15, 0.15, 0.15, 1.0), (0.004, 0.012, 0.03)
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


def recording_page(
    arm: Arm,
    recording: Recording,
    logs: Mapping[str, EstimateLog],
    title: str,
    boxes: Sequence[Box] = (),
    truth_shapes: Mapping[int, list[Shape]] | None = None,
) -> str:
    """Make the page of a replayed recording.

    Args:
        arm: the robot.
        recording: what was replayed.
        logs: observer -> its estimates, one per sample.
        title: of the page.
        boxes: bodies to draw.
        truth_shapes: sample -> further shapes, such as a push that the simulation knows; default: the true force.

    Returns:
        The text of the HTML file.
    """
    rows = frame_rows(recording)
    t = recording.t - recording.t[0]
    truth = _truth(recording)
    extra = _true_forces(arm, recording, rows) if truth_shapes is None else truth_shapes
    observers = {}
    for name, log in logs.items():
        columns = log.columns()
        frames = []
        for row in rows:
            frame = estimate_frame(arm, estimate_at(log, columns, row), float(t[row]))
            frame["q"] = _short(recording.q[row], 5)
            frame["truth"] = {key: _short(values[row], 4) for key, values in truth.items()}
            frame["shapes"] += [_shape(arm, shape) for shape in extra.get(row, [])]
            frames.append(frame)
        observers[name] = {"modes": list(log.mode_names), "frames": frames}
    subtitle = f"{arm.name}, {recording.duration:.1f} s, {len(recording)} samples"
    return page_text(arm, title, subtitle, observers, boxes=boxes, end=float(t[rows[-1]]), truth=bool(truth))


def page_text(
    arm: Arm,
    title: str,
    subtitle: str,
    observers: Mapping[str, dict[str, Any]],
    live: bool = False,
    boxes: Sequence[Box] = (),
    end: float = 0.0,
    truth: bool = False,
) -> str:
    """Fill the page.

    Args:
        arm: the robot.
        title: of the page.
        subtitle: below it.
        observers: name -> ``modes`` (names) and ``frames`` of :func:`estimate_frame`.
        live: whether frames follow from the server.
        boxes: bodies to draw.
        end: time [s] of the last frame.
        truth: whether frames carry the truth.

    Returns:
        The text of the HTML file.
    """
    about = {
        "title": title,
        "subtitle": subtitle,
        "live": live,
        "begin": 0.0,
        "end": end,
        "truth": truth,
        "scene": _scene(arm, boxes),
        "legend": [*LEGEND, *([["true force", "#262626"]] if truth else [])],
        "observers": observers,
    }
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


def frame_rows(recording: Recording) -> list[int]:
    """Return the samples that are shown."""
    t = recording.t - recording.t[0]
    step = max(1.0 / FRAME_RATE, recording.duration / MAX_FRAMES)
    rows = np.searchsorted(t, np.arange(0.0, recording.duration, step))
    return sorted({*rows.tolist(), len(recording) - 1} - {len(recording)})


def estimate_frame(arm: Arm, estimate: Estimate, t: float) -> dict[str, Any]:
    """Write one estimate as the page takes it.

    Args:
        arm: the robot.
        estimate: an invalid one carries its reason and nothing to draw.
        t: time to show [s].
    """
    valid = bool(estimate.valid)
    # The stiffness of a contact that is open is what the settings expect.
    open_ = any(contact.probability < CLOSED for contact in estimate.contacts[:1])
    touched = next((contact for contact in estimate.contacts if contact.link and contact.closed), None)
    place = touched.place if touched else None
    return {
        "t": round(t, 4),
        "q": _short(estimate.q, 5),
        "valid": valid,
        "reason": estimate.reason,
        "mode": estimate.mode,
        "mismatch": estimate.mismatch,
        "link": touched.link if touched else "",
        "link_force": _short(place.force, 4) if place else None,
        "force": _short(estimate.force_tcp, 4) if valid else None,
        "stiffness": _short(np.array(estimate.stiffness), 4) if valid and not open_ else None,
        "probabilities": _short(np.array([*estimate.modes.values()]), 3) if valid else None,
        "shapes": [
            _shape(arm, one)
            for shape in estimate_shapes(estimate, arm.tcp_frame, arm.base_frame)
            for one in shape.apart()
            if one.visible
        ],
    }


def estimate_at(log: EstimateLog, columns: Mapping[str, np.ndarray], row: int) -> Estimate:
    """Return the estimate in one row of a log, without joint positions, which a log does not keep."""
    found = {name: column[row] for name, column in columns.items() if len(column) == len(columns["t"])}
    contacts = tuple(
        ContactState(
            name,
            float(found["contact_probability"][i]),
            found["contact_stiffness"][i],
            found["contact_rest"][i],
            found["contact_point_tcp"][i],
            found["contact_point_base"][i],
            found["contact_covariance"][i],
            link=str(found["contact_link"][i]),
            place=log.place(row) if np.isnan(found["contact_rest"][i]).all() else None,
        )
        for i, name in enumerate(log.contact_names)
    )
    return Estimate(
        t=float(found["t"]),
        q=np.zeros(0),
        dq=np.zeros(0),
        tau_ext=found["tau_ext"],
        force_base=found["force_base"],
        force_tcp=found["force"],
        torque_tcp=found["torque_tcp"],
        force_covariance=found["force_covariance"],
        contacts=contacts if found["valid"] else (),
        mode=str(found["mode"]),
        modes=dict(zip(log.mode_names, found["mode_probability"].tolist())),
        valid=bool(found["valid"]),
        reason=str(found["reason"]),
        mismatch=str(found["mismatch"]),
    )


def _truth(recording: Recording) -> dict[str, np.ndarray]:
    """Return what estimates are drawn beside: ``force`` (N, 3) [N] in TCP axes and ``stiffness`` (N,) [N/m]."""
    found = {}
    if "wrench_tcp" in recording.truth:
        found["force"] = recording.truth["wrench_tcp"][:, :3]
    elif recording.wrench_tcp is not None:
        found["force"] = recording.wrench_tcp[:, :3] - recording.wrench_zero[:3]
    if {"wrench_tcp", "stiffness", "rest", "contact_point"} <= recording.truth.keys():
        vector = recording.truth["stiffness"]
        depth = np.einsum("nk,nk->n", vector, recording.truth["rest"] - recording.truth["contact_point"])
        touched = (depth > 0.0) & (np.linalg.norm(found["force"], axis=1) > 0.0)
        found["stiffness"] = np.where(touched, np.linalg.norm(vector, axis=1), np.nan)
    return found


def _true_forces(arm: Arm, recording: Recording, rows: Sequence[int]) -> dict[int, list[Shape]]:
    """Return an arrow of the true or measured force at the TCP or the true contact point."""
    force, points = _truth(recording).get("force"), recording.truth.get("contact_point")
    shapes: dict[int, list[Shape]] = {}
    if force is None:
        return shapes
    for row in rows:
        if not np.linalg.norm(force[row]) > 1.0:
            continue
        position, rotation = arm.tcp_pose(recording.q[row])
        start = position if points is None else points[row]
        tip = start + 0.003 * rotation @ force[row]
        shapes[row] = [arrow("truth/force", arm.base_frame, start, tip, TRUTH_COLOUR, size=TRUTH_SIZE)]
    return shapes


def _scene(arm: Arm, boxes: Sequence[Box]) -> dict[str, Any]:
    links, tcp, camera = chain(arm), tcp_of(arm), camera_of(arm, ready_posture(arm))
    return {
        "meshes": [
            _mesh(mesh) | {"joint": mesh.joint, "colour": _short(np.array(mesh.colour), 3)} for mesh in arm_meshes(arm)
        ],
        "units": {name: _mesh(mesh) for name, mesh in units().items()},
        "links": [_link(link) for link in links],
        "tcp": _link(tcp),
        "boxes": [
            {"pose": _pose(b.rotation, b.position), "size": _short(b.size, 5), "colour": _short(np.array(b.colour), 3)}
            for b in boxes
        ],
        "camera": {**camera._asdict(), "target": _short(camera.target, 4)},
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


def _shape(arm: Arm, shape: Shape) -> list[Any]:
    other = shape.tip if shape.kind == "arrow" else shape.orientation
    numbers = (_short(np.array(values), 4) for values in (shape.position, other, shape.size, shape.colour))
    return [shape.name, shape.kind, int(shape.frame == arm.tcp_frame), *numbers]


def _short(values: np.ndarray, digits: int) -> Any:
    """Round to significant digits; what is not finite becomes None."""
    if values.ndim == 0:
        value = float(values)
        return float(f"{value:.{digits}g}") if np.isfinite(value) else None
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values.tolist()]
