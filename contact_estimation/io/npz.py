"""Recordings as ``.npz`` archives.

Keys: ``t`` [s] or ``stamps_ns`` [ns]; ``q``, ``dq``, ``tau`` (N, n) [rad, rad/s, Nm]; optional ``joint_names``;
``f_tcp`` (N, 3) [N] and ``torque_tcp`` (N, 3) [Nm] of the environment on the robot in TCP axes, or ``f_base`` (N, 3) in
base axes; ``f_tcp_zero_offset`` and ``torque_tcp_zero_offset`` (3,); ``sensors``, the name of a sensor set; ``truth_*``
as in :data:`~contact_estimation.io.recording.TRUTH_COLUMNS`. Other keys are let be.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.recording import TRUTH_COLUMNS, Recording


def read_npz(path: Path | str, joint_names=None, rate: float | None = None, rotation=None) -> Recording:
    """Read a recording from an ``.npz`` archive.

    Args:
        path: the archive.
        joint_names: the robot's n joints. An archive with ``joint_names`` is brought into their order; one without is
            taken to have its columns in that order.
        rate: [Hz] of an archive that has no stamps.
        rotation: q (N, n) -> R (N, 3, 3) of the TCP axes in the base, for an archive whose force is in base axes;
            without it such a force is left out.

    Raises:
        RecordingError: not an archive, a key is missing, or the joints do not fit.
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            data = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise RecordingError(f"{path} cannot be read as an .npz archive ({error}); it may be truncated, or hold "
                             "pickled objects, which are never loaded.") from error
    missing = [name for name in ("q", "dq", "tau") if name not in data]
    if missing:
        raise RecordingError(f"{path}: key {', '.join(missing)} is missing; a recording has t, q, dq and tau, "
                             f"this archive has {', '.join(data) or 'nothing'}.")
    for name in ("q", "dq", "tau"):
        if data[name].ndim != 2:
            raise RecordingError(f"{path}: {name} has shape {data[name].shape}, expected (samples, joints)")
    columns = data["q"].shape[1]
    names = tuple(data["joint_names"].tolist()) if "joint_names" in data else joint_names
    if names is None:
        raise RecordingError(f"{path} does not name its {columns} joints (key joint_names); "
                             "name the robot with --robot.")
    if len(names) != columns:
        raise RecordingError(f"{path}: has {columns} joints, but {len(names)} were expected ({', '.join(names)}). "
                             "Choose the --robot the recording was made with.")
    recording = Recording(_stamps(path, data, rate), names, data["q"], data["dq"], data["tau"], str(path),
                          *_wrench(path, data, rotation),
                          {name: data[f"truth_{name}"] for name in TRUTH_COLUMNS if f"truth_{name}" in data},
                          str(data.get("sensors", "")))
    return recording if joint_names is None else recording.reordered(joint_names)


def _stamps(path, data, rate) -> np.ndarray:
    if "stamps_ns" in data:
        return data["stamps_ns"]
    if "t" in data:
        t = np.asarray(data["t"], float)
        if not np.isfinite(t).all():
            raise RecordingError(f"{path}: {np.count_nonzero(~np.isfinite(t))} stamps in t are NaN or infinite")
        return np.round(t * 1e9).astype(np.int64)
    if rate is None:
        raise RecordingError(f"{path}: has no stamps (key t [s]); give the rate it was recorded at with --rate HZ.")
    return np.round(np.arange(len(data["q"])) * 1e9 / rate).astype(np.int64)


def _wrench(path, data, rotation):
    """Measured wrench (N, 6) in TCP axes or None, and its zero offset (6,)."""
    zero = np.zeros(6)
    if "f_tcp" in data:
        force = np.asarray(data["f_tcp"], float)
        zero[:3] = data.get("f_tcp_zero_offset", np.zeros(3))
        zero[3:] = data.get("torque_tcp_zero_offset", np.zeros(3))
    elif "f_base" in data and rotation is not None:
        if data["f_base"].shape != (len(data["q"]), 3):
            raise RecordingError(f"{path}: f_base has shape {data['f_base'].shape}, expected {(len(data['q']), 3)}")
        force = np.einsum("nij,ni->nj", rotation(np.asarray(data["q"], float)), data["f_base"])
    else:
        return None, zero
    torque = data.get("torque_tcp", np.full_like(force, np.nan))
    try:
        return np.concatenate([force, torque], axis=1), zero
    except ValueError as error:
        raise RecordingError(f"{path}: f_tcp {force.shape} and torque_tcp {torque.shape} do not fit") from error


def write_npz(path: Path | str, recording: Recording, **extra: np.ndarray) -> Path:
    """Write ``recording``; ``extra`` arrays (such as ``x_tcp``, ``R_tcp``) are stored beside it. Returns the path."""
    path = Path(path)
    data = {"t": recording.t, "stamps_ns": recording.stamps_ns, "joint_names": np.array(recording.joint_names),
            "q": recording.q, "dq": recording.dq, "tau": recording.tau}
    if recording.wrench_tcp is not None:
        data |= {"f_tcp": recording.wrench_tcp[:, :3], "f_tcp_zero_offset": recording.wrench_zero[:3]}
        if not np.isnan(recording.wrench_tcp[:, 3:]).all():
            data |= {"torque_tcp": recording.wrench_tcp[:, 3:], "torque_tcp_zero_offset": recording.wrench_zero[3:]}
    data |= {f"truth_{name}": value for name, value in recording.truth.items()}
    if recording.sensors:
        data["sensors"] = np.array(recording.sensors)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:  # a file object, so that numpy does not append .npz to the name
        np.savez(file, **data, **extra)
    return path
