"""Write a result file completely or not at all: beside its place, then in one step into it.

A disk that fills up, an error or a kill while a result is written leaves the earlier file of that name as it was. Only
a kill leaves the unfinished file, ``.contact_estimation_*.part``, beside it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_write(path: Path | str) -> Iterator[BinaryIO]:
    """Open a file for writing, making its folder; it gets its name when the block ends without an error.

    A link is followed to its file. A file that is replaced keeps its mode, and its owner where that is allowed; a new
    one gets what the umask leaves. A device, a pipe and an open stream, such as ``/dev/stdout``, are written directly.

    Args:
        path: the file.

    Yields:
        The file, open for writing bytes.

    Raises:
        OSError: it cannot be written, with its name; an earlier file of this name is as before.
    """
    try:
        before = _status(Path(path))
        target = _target(Path(path))
        if target is None or (before is not None and not stat.S_ISREG(before.st_mode)):
            with open(path, "wb") as file:
                yield file
            return
        if before is None:
            target.parent.mkdir(parents=True, exist_ok=True)
        else:
            os.close(os.open(target, os.O_WRONLY))  # a write-protected file is refused, as it would be in place
        with _replacing(target, before) as file:
            yield file
    except OSError as error:
        if error.filename is None:  # of a write, which knows no name
            error.filename = str(path)
        raise


def atomic_write_text(path: Path | str, text: str) -> None:
    """Write a text in UTF-8 as :func:`atomic_write` does.

    Args:
        path: the file.
        text: its content.

    Raises:
        OSError: it cannot be written, with its name; an earlier file of this name is as before.
    """
    with atomic_write(path) as file:
        file.write(text.encode())


def _status(path: Path) -> os.stat_result | None:
    """Return what the system knows of a file, None where there is none."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _target(path: Path) -> Path | None:
    """Follow the links of a path; None: they lead to an open stream, which a file in its place would not reach."""
    while path.is_symlink():
        if path.parent.resolve().is_relative_to("/proc"):
            return None
        path = path.parent / path.readlink()
    return path


@contextlib.contextmanager
def _replacing(target: Path, before: os.stat_result | None) -> Iterator[BinaryIO]:
    """Open a file beside ``target`` that takes its place, and the mode and owner of the one ``before``."""
    part = str(target.with_name(f".contact_estimation_{uuid.uuid4().hex}.part"))
    try:
        with open(part, "xb") as file:
            if before is not None:
                for owner, group in ((before.st_uid, -1), (-1, before.st_gid)):
                    with contextlib.suppress(PermissionError):
                        os.fchown(file.fileno(), owner, group)
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        if isinstance(error, OSError) and error.filename == part:
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise
