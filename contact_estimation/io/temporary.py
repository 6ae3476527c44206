"""Temporary files of recordings: what to say where their disk takes no more."""

from __future__ import annotations

import errno
import sqlite3
import tempfile

from contact_estimation.exceptions import RecordingError

#: What a file system answers to a write that it has no room for; reading never gives these.
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
#: The same of sqlite3 (https://sqlite.org/rescode.html): SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_SHMSIZE.
_SQLITE_NO_ROOM = frozenset((13, 778, 4874))


def has_no_room(error: BaseException) -> bool:
    """Return whether an error says that a disk takes no more.

    Args:
        error: of the operating system, of sqlite3, or any other, which does not.
    """
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) in _SQLITE_NO_ROOM
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def temporary_file_error(error: BaseException) -> RecordingError:
    """Make the error for a temporary file that cannot be made, written or read.

    Args:
        error: what happened.
    """
    try:
        where = f" in {tempfile.gettempdir()}"
    except OSError:  # there is no folder; the reason lists those that were tried
        where = ""
    reason = getattr(error, "strerror", None) or error
    return RecordingError(
        f"a temporary file cannot be written{where} ({reason}); make room there, or set TMPDIR to a folder on a disk "
        "with more room"
    )
