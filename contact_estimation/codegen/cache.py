"""The folder of compiled code: per user, and writable by that user only, because its content is executed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contact_estimation.exceptions import CodegenError

#: Environment variable that moves the cache.
VARIABLE = "CONTACT_ESTIMATION_CACHE"
_DIGEST_SIZE = hashlib.sha256().digest_size


def cache_directory() -> Path:
    """Return the path of the cache.

    Returns:
        ``$CONTACT_ESTIMATION_CACHE``, else ``$XDG_CACHE_HOME/contact_estimation``, else
        ``~/.cache/contact_estimation``.
    """
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "contact_estimation"


def open_cache(path: Path | None = None) -> Path:
    """Make the cache folder if needed and check that only its owner, the caller, can write to it.

    Args:
        path: folder, default :func:`cache_directory`.

    Raises:
        CodegenError: it cannot be made or written, belongs to somebody else, or others can write to it.
    """
    path = Path(path) if path is not None else cache_directory()
    remedy = f"choose another folder with {VARIABLE}=/path/to/folder"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CodegenError(f"the code cache {path} cannot be made ({error.strerror}); {remedy}") from error
    info = path.stat()
    if foreign := {info.st_uid, path.lstat().st_uid} - {os.getuid()}:
        raise CodegenError(
            f"the code cache {path} belongs to user {foreign.pop()}, not to you ({os.getuid()}): code in "
            f"it would be executed as you. Remove it, or {remedy}"
        )
    if stat.S_IMODE(info.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        raise CodegenError(
            f"the code cache {path} is writable by others (mode {stat.S_IMODE(info.st_mode):o}): code "
            f"in it would be executed as you. Run 'chmod 700 {path}', or {remedy}"
        )
    # The mode is asked too: root may write where the mode forbids it, and a folder made read-only is meant to stay so.
    if not (stat.S_IMODE(info.st_mode) & stat.S_IWUSR and os.access(path, os.W_OK | os.X_OK)):
        raise CodegenError(f"the code cache {path} is read-only; run 'chmod u+w {path}', or {remedy}")
    return path


def seal(path: Path) -> None:
    """Append to a file the hash of what is in it; the loader of shared objects does not look behind their end."""
    content = path.read_bytes()
    with path.open("ab") as file:
        file.write(_digest(content))


def is_sealed(path: Path) -> bool:
    """Return whether a file is whole and the caller's own: only such a one is loaded.

    A damaged shared object ends the process when it is mapped (SIGBUS) or run (SIGSEGV), and one of somebody else runs
    as the caller. So: a regular file and no symbolic link, of this user, writable by nobody else, with the hash of its
    content behind it.
    """
    return read_sealed(path) is not None


def read_sealed(path: Path) -> bytes | None:
    """Return what was sealed in a file, None where it is not whole and the caller's own: see :func:`is_sealed`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        content = memoryview(file.read())
    whole = bytes(content[-_DIGEST_SIZE:]) == _digest(content[:-_DIGEST_SIZE])
    return bytes(content[:-_DIGEST_SIZE]) if whole else None


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.sha256(content).digest()


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the lock of one file of the cache, so that threads and processes that need it make it once.

    The lock file goes with its last holder: who waited for one that was removed meanwhile takes the lock anew.

    Args:
        target: file about to be made.
    """
    path = target.with_name(f".{target.name}.lock")
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:  # nobody has removed the file while this one waited
            break
        os.close(lock)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)
