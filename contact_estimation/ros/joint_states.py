"""JointState messages, read from their bytes: the robot's joints, whatever their order and whoever else is in them.

Messages of one publisher differ in stamp and numbers only. The first one is decoded in the ordinary way; as long as
the others have its layout, their numbers are read where they stand.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.cdr import Layout, layout_of
from contact_estimation.io.recording import joint_columns


class JointRows(NamedTuple):
    """Position [rad], velocity [rad/s] and effort, each (n,), in the robot's order."""

    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class OtherJoints(RecordingError):
    """A message has none of the robot's joints: a gripper may publish on the same topic."""


def stamp_ns(raw: bytes) -> int:
    """Return the stamp [ns] of a serialised message whose header comes first."""
    seconds, nanoseconds = struct.unpack_from("<iI" if raw[1] == 1 else ">iI", raw, 4)
    return int(seconds * 1_000_000_000 + nanoseconds)


class JointStateReader:
    """Takes one robot's joints out of serialised JointState messages.

    Args:
        joint_names: of the robot, in its order.
        topic: for error messages.
        prefix: a driver of several arms may put it in front of the names; they are taken with and without it.
    """

    def __init__(self, joint_names: Sequence[str], topic: str, prefix: str = "") -> None:
        self._plain, self._prefixed = list(joint_names), [prefix + name for name in joint_names]
        self._topic = topic
        self._names: list[str] = []
        self._columns: list[int] = []
        self._layout: Layout | None = None
        self._constant = self._expected = 0
        self._in_order = False

    def read(self, raw: bytes) -> JointRows:
        """Return the joints of a message.

        Raises:
            OtherJoints: none of them is the robot's.
            RecordingError: a joint is missing or doubled (the nearest name is given), or an array has not one entry
                per joint.
        """
        layout = self._layout
        if layout is None or len(raw) != layout.size:
            return self._read_new(raw)
        if int.from_bytes(raw, "little") & self._constant != self._expected:
            return self._read_new(raw)
        rows = [np.frombuffer(raw, "<f8", count, at) for at, count in layout.spans]
        return JointRows(*(rows if self._in_order else [row[self._columns] for row in rows]))

    def _read_new(self, raw: bytes) -> JointRows:
        """Decode a message in the ordinary way, and keep its layout for those that follow."""
        rows = self._rows(deserialize_message(raw, JointState))
        self._layout = layout = layout_of(raw, None)
        if layout is not None:
            mask = np.where(layout.constant(), 0xFF, 0).astype(np.uint8)
            self._constant = int.from_bytes(mask.tobytes(), "little")
            self._expected = int.from_bytes(raw, "little") & self._constant
            self._in_order = self._columns == list(range(len(self._names)))
        return rows

    def _rows(self, message: JointState) -> JointRows:
        if message.name != self._names:
            wanted = self._plain if set(self._prefixed).isdisjoint(message.name) else self._prefixed
            if set(wanted).isdisjoint(message.name):
                names = ", ".join(message.name)
                raise OtherJoints(
                    f"topic {self._topic}: none of its joints {names} is one of the robot's {', '.join(self._plain)}; "
                    "remap the topic, or correct tf_prefix."
                )
            self._columns = joint_columns(message.name, wanted, f"topic {self._topic}")
            self._names = list(message.name)
        count = len(self._names)
        rows: list[np.ndarray] = []
        for field in JointRows._fields:
            data = getattr(message, field)
            if len(data) != count:
                raise RecordingError(
                    f"topic {self._topic}: {field} has {len(data)} entries for {count} joint names; every "
                    "joint needs position [rad], velocity [rad/s] and effort [Nm]. Mend the driver."
                )
            rows.append(np.array(data)[self._columns])
        return JointRows(*rows)
