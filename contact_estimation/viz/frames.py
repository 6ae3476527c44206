"""Frames of the 3-D page: what it shows of one estimate, and which estimates of a recording it shows.

A frame has numbers for the plots and the text. Some have joint positions and shapes for the 3-D view as well; the view
shows the last of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from contact_estimation.filters.observer import CLOSED, ContactState, Estimate
from contact_estimation.io.elapsed import ForwardTime
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm
from contact_estimation.viz.markers import REGION_POINTS, Shape, arrow, estimate_shapes
from contact_estimation.viz.thinning import Thinning, frame_period

#: Of true forces: thinner than the estimates.
TRUTH_COLOUR, TRUTH_SIZE = (0.15, 0.15, 0.15, 1.0), (0.004, 0.012, 0.03)
#: A block of a recording and a row of it -> further shapes, such as a push that the simulation knows.
TrueShapes: TypeAlias = Callable[[Recording, int], list[Shape]]


class RecordedFrames:
    """Frames of one observer on a recording, thinned to what a screen can show; see :class:`Thinning`.

    Args:
        arm: the robot.
        begin: stamp of the first sample [s].
        duration: of the recording [s].
        true_shapes: default: the true or measured force at the TCP or the true contact point.

    Attributes:
        duration: of the recording [s].
        period: frames are thinned to their extremes in this time [s].
        samples: how many samples came.
        frames: of :func:`estimate_frame`, some without the 3-D view's part.
        modes: names.
        truth: whether the recording has one, or a measured force.
        left_out: mode changes that are not in ``frames``.
    """

    def __init__(self, arm: Arm, begin: float, duration: float, true_shapes: TrueShapes | None = None) -> None:
        self.duration, self.period, self.samples, self.truth = duration, frame_period(duration), 0, False
        self.frames: list[dict[str, Any]] = []
        self.modes: tuple[str, ...] = ()
        self._arm, self._begin = arm, begin
        self._true_shapes = true_shapes or self._true_force
        self._thinning, self._time = Thinning(begin, self.period), ForwardTime()
        self._true: dict[str, np.ndarray] = {}  # of the last block

    @property
    def spacing(self) -> float:
        """Usual time between frames [s]: the period, or that of a recording with fewer samples."""
        return max(self.period, self.duration / max(self.samples - 1, 1))

    @property
    def left_out(self) -> int:
        """See the class."""
        return self._thinning.left_out

    def add(self, block: Recording, log: EstimateLog) -> None:
        """Take the next samples of the recording and the estimates after them, one per sample."""
        columns, truth, stamps = log.columns(), _truth(block), self._time.stamps(block.t)
        self.samples += len(block)
        self.modes, self.truth, self._true = log.mode_names, bool(truth), truth
        curves = [columns["force"], columns.get("stiffness", np.empty((len(block), 0))), *truth.values()]
        kinds = np.where(columns["valid"], columns["mode"], "invalid") + np.where(columns["mismatch"] != "", " ?", "")
        size = np.linalg.norm(columns["force"], axis=1)
        chosen = self._thinning.choose(stamps, np.column_stack(curves), size, kinds)
        for row, drawn in zip(chosen.rows.tolist(), chosen.drawn.tolist()):
            estimate, t = estimate_at(log, columns, row), float(stamps[row] - self._begin)
            frame = estimate_numbers(estimate, t)
            if truth:
                frame["truth"] = {key: short(values[row], 4) for key, values in truth.items()}
            if drawn:
                shapes = self._true_shapes(block, row)
                frame["q"] = short(block.q[row], 5)
                frame["shapes"] = _shapes(self._arm, estimate) + [_shape(self._arm, shape) for shape in shapes]
            self.frames.append(frame)

    def _true_force(self, block: Recording, row: int) -> list[Shape]:
        force, points = self._true.get("force"), block.truth.get("contact_point")
        if force is None or not np.linalg.norm(force[row]) > 1.0:
            return []
        position, rotation = self._arm.tcp_pose(block.q[row])
        start = position if points is None else points[row]
        tip = start + 0.003 * rotation @ force[row]
        return [arrow("truth/force", self._arm.base_frame, start, tip, TRUTH_COLOUR, size=TRUTH_SIZE)]


def recorded_frames(
    arm: Arm, recording: Recording, logs: Mapping[str, EstimateLog], true_shapes: TrueShapes | None = None
) -> dict[str, RecordedFrames]:
    """Make the frames of every observer of a recording in memory.

    Args:
        arm: the robot.
        recording: what was replayed.
        logs: observer -> its estimates, one per sample.
        true_shapes: of :class:`RecordedFrames`.
    """
    found = {name: RecordedFrames(arm, float(recording.t[0]), recording.duration, true_shapes) for name in logs}
    for name, frames in found.items():
        frames.add(recording, logs[name])
    return found


def estimate_frame(arm: Arm, estimate: Estimate, t: float) -> dict[str, Any]:
    """Write one estimate as the page takes it.

    Args:
        arm: the robot.
        estimate: an invalid one carries its reason and nothing to draw.
        t: time to show [s].
    """
    return estimate_numbers(estimate, t) | {"q": short(estimate.q, 5), "shapes": _shapes(arm, estimate)}


def estimate_numbers(estimate: Estimate, t: float) -> dict[str, Any]:
    """Write what plots and text show of an estimate at ``t`` [s]; the parts of a frame without the 3-D view's."""
    valid = bool(estimate.valid)
    # The stiffness of a contact that is open is what the settings expect.
    open_ = any(contact.probability < CLOSED for contact in estimate.contacts[:1])
    touched = next((contact for contact in estimate.contacts if contact.link and contact.closed), None)
    place = touched.place if touched else None
    return {
        "t": round(t, 4),
        "valid": valid,
        "reason": estimate.reason,
        "mode": estimate.mode,
        "mismatch": estimate.mismatch,
        "link": touched.link if touched else "",
        "link_force": short(place.force, 4) if place else None,
        "force": short(estimate.force_tcp, 4) if valid else None,
        "stiffness": short(np.array(estimate.stiffness), 4) if valid and not open_ else None,
        "probabilities": short(np.array([*estimate.modes.values()]), 3) if valid else None,
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
            law_parameters=log.law_parameters(row, name),
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


def _shapes(arm: Arm, estimate: Estimate) -> list[list[Any]]:
    return [_shape(arm, shape) for shape in estimate_shapes(estimate, arm.tcp_frame, arm.base_frame) if shape.visible]


def _shape(arm: Arm, shape: Shape) -> list[Any]:
    """Write a shape as ``scene.js`` takes it: name, kind, whether in the TCP frame, then its numbers."""
    place, other = shape.position, shape.tip if shape.kind == "arrow" else shape.orientation
    if shape.kind == "points":
        rest = [[short(np.array(point), 4) for point in shape.points[:REGION_POINTS]], None]
    else:
        rest = [short(np.array(values), 4) for values in (place, other)]
    rest += [short(np.array(values), 4) for values in (shape.size, shape.colour)]
    return [shape.name, shape.kind, int(shape.frame == arm.tcp_frame), *rest]


def short(values: np.ndarray, digits: int) -> Any:
    """Round to significant digits; what is not finite becomes None."""
    if values.ndim == 0:
        value = float(values)
        return float(f"{value:.{digits}g}") if np.isfinite(value) else None
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values.tolist()]
