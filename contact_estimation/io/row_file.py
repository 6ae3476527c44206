"""Rows of an array on disk: appended block by block, read back as slices."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from contact_estimation.io.temporary import temporary_file_error

#: Rows that are in memory at once.
BLOCK = 4096


class Rows(Protocol):
    """What gives rows by slices: an array, or a :class:`RowFile`."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def __getitem__(self, rows: slice, /) -> Any:
        """Return the array of some rows."""


class RowFile:
    """Rows in a temporary file, which vanishes with the object; ``TMPDIR`` says on which disk it is.

    Args:
        dtype: of the numbers.
        tail: shape of one row.

    Raises:
        RecordingError: the temporary file cannot be made.
    """

    def __init__(self, dtype: Any = float, tail: tuple[int, ...] = ()) -> None:
        self.dtype, self.tail = np.dtype(dtype), tail
        self._row_size = int(np.prod(tail)) * self.dtype.itemsize
        self._count = 0
        try:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the object)
        except OSError as error:
            raise temporary_file_error(error) from error

    def __len__(self) -> int:
        return self._count

    def append(self, values: np.ndarray) -> None:
        """Add rows.

        Args:
            values: (m, ...) rows.

        Raises:
            RecordingError: the disk of the temporary file takes no more.
        """
        try:
            self._file.write(np.ascontiguousarray(values, self.dtype).tobytes())
        except OSError as error:
            raise temporary_file_error(error) from error
        self._count += len(values)

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return some rows.

        Raises:
            IndexError: the slice has a step.
            RecordingError: the disk of the temporary file takes no more.
        """
        begin, end, step = rows.indices(self._count)
        if step != 1:
            raise IndexError(f"rows on disk are read in steps of 1, found {step}")
        count = max(end - begin, 0)
        try:
            self._file.flush()
            content = os.pread(self._file.fileno(), count * self._row_size, begin * self._row_size)
        except OSError as error:
            raise temporary_file_error(error) from error
        return np.frombuffer(content, self.dtype).reshape(count, *self.tail)

    def blocks(self) -> Iterator[np.ndarray]:
        """Give all rows, block by block."""
        return (self[begin : begin + BLOCK] for begin in range(0, self._count, BLOCK))
