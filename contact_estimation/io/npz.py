"""Recordings as ``.npz`` archives.

Keys: ``t`` [s] or ``stamps_ns`` [ns]; ``q``, ``dq``, ``tau`` (N, n) [rad, rad/s, Nm]; optional ``joint_names``, the
names ``robot``, ``tool`` and ``sensors`` (of a sensor set);
``f_tcp`` (N, 3) [N] and ``torque_tcp`` (N, 3) [Nm] of the environment on the robot in TCP axes, or ``f_base`` (N, 3) in
base axes; ``f_tcp_zero_offset`` and ``torque_tcp_zero_offset`` (3,); ``truth_*`` as in
:data:`~contact_estimation.io.recording.TRUTH_COLUMNS`. Other keys are ignored.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.archive import Archive
from contact_estimation.io.recording import (
    STAMP_LIMIT,
    TRUTH_COLUMNS,
    Recording,
    Samples,
    TcpRotation,
    given_names,
    measured_parts,
)
from contact_estimation.io.row_file import BLOCK

#: Keys with one row per sample, and keys that are read whole.
_COLUMNS = (
    "t",
    "stamps_ns",
    "q",
    "dq",
    "tau",
    "f_tcp",
    "torque_tcp",
    "f_base",
    *(f"truth_{name}" for name in TRUTH_COLUMNS),
)
_WHOLE = ("joint_names", "robot", "tool", "sensors", "f_tcp_zero_offset", "torque_tcp_zero_offset")
#: [s] since 1970 in other units stays below these until the year 2286.
_UNITS = {1e13: "milliseconds", 1e16: "microseconds", math.inf: "nanoseconds"}
#: [s] Stamps that are coarser make the time between samples at 500 Hz wrong by 5 % and more.
_FINEST = 1e-4
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class NpzFile:
    """An ``.npz`` archive as a recording that is read block by block.

    Args:
        path: the archive.
        joint_names: the robot's n joints. An archive with ``joint_names`` is brought into their order; one without is
            taken to have its columns in that order.
        rate: [Hz] of an archive that has no stamps.
        rotation: turns a force in base axes into TCP axes; without it such a force is left out.

    Raises:
        RecordingError: not an archive, a key is missing, or the joints do not fit.

    Attributes:
        head: the first sample.
        notes: what was left out; nothing.
    """

    notes: tuple[str, ...] = ()

    def __init__(
        self,
        path: Path | str,
        joint_names: Iterable[str] | None = None,
        rate: float | None = None,
        rotation: TcpRotation | None = None,
    ) -> None:
        self._path, self._rate, self._rotation = Path(path), rate, rotation
        self._wanted = given_names(joint_names)
        with _named(self._path), zipfile.ZipFile(self._path) as archive:
            members = {name.removesuffix(".npy") for name in archive.namelist()}
            self._whole = {name: NpyRows(archive, name).read_all() for name in _WHOLE if name in members}
            shapes = {name: NpyRows(archive, name).shape for name in _COLUMNS if name in members}
            self._length, self._names = self._check(shapes)
        self._columns = tuple(shapes)
        self.head = next(self.blocks(1))

    def _check(self, shapes: dict[str, tuple[int, ...]]) -> tuple[int, tuple[str, ...]]:
        """Return number of samples and names of the joints."""
        missing = [name for name in ("q", "dq", "tau") if name not in shapes]
        if missing:
            found = ", ".join((*shapes, *self._whole)) or "nothing of it"
            raise RecordingError(
                f"{self._path}: key {', '.join(missing)} is missing; a recording has t, q, dq and tau, this archive "
                f"has {found}."
            )
        for name in ("q", "dq", "tau"):
            if len(shapes[name]) != 2:
                raise RecordingError(f"{self._path}: {name} has shape {shapes[name]}, expected (samples, joints)")
        length, columns = shapes["q"]
        joints = len(self._whole.get("joint_names", self._wanted or ()))
        if length != columns and (length == joints or shapes.get("stamps_ns", shapes.get("t")) == (columns,)):
            raise RecordingError(
                f"{self._path}: q has shape {shapes['q']}, expected (samples, joints): transpose q, dq and tau"
            )
        for name, shape in shapes.items():
            expected = (length, *_width(name, columns))
            if shape != expected:
                raise RecordingError(f"{self._path}: {name} has shape {shape}, expected {expected}")
        if "joint_names" in self._whole:
            names = _names(self._path, self._whole)
        elif self._wanted is None:
            raise RecordingError(
                f"{self._path} does not name its {columns} joints (key joint_names); name the robot with --robot."
            )
        else:
            names = self._wanted
        if len(names) != columns and "joint_names" in self._whole:
            raise RecordingError(
                f"{self._path}: joint_names has {len(names)} names ({', '.join(names)}), q has {columns} columns; give "
                "each column its name"
            )
        if len(names) != columns:
            raise RecordingError(
                f"{self._path}: has {columns} joints, but {len(names)} were expected ({', '.join(names)}). "
                "Choose the --robot the recording was made with."
            )
        return length, names

    def __len__(self) -> int:
        return self._length

    def read(self) -> Recording:
        """Return all samples.

        Raises:
            RecordingError: the archive is damaged, or unpacks to more than this machine can hold.
        """
        _refuse_bomb(self._path)
        return next(self.blocks(len(self)))

    def blocks(self, rows: int = BLOCK) -> Iterator[Recording]:
        """Give the samples in order, in blocks of at most ``rows``; each call begins anew.

        Raises:
            RecordingError: the archive is damaged.
        """
        with _named(self._path), zipfile.ZipFile(self._path) as archive:
            columns = {name: NpyRows(archive, name) for name in self._columns}
            for begin in range(0, max(len(self), 1), max(rows, 1)):
                data = {name: column.read(min(rows, len(self) - begin)) for name, column in columns.items()}
                yield self._recording(begin, data)

    def _recording(self, begin: int, data: dict[str, np.ndarray]) -> Recording:
        """Return the samples from ``begin`` on."""
        path, data = self._path, data | self._whole
        wrench, zero = _wrench(path, data, self._rotation)
        recording = Recording(
            _stamps(path, data, self._rate, begin),
            self._names,
            data["q"],
            data["dq"],
            data["tau"],
            str(path),
            wrench,
            zero,
            {name: data[f"truth_{name}"] for name in TRUTH_COLUMNS if f"truth_{name}" in data},
            _word(path, data, "sensors"),
            _word(path, data, "robot"),
            _word(path, data, "tool"),
        )
        return recording if self._wanted is None else recording.reordered(self._wanted)


def _width(name: str, joints: int) -> tuple[int, ...]:
    """Return the shape of a row of the key ``name`` of a robot with so many ``joints``."""
    if name in ("t", "stamps_ns"):
        return ()
    if name in ("f_tcp", "torque_tcp", "f_base"):
        return (3,)
    return (TRUTH_COLUMNS.get(name.removeprefix("truth_"), 0) or joints,)


class NpyRows:
    """One ``.npy`` member of an open archive, read row by row.

    Args:
        archive: the open file.
        name: of the member, without its ending.

    Attributes:
        shape: of the array.

    Raises:
        ValueError: it is no such array, or holds pickled objects.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._file = archive.open(f"{name}.npy")
        version = npy.read_magic(self._file)
        if version not in _HEADERS:
            raise ValueError(f"member {name} has version {version} of .npy, expected 1.0 or 2.0")
        self.shape, column_major, self._type = _HEADERS[version](self._file)
        if self._type.hasobject:
            raise ValueError(f"member {name} holds pickled objects")
        # Rows of a column-major array are scattered: it is read whole.
        self._whole: np.ndarray | None = (
            self._take(self.shape[::-1]).T if column_major and len(self.shape) > 1 else None
        )
        self._row = 0

    def read_all(self) -> np.ndarray:
        """Return the whole array."""
        return self._take(self.shape) if self._whole is None else self._whole

    def read(self, count: int) -> np.ndarray:
        """Return the next rows (count, ...)."""
        self._row += count
        if self._whole is not None:
            return self._whole[self._row - count : self._row]
        return self._take((count, *self.shape[1:]))

    def _take(self, shape: tuple[int, ...]) -> np.ndarray:
        size = math.prod(shape) * self._type.itemsize
        content = self._file.read(size)
        if len(content) != size:
            raise ValueError(f"a member ends after {len(content)} of {size} bytes")
        return np.frombuffer(content, self._type).reshape(shape)


