"""Recordings as channels: an arm's through :mod:`contact_estimation.io`, arrays of any archive, several in a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.channels import Measurement
from contact_estimation.io.npz import load_arrays
from contact_estimation.io.open import kind_of, open_recording
from contact_estimation.io.recording import Recording

#: What an arm's recording offers under which source name: (attribute, first column, end).
_ARM = {
    "q": ("q", 0, None),
    "dq": ("dq", 0, None),
    "tau": ("tau", 0, None),
    "f_tcp": ("wrench_tcp", 0, 3),
    "m_tcp": ("wrench_tcp", 3, 6),
}

#: Time [s] between recordings on their common axis; longer than any delay.
_APART = 1.0


def read(path: Path | str, sources: set[str], joint_names: tuple[str, ...]) -> tuple[dict[str, Measurement], float]:
    """Measurements by source name, times from the first sample on, and the duration [s].

    An arm's recording is a bag, or an `.npz` archive with ``t``, ``q``, ``dq`` and ``tau`` of the same shape. Any
    archive may hold arrays ``NAME`` (k, m) with times ``t_NAME`` (k,) [s], or of as many rows as ``t``. Missing values
    are NaN: they are gaps. Sources that are absent are left out (the estimate runs without them).

    Args:
        path: bag or archive.
        sources: wanted names: of an arm q, dq, tau [rad, rad/s, Nm], f_tcp, m_tcp [N, Nm; environment on robot]; of
            an archive its own.
        joint_names: order of the arm's columns.

    Raises:
        RecordingError: not readable, infinite samples, a channel without a finite sample, or none of the sources.
    """
    arrays = _arrays(Path(path))
    if arrays and not _is_arm(arrays):
        found = _own(arrays, sources)
        start = min((each.t[0] for each in found.values()), default=0.0)
        found = {name: each.earlier(start) for name, each in found.items()}
        duration = max((each.t[-1] for each in found.values()), default=0.0)
    else:
        recording = open_recording(path, joint_names)
        _bridged(recording).check()
        start, duration = recording.t[0], recording.duration
        found = _of_arm(recording, sources)
        found |= {name: each.earlier(start) for name, each in _own(arrays, sources - set(_ARM)).items()}
    if not found:
        raise RecordingError(
            f"{path}: holds none of the channels the scene asks for ({', '.join(sorted(sources))}); an arm's "
            f"are {', '.join(_ARM)}, others need an array NAME and its times t_NAME or t; it has "
            f"{', '.join(sorted(arrays)) or 'no arrays'}"
        )
    sound = {name for name, each in found.items() if np.any(np.all(np.isfinite(each.values), axis=1))}
    for name in sorted(sources & (set(found) | set(arrays)) - sound):
        raise RecordingError(
            f"{path}: channel source '{name}' has no finite sample, every row has a NaN or infinite number; record it "
            "again, or take it out of the file or the scene to estimate without it"
        )
    return found, float(duration)


def _bridged(recording: Recording) -> Recording:
    """Return the recording with straight lines over its gaps, to check the rest of it."""
    q, dq, tau = (_filled(recording.t, values) for values in (recording.q, recording.dq, recording.tau))
    return dataclasses.replace(recording, q=q, dq=dq, tau=tau)


def _filled(t: Array, values: Array) -> Array:
    """Fill rows (k, m) with NaN from their neighbours; values without a sound row stay."""
    missing = np.any(np.isnan(values), axis=1)
    if missing.all() or not missing.any():
        return values
    filled: Array = values.copy()
    filled[missing] = np.column_stack([np.interp(t[missing], t[~missing], column) for column in values[~missing].T])
    return filled


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Arrays of an archive; none of a bag."""
    if not path.is_file() or kind_of(path) != ".npz":
        return {}
    return load_arrays(path)


def _is_arm(arrays: dict[str, np.ndarray]) -> bool:
    return (
        all(name in arrays for name in ("q", "dq", "tau")) and len({arrays[n].shape for n in ("q", "dq", "tau")}) == 1
    )


def _own(arrays: dict[str, np.ndarray], sources: set[str]) -> dict[str, Measurement]:
    """Arrays with times of their own, or with those of ``t``."""
    found = {}
    for name in sorted(sources & set(arrays)):
        times, values = arrays.get(f"t_{name}", arrays.get("t")), arrays[name]
        for each in (values,) if times is None else (values, times):
            if each.ndim == 0 or each.dtype.kind not in "fiub":
                raise RecordingError(
                    f"array '{name}' and its times must be numbers (k, m) and (k,), found {each.dtype} {each.shape}"
                )
        if times is None or len(times) != len(values):
            raise RecordingError(
                f"array '{name}' has {len(values)} rows and no times; add t_{name} [s] of as many, or t"
            )
        try:
            found[name] = Measurement(times, values)
        except RecordingError as error:
            raise RecordingError(f"array '{name}': {error}") from error
    return found


def _of_arm(recording: Recording, sources: set[str]) -> dict[str, Measurement]:
    """Channels of an arm's recording, the wrench tared."""
    found = {}
    for name in sources & set(_ARM):
        attribute, first, end = _ARM[name]
        values = getattr(recording, attribute)
        if values is None or np.all(np.isnan(values[:, first:end])):
            continue
        zero = recording.wrench_zero[first:end] if attribute == "wrench_tcp" else 0.0
        found[name] = Measurement(recording.t - recording.t[0], values[:, first:end] - zero)
    return found


def follow(
    recordings: Sequence[dict[str, Measurement]], durations: Sequence[float]
) -> tuple[dict[str, Measurement], list[float]]:
    """Put several recordings one after the other on one time axis.

    Args:
        recordings: measurements of each, by channel, from time 0 on. Of a channel that one of them lacks, no sample
            stands there.
        durations: of each [s].

    Returns:
        measurements by channel, and the time [s] at which each recording begins.
    """
    starts = np.concatenate([[0.0], np.cumsum(np.asarray(durations[:-1]) + _APART)]).tolist()
    parts: dict[str, list[Measurement]] = {}
    for found, start, duration in zip(recordings, starts, durations):
        for name, each in found.items():
            near = (each.t > -0.5 * _APART) & (each.t < duration + 0.5 * _APART)
            parts.setdefault(name, []).append(Measurement(each.t[near] + start, each.values[near]))
    joined = {
        name: Measurement(np.concatenate([p.t for p in each]), np.concatenate([p.values for p in each]))
        for name, each in parts.items()
    }
    return joined, starts
