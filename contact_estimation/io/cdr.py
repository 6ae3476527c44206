"""Stamped messages of constant layout decoded in blocks.

All messages of one publisher usually have the same joint names and frame, so that only the stamp and the numbers
differ. A block of them is then one byte matrix and its columns are read with numpy, several times faster than message
by message. Whether that holds is checked for every block; where it does not, the caller decodes one by one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Encapsulation header (4 bytes; alignment counts from behind it), then the stamp: int32 seconds, uint32 nanoseconds.
_BODY = 4
_STAMP_END = _BODY + 8


@dataclass(frozen=True)
class Layout:
    """Layout of a message.

    Attributes:
        size: length of the message [bytes].
        spans: (offset [bytes], count) of every run of float64.
        names: the joints it lists.
        frame_id: of its header.
        gaps: (first, last + 1) [bytes] of padding; its bytes are arbitrary.
    """

    size: int
    spans: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    frame_id: str
    gaps: tuple[tuple[int, int], ...]

    def constant(self) -> NDArray[np.bool_]:
        """Return the bytes (size,) that are the same in every message of this layout: neither stamp nor numbers."""
        constant = np.ones(self.size, bool)
        constant[_BODY:_STAMP_END] = False
        for begin, end in (*((at, at + 8 * count) for at, count in self.spans), *self.gaps):
            constant[begin:end] = False
        return constant


class Cursor:
    """Reads a little-endian message from behind its stamp; ``at`` is the offset of what comes next.

    Args:
        raw: serialised message.
    """

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, _STAMP_END
        self.gaps: list[tuple[int, int]] = []

    def align(self, size: int) -> None:
        """Skip padding up to a multiple of ``size``, counted from behind the encapsulation."""
        begin = self.at
        self.at += -(self.at - _BODY) % size
        if self.at > begin:
            self.gaps.append((begin, self.at))

    def uint32(self) -> int:
        """Read a number."""
        self.align(4)
        self.at += 4
        return int(struct.unpack_from("<I", self.raw, self.at - 4)[0])

    def string(self) -> str:
        """Read a word."""
        length = self.uint32()
        self.at += length
        return self.raw[self.at - length : self.at - 1].decode()

    def doubles(self, count: int) -> tuple[int, int]:
        """Skip ``count`` numbers; return offset and count."""
        if count:
            self.align(8)
        self.at += 8 * count
        return self.at - 8 * count, count


def layout_of(raw: bytes, numbers: int | None) -> Layout | None:
    """Find the layout of a little-endian stamped message.

    Args:
        raw: the serialised message.
        numbers: count of float64 behind the header; None for a JointState (names and three sequences).

    Returns:
        The layout, or None where the message is something else.
    """
    if len(raw) < _STAMP_END + 4 or raw[:2] != b"\x00\x01":
        return None
    cursor = Cursor(raw)
    try:
        frame_id = cursor.string()
        names: tuple[str, ...] = ()
        spans: tuple[tuple[int, int], ...]
        if numbers is None:
            names = tuple(cursor.string() for _ in range(cursor.uint32()))
            spans = tuple(cursor.doubles(cursor.uint32()) for _ in range(3))
        else:
            spans = (cursor.doubles(numbers),)
    except (struct.error, UnicodeDecodeError):
        return None
    return Layout(len(raw), spans, names, frame_id, tuple(cursor.gaps)) if cursor.at == len(raw) else None


def decode_block(block: list[bytes], layout: Layout) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Decode the messages of a block together.

    Args:
        block: m serialised messages.
        layout: of the first of them.

    Returns:
        Stamps (m,) [ns] and one array (m, count) per span; None where a message of the block has another layout.
    """
    if any(len(raw) != layout.size for raw in block):
        return None
    rows = np.frombuffer(b"".join(block), np.uint8).reshape(len(block), layout.size)
    constant = layout.constant()
    if (rows[:, constant] != rows[0, constant]).any():
        return None
    seconds = rows[:, _BODY : _BODY + 4].copy().view("<i4")[:, 0].astype(np.int64)
    nanoseconds = rows[:, _BODY + 4 : _STAMP_END].copy().view("<u4")[:, 0]
    values = [rows[:, at : at + 8 * count].copy().view("<f8").reshape(len(block), count) for at, count in layout.spans]
    return seconds * 1_000_000_000 + nanoseconds, values
