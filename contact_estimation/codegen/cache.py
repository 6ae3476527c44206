"""The folder of compiled code: per user, writable by nobody else, because its content is executed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from contact_estimation.exceptions import CodegenError

#: Environment variable that moves the cache.
VARIABLE = "CONTACT_ESTIMATION_CACHE"


def cache_directory() -> Path:
    """Path of the cache: ``$CONTACT_ESTIMATION_CACHE``, else ``$XDG_CACHE_HOME/contact_estimation``, else
    ``~/.cache/contact_estimation``."""
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "contact_estimation"


def open_cache(path: Path | None = None) -> Path:
    """Make the cache folder if needed and check that only its owner, the caller, can write to it.

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
    if info.st_uid != os.getuid():
        raise CodegenError(f"the code cache {path} belongs to user {info.st_uid}, not to you ({os.getuid()}): code in "
                           f"it would be executed as you. Remove it, or {remedy}")
    if stat.S_IMODE(info.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        raise CodegenError(f"the code cache {path} is writable by others (mode {stat.S_IMODE(info.st_mode):o}): code "
                           f"in it would be executed as you. Run 'chmod 700 {path}', or {remedy}")
    # The mode is asked too: root may write where the mode forbids it, and a folder made read-only is meant to stay so.
    if not (stat.S_IMODE(info.st_mode) & stat.S_IWUSR and os.access(path, os.W_OK | os.X_OK)):
        raise CodegenError(f"the code cache {path} is read-only; run 'chmod u+w {path}', or {remedy}")
    return path
