"""An ``.npz`` archive that is written block by block: its columns grow on disk, not in memory."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from contact_estimation.atomic_write import atomic_write
from contact_estimation.io.row_file import BLOCK, RowFile


class Archive:
    """Collects columns by blocks of rows; :meth:`save` writes them as ``np.savez`` does."""

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Append a block of rows to some columns.

        Args:
            columns: name -> (m, ...); words come as objects. The first rows of a column may come without entries, or
                not at all (contacts before the first one): they are filled up with NaN, 0 or empty words.
        """
        for name, values in columns.items():
            if name not in self._columns:
                self._columns[name] = _Column(values)
            self._columns[name].add(values)

    def save(self, path: Path | str, whole: Mapping[str, Any]) -> Path:
        """Write the archive, making its folder.

        Args:
            path: of exactly this name.
            whole: arrays that are no columns.

        Returns:
            The path.

        Raises:
            OSError: it cannot be written; an earlier file of this name is as before.
        """
        path = Path(path)
        rows = max(map(len, self._columns.values()), default=0)
        with atomic_write(path) as file, zipfile.ZipFile(file, "w", allowZip64=True) as archive:
            for name, value in whole.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array(member, np.asanyarray(value), allow_pickle=False)
            for name, column in self._columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    column.write(member, rows)
        return path


class _Column:
    """One column. Words are kept as numbers of the words there are."""

    def __init__(self, values: np.ndarray) -> None:
        self._words: dict[str, int] | None = {"": 0} if values.dtype == object else None
        self._type = values.dtype if self._words is None else np.dtype(np.int32)
        self._rows = RowFile(self._type, values.shape[1:])

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, values: np.ndarray) -> None:
        """Append rows (m, ...)."""
        if self._words is not None:
            words = self._words
            values = np.array([words.setdefault(w, len(words)) for w in values.flat], np.int32).reshape(values.shape)
        if 0 in self._rows.tail:
            self._rows = RowFile(self._type, values.shape[1:])
        if values.size:
            self._rows.append(values)

    def write(self, member: IO[bytes], rows: int) -> None:
        """Write an ``.npy`` file of so many ``rows``, the last of which are here."""
        words = None if self._words is None else np.array(list(self._words))
        kind, tail, missing = self._type if words is None else words.dtype, self._rows.tail, rows - len(self)
        npy.write_array_header_1_0(
            member, {"descr": npy.dtype_to_descr(kind), "fortran_order": False, "shape": (rows, *tail)}
        )
        blank = np.full(
            (min(missing, BLOCK), *tail), np.nan if kind.kind == "f" else "" if words is not None else 0, kind
        )
        for begin in range(0, missing, BLOCK):
            member.write(blank[: missing - begin].tobytes())
        for values in self._rows.blocks():
            member.write((values if words is None else words[values]).tobytes())
