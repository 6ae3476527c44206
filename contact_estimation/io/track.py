"""One topic of a bag, gathered message by message into arrays: block by block where layouts repeat, else one by one."""

from __future__ import annotations

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.cdr import decode_block, layout_of
from contact_estimation.io.recording import joint_columns
from contact_estimation.io.topics import JOINT_STATE, POINT, VECTOR, WRENCH

_BLOCK = 2048
_FIELDS = ("position", "velocity", "effort")

#: The numbers of a decoded message; their count is what ``cdr.layout_of`` is told.
_NUMBERS = {
    WRENCH: (6, lambda m: (m.wrench.force.x, m.wrench.force.y, m.wrench.force.z,
                           m.wrench.torque.x, m.wrench.torque.y, m.wrench.torque.z)),
    VECTOR: (3, lambda m: (m.vector.x, m.vector.y, m.vector.z)),
    POINT: (3, lambda m: (m.point.x, m.point.y, m.point.z)),
}


class Track:
    """Collects one topic. ``add`` takes serialised messages; ``finish`` gives the arrays.

    A JointState track keeps the ``fields`` asked for, with columns in the order of ``joint_names`` (those of the first
    message when None). A message that lists none of these joints belongs to another publisher of the topic and is
    left out; one that lists some of them is an error.
    """

    def __init__(self, typestore, topic: str, msgtype: str, source: str, joint_names=None, fields=_FIELDS):
        self.topic, self.joint_names = topic, joint_names and tuple(joint_names)
        self.frame_id = ""
        self._typestore, self._msgtype, self._where = typestore, msgtype, f"{source}, topic {topic}"
        self._joints = msgtype == JOINT_STATE
        self._fields = fields
        self._number, self._numbers = (None, None) if self._joints else _NUMBERS[msgtype]
        self._pending: list[bytes] = []
        self._stamps: list[np.ndarray] = []
        self._values: list[np.ndarray] = []
        self._strangers: dict[str, None] = {}

    def add(self, raw: bytes) -> None:
        """Take one serialised message."""
        self._pending.append(raw)
        if len(self._pending) >= _BLOCK:
            self._decode()

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """Stamps (m,) [ns] and values (m, columns); JointState fields stand side by side.

        Raises:
            RecordingError: no message came, or none lists the joints.
        """
        self._decode()
        if not self._stamps:
            if self._strangers:
                joint_columns(self._strangers, self.joint_names, self._where)
            raise RecordingError(f"{self._where}: holds no message; record it while the arm runs.")
        return np.concatenate(self._stamps), np.concatenate(self._values)

    def _decode(self) -> None:
        block, self._pending = self._pending, []
        if not block:
            return
        layout = layout_of(block[0], self._number)
        decoded = layout and decode_block(block, layout)
        if decoded and (not self._joints or self._is_ours(layout.names)):
            stamps, values = decoded
            self._note_frame(layout.frame_id)
            if self._joints:
                values = [self._column(dict(zip(_FIELDS, values)), layout.names)]
            self._stamps.append(stamps)
            self._values.append(values[0])
        else:
            self._one_by_one(block)

    def _one_by_one(self, block: list[bytes]) -> None:
        stamps, rows = [], []
        for raw in block:
            message = self._typestore.deserialize_cdr(raw, self._msgtype)
            if self._joints and not self._is_ours(message.name):
                self._strangers.update(dict.fromkeys(message.name))
                continue
            self._note_frame(message.header.frame_id)
            stamps.append(message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec)
            if self._joints:
                fields = {name: np.reshape(getattr(message, name), (1, -1)) for name in self._fields}
                rows.append(self._column(fields, message.name)[0])
            else:
                rows.append(self._numbers(message))
        if stamps:
            self._stamps.append(np.array(stamps, np.int64))
            self._values.append(np.array(rows, float))

    def _is_ours(self, names) -> bool:
        if self.joint_names is None and len(names):
            self.joint_names = tuple(names)
        return not set(self.joint_names or ()).isdisjoint(names)

    def _column(self, fields, names) -> np.ndarray:
        columns = joint_columns(names, self.joint_names, self._where)
        parts = []
        for name in self._fields:
            if fields[name].shape[1] != len(names):
                raise RecordingError(f"{self._where}: {name} has {fields[name].shape[1]} entries for {len(names)} "
                                     "joint names; every joint needs position [rad], velocity [rad/s] and effort [Nm].")
            parts.append(fields[name][:, columns])
        return np.concatenate(parts, axis=1)

    def _note_frame(self, frame_id: str) -> None:
        if self._stamps and frame_id != self.frame_id:
            raise RecordingError(f"{self._where}: frame_id changes from '{self.frame_id}' to '{frame_id}' within the "
                                 "recording")
        self.frame_id = frame_id