def read_npz(
    path: Path | str,
    joint_names: Iterable[str] | None = None,
    rate: float | None = None,
    rotation: TcpRotation | None = None,
) -> Recording:
    """Read a recording from an ``.npz`` archive; arguments and errors of :class:`NpzFile`."""
    return NpzFile(path, joint_names, rate, rotation).read()


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the archive in what goes wrong while it is read.

    Raises:
        RecordingError: it is no ordinary file or no archive, or damaged.
    """
    if not path.is_file():
        raise RecordingError(f"no such recording: {path}")
    try:
        yield
    except RecordingError:
        raise
    except Exception as error:  # damage makes zipfile, zlib and numpy raise nearly anything, MemoryError among it
        raise RecordingError(
            f"{path} cannot be read as an .npz archive ({type(error).__name__}: {error}); it may be truncated or "
            "damaged, or hold pickled objects, which are never loaded."
        ) from error


def words_of_npz(path: Path, *keys: str) -> tuple[str, ...]:
    """Return names an archive tells, "" where it does not or cannot be read.

    Args:
        path: of the archive.
        keys: such as ``robot``.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            return tuple(_word(path, archive, key) for key in keys)
    except Exception:  # damage raises nearly anything; reading the archive tells what is wrong
        return ("",) * len(keys)


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays of an archive by name.

    Args:
        path: of the archive.

    Returns:
        Name -> array of any shape.

    Raises:
        RecordingError: it is no ordinary file or no archive, unpacks to more than the memory, or holds other members.
    """
    with _named(path), np.load(path, allow_pickle=False) as archive:
        _refuse_bomb(path)
        data = {name: archive[name] for name in archive.files}
    for name, value in data.items():
        if not isinstance(value, np.ndarray):
            raise RecordingError(f"{path}: its member '{name}' is no array; an .npz archive holds .npy files")
    return data


def read_arrays(path: Path | str, keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Read the arrays ``keys``, and those of ``optional`` that are there, as floats.

    Args:
        path: of the archive.
        keys: arrays that must be there.
        optional: arrays that may be there.

    Returns:
        Name -> array of floats, of any shape.

    Raises:
        RecordingError: no such file, no archive, an array of something else than numbers, or a key is missing.
    """
    path = Path(path)
    data = load_arrays(path)
    missing = [key for key in keys if key not in data]
    if missing:
        raise RecordingError(
            f"{path} lacks {', '.join(missing)}; expected {', '.join(keys)}, found {', '.join(data) or 'nothing'}"
        )
    return {key: _numbers(path, data, key) for key in (*keys, *optional) if key in data}


