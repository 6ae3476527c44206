"""One topic of a bag, gathered message by message on disk: decoded in blocks where layouts repeat, else one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from rosbags.typesys.store import Typestore

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.cdr import Layout, decode_block, layout_of
from contact_estimation.io.recording import joint_columns, joint_prefixes
from contact_estimation.io.stamped_rows import StampedRows
from contact_estimation.io.topics import JOINT_STATE, POINT, VECTOR, WRENCH

_BLOCK = 2048
_FIELDS = ("position", "velocity", "effort")

#: Message type -> how many numbers it has (what ``cdr.layout_of`` is told), and the vectors that hold them.
_NUMBERS: dict[str, tuple[int, Callable[[Any], tuple[Any, ...]]]] = {
    WRENCH: (6, lambda message: (message.wrench.force, message.wrench.torque)),
    VECTOR: (3, lambda message: (message.vector,)),
    POINT: (3, lambda message: (message.point,)),
}


class TopicBuffer:
    """Collect one topic: ``add`` takes serialised messages, ``finish`` gives the rows.

    A buffer of JointState messages keeps the ``fields`` asked for. A message that lists none of the joints belongs to
    another publisher of the topic and is left out; one that lists some of them is an error, as are those of two arms
    behind different prefixes.

    Args:
        typestore: of rosbags; decodes what has no constant layout.
        topic: its name.
        msgtype: its message type, one of :mod:`~contact_estimation.io.topics`.
        source: the bag, for errors.
        joint_names: order of the columns of JointState fields; None takes that of the first message.
        fields: which of position, velocity and effort to keep.

    Attributes:
        frame_id: of the messages so far.
    """

    def __init__(
        self,
        typestore: Typestore,
        topic: str,
        msgtype: str,
        source: str,
        joint_names: Iterable[str] | None = None,
        fields: Sequence[str] = _FIELDS,
    ) -> None:
        self.topic, self.joint_names = topic, tuple(joint_names or ())
        self.frame_id = ""
        self._typestore, self._msgtype, self._where = typestore, msgtype, f"{source}, topic {topic}"
        self._joints, self._fields = msgtype == JOINT_STATE, fields
        self._count = None if self._joints else _NUMBERS[msgtype][0]
        self._pending: list[bytes] = []
        self._rows: StampedRows | None = None
        self._strangers: dict[str, None] = {}
        self._prefix: str | None = None  # in front of the joints in all messages
        self._left_out = 0

    def add(self, raw: bytes) -> None:
        """Take a message.

        Args:
            raw: the message, serialised.
        """
        self._pending.append(raw)
        if len(self._pending) >= _BLOCK:
            self._decode()

    def finish(self) -> StampedRows:
        """Give what was collected; fields of a JointState stand side by side.

        Raises:
            RecordingError: no message came, or none lists the joints.
        """
        self._decode()
        if self._rows is None:
            if self._strangers:
                joint_columns(self._strangers, self.joint_names, self._where)
            raise RecordingError(f"{self._where}: holds no message; record it while the arm runs.")
        return self._rows

    @property
    def prefix(self) -> str:
        """What stands in front of the joints' names in all messages so far; "" where nothing does."""
        return self._prefix or ""

    @property
    def left_out(self) -> str:
        """Say how many messages list none of the joints, and which they list; "" where there are none."""
        if not self._left_out:
            return ""
        return f"{self._where}: {self._left_out} messages of other joints are left out: {', '.join(self._strangers)}"

    def _keep(self, stamps: np.ndarray, values: np.ndarray) -> None:
        if self._rows is None:
            self._rows = StampedRows(values.shape[1])
        self._rows.append(stamps, values)

    def _decode(self) -> None:
        block, self._pending = self._pending, []
        if not block:
            return
        layout = layout_of(block[0], self._count)
        if layout is None or not self._decode_together(block, layout):
            self._decode_one_by_one(block)

    def _decode_together(self, block: list[bytes], layout: Layout) -> bool:
        decoded = decode_block(block, layout)
        if decoded is None or (self._joints and not self._is_ours(layout.names)):
            return False
        stamps, values = decoded
        self._note_frame(layout.frame_id)
        self._keep(stamps, self._column(dict(zip(_FIELDS, values)), layout.names) if self._joints else values[0])
        return True

    def _decode_one_by_one(self, block: list[bytes]) -> None:
        stamps: list[int] = []
        rows: list[Any] = []
        for raw in block:
            message: Any = self._typestore.deserialize_cdr(raw, self._msgtype)
            if self._joints and not self._is_ours(message.name):
                self._strangers.update(dict.fromkeys(message.name))
                self._left_out += 1
                continue
            self._note_frame(message.header.frame_id)
            stamps.append(message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec)
            if self._joints:
                fields = {name: np.reshape(getattr(message, name), (1, -1)) for name in self._fields}
                rows.append(self._column(fields, message.name)[0])
            else:
                rows.append([n for v in _NUMBERS[self._msgtype][1](message) for n in (v.x, v.y, v.z)])
        if stamps:
            self._keep(np.array(stamps, np.int64), np.array(rows, float))

    def _is_ours(self, names: Sequence[str]) -> bool:
        self.joint_names = self.joint_names or tuple(names)
        prefixes = joint_prefixes(names, self.joint_names)
        if len(prefixes) == 1:
            self._prefix = prefixes[0] if self._prefix is None else self._prefix
            if prefixes[0] != self._prefix:
                raise RecordingError(
                    f"{self._where}: the joints of several arms are there, behind '{self._prefix}' and "
                    f"'{prefixes[0]}'; record one arm, or each on a topic of its own"
                )
        return bool(prefixes)

    def _column(self, fields: dict[str, np.ndarray], names: Sequence[str]) -> np.ndarray:
        columns = joint_columns(names, self.joint_names, self._where)
        parts = []
        for name in self._fields:
            if fields[name].shape[1] != len(names):
                raise RecordingError(
                    f"{self._where}: {name} has {fields[name].shape[1]} entries for {len(names)} "
                    "joint names; every joint needs position [rad], velocity [rad/s] and effort [Nm]."
                )
            parts.append(fields[name][:, columns])
        return np.concatenate(parts, axis=1)

    def _note_frame(self, frame_id: str) -> None:
        if self._rows is not None and frame_id != self.frame_id:
            raise RecordingError(
                f"{self._where}: frame_id changes from '{self.frame_id}' to '{frame_id}' within the recording"
            )
        self.frame_id = frame_id
