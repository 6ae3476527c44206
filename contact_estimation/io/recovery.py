"""Recover an interrupted recording: an MCAP file up to its last complete record.

A recorder that was killed leaves whole chunks, but neither index nor ``metadata.yaml``. Records of MCAP have their
length (https://mcap.dev/spec), so the complete ones are found from the front. An end record is then appended.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from contact_estimation.exceptions import RecordingError

MAGIC = b"\x89MCAP0\r\n"
#: Opcodes: what belongs to the data (header to metadata, without footer, data end and summary), and its end.
_DATA_OPCODES = frozenset((0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x09, 0x0C))
#: Of these, a message and a chunk of messages.
_MESSAGE_OPCODES = frozenset((0x05, 0x06))
#: Data end without checksum, footer without summary.
_END = b"\x0f" + (4).to_bytes(8, "little") + bytes(4) + b"\x02" + (20).to_bytes(8, "little") + bytes(20) + MAGIC


def cut_off_file(path: Path) -> Path | None:
    """Return the .mcap file of a recording that lacks its end or its ``metadata.yaml``, None where ``path`` is none."""
    files = list(path.glob("*.mcap")) if path.is_dir() else [path]
    if len(files) != 1 or not files[0].is_file() or not _starts(files[0]):
        return None
    whole = _ends(files[0]) and (path.is_file() or (path / "metadata.yaml").exists())
    return None if whole else files[0]


def _starts(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _ends(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-len(MAGIC), 2)
        return file.tell() > 0 and file.read() == MAGIC


@contextmanager
def whole_bag(path: Path) -> Iterator[tuple[Path, int]]:
    """Give a readable path for a recording: itself, or a temporary copy with an end where it was cut off.

    Args:
        path: the recording.

    Yields:
        The path, and the size of what is lost behind the last complete record [bytes]; -1: nothing was cut off.

    Raises:
        RecordingError: nothing can be recovered.
    """
    file = cut_off_file(path)
    if file is None:
        yield path, -1
        return
    if _ends(file):
        yield file, 0
        return
    with tempfile.TemporaryDirectory(prefix="contact_estimation_") as folder:
        copy = Path(folder) / file.name
        with file.open("rb") as source, copy.open("wb") as target:
            size = _complete(source)
            if not size:
                raise RecordingError(f"{path} was cut off before the first complete chunk: there is nothing to recover")
            source.seek(0)
            shutil.copyfileobj(source, target)
            target.truncate(size)
            target.seek(size)
            target.write(_END)
        yield copy, file.stat().st_size - size


def _complete(file: BinaryIO) -> int:
    """Length of the magic and the complete data records at the front [bytes]; 0: none of them holds messages."""
    total = file.seek(0, 2)
    position, messages = len(MAGIC), False
    while position + 9 <= total:
        file.seek(position)
        head = file.read(9)
        end = position + 9 + int.from_bytes(head[1:], "little")
        if head[0] not in _DATA_OPCODES or end > total:
            break
        position, messages = end, messages or head[0] in _MESSAGE_OPCODES
    return position if messages else 0