def _refuse_bomb(path: Path) -> None:
    """Refuse an archive that unpacks to more than this machine can hold."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > memory // 2:
        raise RecordingError(
            f"{path} unpacks to {size / 1e9:.1f} GB, this machine has {memory / 1e9:.1f} GB; cut it into parts"
        )


def _numbers(path: Path, data: dict[str, np.ndarray], name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return an array of the archive as float64.

    Raises:
        RecordingError: it holds something else than real numbers, or has another shape.
    """
    value = data[name]
    if value.dtype.kind not in "fiub":
        raise RecordingError(f"{path}: {name} must hold real numbers, found {value.dtype}")
    if shape is not None and value.shape != shape:
        raise RecordingError(f"{path}: {name} has shape {value.shape}, expected {shape}")
    return value.astype(float)


def _names(path: Path, data: dict[str, np.ndarray]) -> tuple[str, ...]:
    names = data["joint_names"]
    if names.ndim != 1 or names.dtype.kind != "U":
        raise RecordingError(f"{path}: joint_names must be a list of words, found {names.dtype} of shape {names.shape}")
    return tuple(names.tolist())


def _word(path: Path, data: Mapping[str, np.ndarray], name: str) -> str:
    """Return a name the archive tells, "" where it does not."""
    word = data.get(name, np.array(""))
    if word.ndim or word.dtype.kind != "U":
        raise RecordingError(f"{path}: {name} must be a name, found {word.dtype} {word.shape}")
    return str(word)


