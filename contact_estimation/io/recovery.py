"""Recover an interrupted recording: an MCAP file up to its last complete record, a sqlite3 file as last committed.

A recorder that was killed leaves whole chunks of MCAP, but neither index nor ``metadata.yaml``. Records of MCAP have
their length (https://mcap.dev/spec), so the complete ones are found from the front. An end record is then appended.
Of sqlite3 it leaves the database, and beside it a journal: a log of what is not in the database yet (``-wal``), or of
what to take back (``-journal``). sqlite3 works it in when it opens a copy.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.temporary import has_no_room, temporary_file_error

_SQLITE = b"SQLite format 3\x00"
MAGIC = b"\x89MCAP0\r\n"
#: Opcodes: what belongs to the data (header to metadata, without footer, data end and summary), and its end.
_DATA_OPCODES = frozenset((0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x09, 0x0C))
#: Of these, a message and a chunk of messages.
_MESSAGE_OPCODES = frozenset((0x05, 0x06))
#: Data end without checksum, footer without summary.
_END = b"\x0f" + (4).to_bytes(8, "little") + bytes(4) + b"\x02" + (20).to_bytes(8, "little") + bytes(20) + MAGIC


def cut_off_file(path: Path) -> Path | None:
    """Return the file of a recording that lacks its end or its ``metadata.yaml``, None where ``path`` is none.

    Args:
        path: of a bag, or of a file of one.

    Raises:
        RecordingError: a folder without ``metadata.yaml`` has several files.
    """
    whole_folder = path.is_file() or (path / "metadata.yaml").exists()
    files = [path] if path.is_file() else [part for part in path.glob("*") if part.suffix in (".mcap", ".db3")]
    if len(files) > 1 and not whole_folder:
        names = ", ".join(sorted(part.name for part in files))
        raise RecordingError(
            f"{path}: the folder has no metadata.yaml to say in which order its files follow: {names}; convert each of "
            "them by its own name"
        )
    if len(files) != 1 or not files[0].is_file():
        return None
    (file,) = files
    if _starts(file, MAGIC):
        return None if _ends(file) and whole_folder else file
    return None if not _starts(file, _SQLITE) or (whole_folder and not journals(file)) else file


def journals(file: Path) -> list[Path]:
    """Return the journals beside a sqlite3 file that hold something.

    Args:
        file: the database.
    """
    beside = (file.with_name(file.name + ending) for ending in ("-wal", "-journal"))
    return [journal for journal in beside if journal.is_file() and journal.stat().st_size]


def _starts(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _ends(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-len(MAGIC), 2)
        return file.tell() > 0 and file.read() == MAGIC


@contextmanager
def whole_bag(path: Path) -> Iterator[tuple[Path, str]]:
    """Give a readable path for a recording: itself, or a temporary copy with an end where it was cut off.

    Args:
        path: the recording.

    Yields:
        The path, and what is lost; "": nothing was cut off.

    Raises:
        RecordingError: nothing can be recovered, or the disk of temporary files takes no more.
    """
    file = cut_off_file(path)
    if file is None:
        yield path, ""
        return
    lost = f"{path} was cut off; "
    if file.suffix == ".mcap" and _ends(file):
        yield file, lost + "0 bytes behind its last complete record are lost"
        return
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="contact_estimation_"))
        except OSError as error:
            raise temporary_file_error(error) from error
        copy = Path(folder) / file.name
        yield copy, lost + _recover(file, copy)


def _recover(file: Path, copy: Path) -> str:
    """Copy what a file holds, with an end; return what is lost.

    Raises:
        RecordingError: nothing can be recovered, or the disk of the copy takes no more.
    """
    try:
        if file.suffix == ".mcap":
            return f"{_copy_complete(file, copy)} bytes behind its last complete record are lost"
        _copy_committed(file, copy)
    except (OSError, sqlite3.Error) as error:
        if has_no_room(error):
            raise temporary_file_error(error) from error
        raise
    return "what its recorder had not committed to the database is lost"


def _copy_complete(file: Path, copy: Path) -> int:
    """Copy the complete records of an MCAP file, with an end; return the size of the others [bytes].

    Raises:
        RecordingError: none of them holds messages.
    """
    with file.open("rb") as source, copy.open("wb") as target:
        size = _complete(source)
        if not size:
            raise RecordingError(f"{file} was cut off before the first complete chunk: there is nothing to recover")
        source.seek(0)
        shutil.copyfileobj(source, target)
        target.truncate(size)
        target.seek(size)
        target.write(_END)
    return file.stat().st_size - size


def _copy_committed(file: Path, copy: Path) -> None:
    """Copy a sqlite3 file and work its journal in.

    Raises:
        RecordingError: the database is damaged.
    """
    for part in (file, *journals(file)):
        shutil.copyfile(part, copy.with_name(part.name))
    try:
        with contextlib.closing(sqlite3.connect(copy)) as database:
            database.execute("SELECT count(*) FROM messages").fetchone()
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        if has_no_room(error):
            raise
        raise RecordingError(
            f"{file} cannot be recovered ({error}); 'sqlite3 {file} .recover' finds what is left of a damaged database"
        ) from error


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
