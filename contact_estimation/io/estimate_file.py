"""Estimates on their way to an archive: a block of them is in memory, the columns grow on disk."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from contact_estimation.io.export import EstimateLog, truth_columns

if TYPE_CHECKING:
    from contact_estimation.filters.observer import Estimate

#: Estimates in memory: 8 MB of them.
_BLOCK = 4096


class _Column:
    """One column: a temporary file of its blocks. Words are kept as numbers of the words there are."""

    def __init__(self, file: IO[bytes], values: np.ndarray) -> None:
        self._file = file
        self._blocks: list[tuple[int, tuple[int, ...]]] = []
        self._words: dict[str, int] | None = {"": 0} if values.dtype == object else None
        self._type = np.dtype(np.int32) if self._words is not None else values.dtype
        self._tail: tuple[int, ...] = ()

    def add(self, values: np.ndarray) -> None:
        """Append a block (rows, ...); blocks before the first contact have no entries for contacts."""
        if self._words is not None:
            words = self._words
            values = np.array([words.setdefault(w, len(words)) for w in values.flat], np.int32).reshape(values.shape)
        self._blocks.append((len(values), values.shape[1:]))
        self._tail = max(self._tail, values.shape[1:])
        self._file.write(np.ascontiguousarray(values).tobytes())

    def write(self, archive: IO[bytes], missing: int) -> None:
        """Write an ``.npy`` file; the first ``missing`` rows were before the column existed."""
        rows = missing + sum(count for count, _ in self._blocks)
        kind = self._type if self._words is None else np.dtype(f"<U{max(map(len, self._words))}")
        head = {"descr": npy.dtype_to_descr(kind), "fortran_order": False, "shape": (rows, *self._tail)}
        npy.write_array_header_1_0(archive, head)
        if missing:
            archive.write(self._blank(missing, kind).tobytes())
        self._file.seek(0)
        for values in self._read():
            full = values if values.shape[1:] == self._tail else self._blank(len(values), self._type)
            archive.write(self._spelt(full, kind).tobytes())

    def _read(self) -> Iterator[np.ndarray]:
        for count, tail in self._blocks:
            shape = (count, *tail)
            content = self._file.read(int(np.prod(shape)) * self._type.itemsize)
            yield np.frombuffer(content, self._type).reshape(shape)

    def _spelt(self, values: np.ndarray, kind: np.dtype[Any]) -> np.ndarray:
        return values if self._words is None else np.array(list(self._words), kind)[values]

    def _blank(self, count: int, kind: np.dtype[Any]) -> np.ndarray:
        return np.full((count, *self._tail), np.nan if kind.kind == "f" else 0 if kind.kind != "U" else "", kind)


class EstimateFile:
    """Collects an observer's estimates and saves what :meth:`EstimateLog.save` does, in constant memory.

    Args:
        observer: its name.
        path: the archive, which :meth:`save` makes. Until then the columns are in a temporary folder.
    """

    def __init__(self, observer: str, path: Path) -> None:
        self.path, self._observer = path, observer
        self._log, self._rows = EstimateLog(observer, _BLOCK), 0
        self._folder = tempfile.TemporaryDirectory(prefix="estimates_")
        self._columns: dict[str, tuple[int, _Column]] = {}  # rows before the first block of it, the column
        self._names: dict[str, tuple[str, ...]] = {"contact_names": (), "mode_names": ()}

    def append(self, stamp_ns: int, estimate: Estimate, step_time: float = float("nan")) -> None:
        """Add the estimate after a sample; see :meth:`EstimateLog.append`."""
        self._log.append(stamp_ns, estimate, step_time)
        if len(self._log) == _BLOCK:
            self._flush()

    def _flush(self) -> None:
        for name in self._names:
            self._names[name] = getattr(self._log, name) or self._names[name]
        for name, values in self._log.columns().items():
            if name not in self._columns:
                file = (Path(self._folder.name) / name).open("w+b")
                self._columns[name] = self._rows, _Column(file, values)
            self._columns[name][1].add(values)
        self._rows += len(self._log)
        self._log = EstimateLog(self._observer, _BLOCK)

    def save(self, truth: Mapping[str, np.ndarray]) -> Path:
        """Write the archive, making its folder; ``truth`` of the recording as :func:`truth_columns` has it.

        Raises:
            OSError: it cannot be written.
        """
        if len(self._log):
            self._flush()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        words = {"observer": np.array(self._observer)}
        words |= {name: np.array(names, dtype=str) for name, names in self._names.items()}
        with zipfile.ZipFile(self.path, "w", allowZip64=True) as archive:
            for name, values in (words | truth_columns(dict(truth))).items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array(member, np.asanyarray(values), allow_pickle=False)
            for name, (missing, column) in self._columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    column.write(member, missing)
        return self.path