def _stamps(path: Path, data: dict[str, np.ndarray], rate: float | None, begin: int) -> np.ndarray:
    """Return the stamps [ns] of the samples from ``begin`` on."""
    if "stamps_ns" in data:
        return data["stamps_ns"]
    if "t" in data:
        t = _numbers(path, data, "t", (len(data["q"]),))
        if not np.isfinite(t).all():
            raise RecordingError(f"{path}: {np.count_nonzero(~np.isfinite(t))} stamps in t are NaN or infinite")
        largest = np.abs(t).max(initial=0.0)
        if largest >= 1e-9 * STAMP_LIMIT:
            unit = next(word for limit, word in _UNITS.items() if largest < limit)
            raise RecordingError(
                f"{path}: t reaches {largest:.3g}; stamps are seconds, at most 9.2e9: is it in {unit}? Nanoseconds are "
                "the key stamps_ns"
            )
        step = float(np.spacing(largest.astype(data["t"].dtype))) if data["t"].dtype.kind == "f" else 0.0
        if step > _FINEST:
            raise RecordingError(
                f"{path}: t is {data['t'].dtype}, which holds {largest:.10g} s only to {step:.1g} s; store it as "
                "float64, or nanoseconds as stamps_ns"
            )
        return np.round(t * 1e9).astype(np.int64)
    if rate is None:
        raise RecordingError(f"{path}: has no stamps (key t [s]); give the rate it was recorded at with --rate HZ.")
    return np.round((begin + np.arange(len(data["q"]))) * 1e9 / rate).astype(np.int64)


def _wrench(
    path: Path, data: dict[str, np.ndarray], rotation: TcpRotation | None
) -> tuple[np.ndarray | None, np.ndarray]:
    """Measured wrench (N, 6) in TCP axes or None, and its zero offset (6,)."""
    zero = np.zeros(6)
    if "f_tcp" in data:
        force = _numbers(path, data, "f_tcp")
        for name, part in (("f_tcp_zero_offset", zero[:3]), ("torque_tcp_zero_offset", zero[3:])):
            if name in data:
                part[:] = _numbers(path, data, name, (3,))
    elif "f_base" in data and rotation is not None:
        in_base = _numbers(path, data, "f_base", (len(data["q"]), 3))
        force = np.einsum("nij,ni->nj", rotation(_numbers(path, data, "q")), in_base)
    else:
        return None, zero
    torque = _numbers(path, data, "torque_tcp") if "torque_tcp" in data else np.full_like(force, np.nan)
    try:
        return np.concatenate([force, torque], axis=1), zero
    except ValueError as error:
        raise RecordingError(f"{path}: f_tcp {force.shape} and torque_tcp {torque.shape} do not fit") from error


def write_npz(
    path: Path | str,
    recording: Samples,
    robot: str = "",
    extra: Callable[[Recording], Mapping[str, np.ndarray]] | None = None,
    tool: str = "",
) -> Path:
    """Write a recording as an ``.npz`` archive, making its folder.

    Args:
        path: the archive.
        recording: what to write.
        robot: name for a recording that does not tell its robot.
        extra: makes columns that are stored beside a block of it, such as ``x_tcp`` and ``R_tcp``.
        tool: name for a recording that does not tell its tool.

    Returns:
        The path.
    """
    archive, head = Archive(), recording.head
    torque = measured_parts(recording)[3:].any()
    for block in recording.blocks():
        columns = {"t": block.t} | {name: getattr(block, name) for name in ("stamps_ns", "q", "dq", "tau")}
        if block.wrench_tcp is not None:
            columns |= {"f_tcp": block.wrench_tcp[:, :3]} | ({"torque_tcp": block.wrench_tcp[:, 3:]} if torque else {})
        columns |= {f"truth_{name}": value for name, value in block.truth.items()}
        archive.add(columns | dict(extra(block) if extra else {}))
    whole = {"joint_names": np.array(head.joint_names)}
    if head.wrench_tcp is not None:
        whole |= {"f_tcp_zero_offset": head.wrench_zero[:3]}
        whole |= {"torque_tcp_zero_offset": head.wrench_zero[3:]} if torque else {}
    told = {"sensors": head.sensors, "robot": head.robot or robot, "tool": head.tool or tool}
    whole |= {name: np.array(word) for name, word in told.items() if word}
    return archive.save(path, whole)
