"""Results on disk by the hash of what they were made from, so that a run that ended early goes on where it was."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from contact_estimation.atomic_write import atomic_write_text
from contact_estimation.exceptions import JobError

_BLOCK = 1 << 20  # [bytes] read at once


class Results:
    """A folder of JSON files, one per result; a file that is damaged counts as absent.

    Args:
        folder: is made where it does not exist.

    Raises:
        JobError: it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JobError(f"the folder of results {folder} cannot be made ({error.strerror}); name another") from error

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the result of ``key``, or None."""
        try:
            found = json.loads(self._path(key).read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Keep a result; who reads meanwhile sees all of it or nothing.

        Args:
            key: of the result.
            result: what JSON can hold.

        Raises:
            JobError: it cannot be written.
        """
        try:
            atomic_write_text(self._path(key), json.dumps(result))
        except OSError as error:
            raise JobError(f"a result cannot be written to {self.folder} ({error.strerror}); name another") from error

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def key_of(*parts: object) -> str:
    """Return a key made of everything a result depends on; the parts' ``repr`` must say all of it."""
    return hashlib.sha256("\0".join(map(repr, parts)).encode()).hexdigest()


def content_hash(path: Path) -> str:
    """Return a hash of a file's content, or of the names and contents of all files in a folder.

    Args:
        path: of a file or a folder.

    Raises:
        OSError: something cannot be read.
    """
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        if path.is_dir():
            digest.update(f"{file.relative_to(path)}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
