"""Numbers of serialised messages, read and written where they stand: no message is built for a sample.

Messages of one publisher differ in stamp and numbers only. A :class:`JointStateReader` decodes the first message in the
ordinary way; as long as the others have its layout, it reads their numbers in place. A :class:`SerializedMessage` is
serialised once, with numbers that occur nowhere else: where these bytes are found, later numbers are written. CDR
counts alignment from its fourth byte, so that a float64 stands at 4 modulo 8. It does not write the bytes it skips:
what stood in memory remains there, also numbers of earlier messages. Hence no two messages are marked by the same ones.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.cdr import Layout, layout_of
from contact_estimation.io.recording import joint_columns

T = TypeVar("T")
#: Bits of the first of the numbers that mark a layout, near 1e300, of each message; its others count on from it.
_FIRST_MARKS = itertools.count(0x7E37_E43C_8800_0000, 1 << 16)
#: CDR's own four bytes; the second tells the byte order.
_BODY = 4


class SerializedMessage:
    """A message with a header first, ready to be published with other numbers.

    Args:
        make: numbers (k,) to the message. It may use a number once, often or not at all, but it must not compute.
        size: k, below 65536.
    """

    def __init__(self, make: Callable[[np.ndarray], Any], size: int) -> None:
        first = next(_FIRST_MARKS)
        marks = np.arange(first, first + size, dtype=np.uint64)
        self._buffer = _serialized(make(marks.view(float)))
        order = "<" if self._buffer[1] == 1 else ">"
        self._stamp = struct.Struct(f"{order}iI")
        count = (len(self._buffer) - _BODY) // 8
        self._floats = np.frombuffer(self._buffer, f"{order}f8", count, _BODY)
        bits = np.frombuffer(self._buffer, f"{order}u8", count, _BODY)
        self._to = np.flatnonzero((bits >= first) & (bits < first + size))
        self._from = (bits[self._to] - np.uint64(first)).astype(np.intp)

    def with_numbers(self, stamp_ns: int, numbers: np.ndarray) -> bytes:
        """Return the message with the stamp ``stamp_ns`` [ns] and ``numbers`` (k,), serialised."""
        self._stamp.pack_into(self._buffer, _BODY, *divmod(stamp_ns, 1_000_000_000))
        self._floats[self._to] = numbers[self._from]
        return bytes(self._buffer)


def _serialized(message: Any) -> bytearray:
    """Serialise a message without the bytes that ROS appends where a sequence is empty: readers of bags refuse them."""
    buffer = bytearray(serialize_message(message))
    while _is_whole(buffer[:-1], type(message)):
        del buffer[-1]
    return buffer


def _is_whole(buffer: bytearray, kind: type) -> bool:
    """Whether a message of ``kind`` can be read from ``buffer``."""
    try:
        deserialize_message(bytes(buffer), kind)
    except Exception:  # rmw's error, whose class is not public
        return False
    return True


class JointRows(NamedTuple):
    """Position [rad], velocity [rad/s] and effort, each (n,), in the robot's order."""

    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class OtherJoints(RecordingError):
    """A message has none of the robot's joints: a gripper may publish on the same topic."""


def decode(raw: bytes, cls: type[T], topic: str) -> T:
    """Return a serialised message as an object of ``cls``.

    Raises:
        RecordingError: it is none. ROS hands over what it received, also from a sender with other definitions.
    """
    try:
        return cast("T", deserialize_message(raw, cls))
    except Exception as error:  # the middleware's own class
        raise RecordingError(
            f"topic {topic}: {len(raw)} bytes are no {cls.__name__}; install the same version of the messages where "
            "they are sent and where they are received, and build them there"
        ) from error


def stamp_ns(raw: bytes) -> int:
    """Return the stamp [ns] of a serialised message whose header comes first; 0 where it is too short for one."""
    if len(raw) < _BODY + 8:
        return 0
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
        rows = self._rows(decode(raw, JointState, self._topic))
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
