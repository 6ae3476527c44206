"""Recordings as ``.npz`` archives.

Keys: ``t`` [s] or ``stamps_ns`` [ns]; ``q``, ``dq``, ``tau`` (N, n) [rad, rad/s, Nm]; optional ``joint_names``, the
names ``robot`` and ``sensors`` (of a sensor set);
``f_tcp`` (N, 3) [N] and ``torque_tcp`` (N, 3) [Nm] of the environment on the robot in TCP axes, or ``f_base`` (N, 3) in
base axes; ``f_tcp_zero_offset`` and ``torque_tcp_zero_offset`` (3,); ``truth_*`` as in
:data:`~contact_estimation.io.recording.TRUTH_COLUMNS`. Other keys are ignored.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.recording import STAMP_LIMIT, TRUTH_COLUMNS, Recording, TcpRotation


def read_npz(
    path: Path | str,
    joint_names: Iterable[str] | None = None,
    rate: float | None = None,
    rotation: TcpRotation | None = None,
) -> Recording:
    """Read a recording from an ``.npz`` archive.

    Args:
        path: the archive.
        joint_names: the robot's n joints. An archive with ``joint_names`` is brought into their order; one without is
            taken to have its columns in that order.
        rate: [Hz] of an archive that has no stamps.
        rotation: turns a force in base axes into TCP axes; without it such a force is left out.

    Raises:
        RecordingError: not an archive, a key is missing, or the joints do not fit.
    """
    path = Path(path)
    data = load_arrays(path)
    missing = [name for name in ("q", "dq", "tau") if name not in data]
    if missing:
        raise RecordingError(
            f"{path}: key {', '.join(missing)} is missing; a recording has t, q, dq and tau, "
            f"this archive has {', '.join(data) or 'nothing'}."
        )
    for name in ("q", "dq", "tau"):
        if data[name].ndim != 2:
            raise RecordingError(f"{path}: {name} has shape {data[name].shape}, expected (samples, joints)")
    columns = data["q"].shape[1]
    if "joint_names" not in data and joint_names is None:
        raise RecordingError(
            f"{path} does not name its {columns} joints (key joint_names); name the robot with --robot."
        )
    names = _names(path, data) if joint_names is None or "joint_names" in data else tuple(joint_names)
    if len(names) != columns:
        raise RecordingError(
            f"{path}: has {columns} joints, but {len(names)} were expected ({', '.join(names)}). "
            "Choose the --robot the recording was made with."
        )
    wrench, zero = _wrench(path, data, rotation)
    recording = Recording(
        _stamps(path, data, rate),
        names,
        data["q"],
        data["dq"],
        data["tau"],
        str(path),
        wrench,
        zero,
        {name: data[f"truth_{name}"] for name in TRUTH_COLUMNS if f"truth_{name}" in data},
        _word(path, data, "sensors"),
        _word(path, data, "robot"),
    )
    return recording if joint_names is None else recording.reordered(joint_names)


def robot_of_npz(path: Path) -> str:
    """Return the name of the robot an archive tells, "" where it does not or cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return _word(path, archive, "robot")
    except Exception:  # damage raises nearly anything; reading the archive tells what is wrong
        return ""


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays of an archive by name.

    Raises:
        RecordingError: it is no ordinary file or no archive, unpacks to more than the memory, or holds other members.
    """
    if not path.is_file():
        raise RecordingError(f"no such recording: {path}")
    try:
        _refuse_bomb(path)
        with np.load(path, allow_pickle=False) as archive:
            data = {name: archive[name] for name in archive.files}
    except RecordingError:
        raise
    except Exception as error:  # damage makes zipfile, zlib and numpy raise nearly anything, MemoryError among it
        raise RecordingError(
            f"{path} cannot be read as an .npz archive ({type(error).__name__}: {error}); it may be truncated or "
            "damaged, or hold pickled objects, which are never loaded."
        ) from error
    for name, value in data.items():
        if not isinstance(value, np.ndarray):
            raise RecordingError(f"{path}: its member '{name}' is no array; an .npz archive holds .npy files")
    return data


def read_arrays(path: Path | str, keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Read the arrays ``keys``, and those of ``optional`` that are there, as floats.

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


def _stamps(path: Path, data: dict[str, np.ndarray], rate: float | None) -> np.ndarray:
    if "stamps_ns" in data:
        return data["stamps_ns"]
    if "t" in data:
        t = _numbers(path, data, "t", (len(data["q"]),))
        if not np.isfinite(t).all():
            raise RecordingError(f"{path}: {np.count_nonzero(~np.isfinite(t))} stamps in t are NaN or infinite")
        if np.abs(t).max(initial=0.0) >= 1e-9 * STAMP_LIMIT:
            raise RecordingError(f"{path}: t reaches {np.abs(t).max():.3g}; stamps are seconds, at most 9.2e9")
        return np.round(t * 1e9).astype(np.int64)
    if rate is None:
        raise RecordingError(f"{path}: has no stamps (key t [s]); give the rate it was recorded at with --rate HZ.")
    return np.round(np.arange(len(data["q"])) * 1e9 / rate).astype(np.int64)


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


def write_npz(path: Path | str, recording: Recording, **extra: np.ndarray) -> Path:
    """Write a recording as an ``.npz`` archive, making its folder.

    Args:
        path: the archive.
        recording: what to write.
        **extra: arrays stored beside it, such as ``x_tcp`` and ``R_tcp``.

    Returns:
        The path.
    """
    data: dict[str, Any] = {
        "t": recording.t,
        "stamps_ns": recording.stamps_ns,
        "joint_names": np.array(recording.joint_names),
        "q": recording.q,
        "dq": recording.dq,
        "tau": recording.tau,
    }
    if recording.wrench_tcp is not None:
        data |= {"f_tcp": recording.wrench_tcp[:, :3], "f_tcp_zero_offset": recording.wrench_zero[:3]}
        if not np.isnan(recording.wrench_tcp[:, 3:]).all():
            data |= {"torque_tcp": recording.wrench_tcp[:, 3:], "torque_tcp_zero_offset": recording.wrench_zero[3:]}
    data |= {f"truth_{name}": value for name, value in recording.truth.items()}
    data |= {name: np.array(getattr(recording, name)) for name in ("sensors", "robot") if getattr(recording, name)}
    return save_arrays(path, data | extra)


def save_arrays(path: Path | str, arrays: dict[str, Any]) -> Path:
    """Write ``arrays`` to an archive of exactly this name, making its folder.

    Args:
        path: the archive.
        arrays: by key.

    Returns:
        The path.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:  # a file object, so that numpy does not append .npz to the name
        np.savez(file, **arrays)
    return path
