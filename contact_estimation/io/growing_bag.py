"""An MCAP bag that is written while messages arrive. What has been flushed stays readable, also on a full disk.

A disk that fills up takes a part of a record. The length of that record would cover whatever is written behind it. So
nothing is written any more: the file stays without an index, as a killed recorder leaves it, and
:mod:`~contact_estimation.io.recovery` reads both.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rosbags.interfaces import Connection
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys.store import Typestore

from contact_estimation.exceptions import RecordingError


class GrowingBag:
    """A new bag, open for writing.

    Args:
        path: its folder, which is made.
        typestore: knows the message types.

    Attributes:
        path: the folder.
        flushed: messages that are safe on disk.
        size: of the file up to them [bytes].
        problem: why nothing is written any more; "" while all is well.

    Raises:
        RecordingError: the folder exists, or cannot be made or written.
    """

    def __init__(self, path: Path, typestore: Typestore) -> None:
        if path.exists():
            raise RecordingError(f"{path} exists already; name a folder that does not, or delete it")
        self.path, self.flushed, self.size, self.problem = path, 0, 0, ""
        self._typestore, self._connections = typestore, dict[str, Connection]()
        self._writer, self._written, self._start = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP), 0, 0.0
        try:
            self._writer.open()
            self._storage.bio.flush()
        except OSError as error:
            if self._writer.storage is not None:
                self._abandon()
                shutil.rmtree(path, ignore_errors=True)
            raise RecordingError(
                f"{path} cannot be made ({error.strerror}); name a folder where you may write and there is space"
            ) from error
        self.size, self._start = self._storage.bio.tell(), time.monotonic()

    @property
    def _storage(self) -> Any:
        return self._writer.storage

    def write(self, topic: str, msgtype: str, stamp_ns: int, raw: bytes) -> None:
        """Add a message; it is safe after the next :meth:`flush`. After a problem it is dropped.

        Args:
            topic: its name; the bag lists it from its first message on.
            msgtype: its type.
            stamp_ns: when it was received [ns].
            raw: the message, serialised.
        """
        if self.problem:
            return
        with self._failures():
            if topic not in self._connections:
                self._connections[topic] = self._writer.add_connection(topic, msgtype, typestore=self._typestore)
            self._writer.write(self._connections[topic], stamp_ns, raw)
            self._written += 1

    def flush(self) -> None:
        """Hand everything to the file system."""
        if self.problem:
            return
        with self._failures():
            if self._storage.chunk.bio.tell():
                self._storage.close_chunk()
            self._storage.bio.flush()
            self.flushed, self.size = self._written, self._storage.bio.tell()

    def close(self) -> None:
        """Write index and metadata; where they do not fit, the messages stay, and ``problem`` says so."""
        self.flush()
        if self.problem:
            return
        with self._failures():
            self._writer.close()

    def seconds_left(self) -> float:
        """Return how long the disk lasts at the rate so far [s]; infinite without a message, 0 after a problem."""
        if self.problem or not self.flushed:
            return 0.0 if self.problem else float("inf")
        disk = os.fstatvfs(self._storage.bio.fileno())
        return disk.f_bavail * disk.f_frsize * (time.monotonic() - self._start) / self.size

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Give the file up where the disk does not take more."""
        try:
            yield
        except OSError as error:
            lost = self._written - self.flushed
            saved = f"{self.flushed} messages are saved" + (f", the last {lost} are lost" if lost else "")
            self.problem = (
                f"{self.path} cannot be written ({error.strerror}): recording has ended. {saved}; "
                f"'contact-estimation convert {self.path} OUTPUT' reads them"
            )
            self._abandon()
            (self.path / "metadata.yaml.tmp").unlink(missing_ok=True)

    def _abandon(self) -> None:
        """Close the file as it is."""
        if self._storage is not None:  # else it is complete: only metadata.yaml is missing
            self._storage.bio.raw.close()  # below the buffer, which would write once more
            self._writer.storage = None
