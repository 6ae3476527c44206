"""Messages that are serialised once: stamp and numbers are then written in place, and the bytes are published.

The layout comes from the message itself: it is serialised with numbers that occur nowhere else, and where these bytes
are found, the numbers stand. CDR counts alignment from its fourth byte, so that a float64 stands at 4 modulo 8.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

#: Bits of the first of the numbers that mark a layout, near 1e300; the others count on from it.
_FIRST_MARK = 0x7E37_E43C_8800_0000
#: CDR's own four bytes; the second tells the byte order.
_BODY = 4


class SerializedMessage:
    """A message with a header first, ready to be published with other numbers.

    Args:
        make: numbers (k,) to the message. It may use a number once, often or not at all, but it must not compute.
        size: k.
    """

    def __init__(self, make: Callable[[np.ndarray], Any], size: int) -> None:
        marks = np.arange(_FIRST_MARK, _FIRST_MARK + size, dtype=np.uint64)
        self._buffer = _serialized(make(marks.view(float)))
        order = "<" if self._buffer[1] == 1 else ">"
        self._stamp = struct.Struct(f"{order}iI")
        count = (len(self._buffer) - _BODY) // 8
        self._floats = np.frombuffer(self._buffer, f"{order}f8", count, _BODY)
        bits = np.frombuffer(self._buffer, f"{order}u8", count, _BODY)
        self._to = np.flatnonzero((bits >= _FIRST_MARK) & (bits < _FIRST_MARK + size))
        self._from = (bits[self._to] - np.uint64(_FIRST_MARK)).astype(np.intp)

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
