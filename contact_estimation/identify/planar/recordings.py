"""A recorded planar drop and its outline, in the formats of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.shapes import Ellipse, Shape, rimless_wheel, square
from contact_estimation.io.npz import read_arrays

#: Word -> maker, how many numbers it takes, usage.
_MAKERS: dict[str, tuple[Callable[..., Shape], int, str]] = {
    "square": (square, 1, "square:SIDE"),
    "ellipse": (Ellipse, 2, "ellipse:A,B (semi-axes)"),
    "wheel": (lambda spokes, length: rimless_wheel(int(spokes), length), 2, "wheel:SPOKES,LENGTH"),
}


def parse_shape(text: str) -> Shape:
    """Shape from ``square:SIDE``, ``ellipse:A,B`` (semi-axes) or ``wheel:SPOKES,LENGTH`` [m].

    Raises:
        ConfigError: another word, or the wrong numbers.
    """
    name, _, numbers = text.partition(":")
    if name not in _MAKERS:
        expected = ", ".join(usage for _, _, usage in _MAKERS.values())
        raise ConfigError(f"shape {text!r} is not known; expected {expected} [m]")
    make, count, usage = _MAKERS[name]
    try:
        values = [float(number) for number in numbers.split(",")]
    except ValueError:
        values = []
    if len(values) != count:
        raise ConfigError(f"shape {text!r} lacks its {count} number(s); expected {usage} [m]")
    return make(*values)


class RecordedStates(NamedTuple):
    """A window of states with their velocities."""

    t: Array  # (N,) [s]
    q: Array  # (N, 3) = x, y, theta [m, rad]
    v: Array  # (N, 3)
    force: Array | None  # that acts besides gravity (N, 3) [N, N, Nm]
    q_std: Array | None  # noise of q (3,)
    v_std: Array | None  # noise of v (3,)


def load_window(path: Path | str, clockwise: bool = False) -> RecordedStates:
    """Read a window; as :func:`load_drop`, with velocities, and optionally ``force``, ``q_std`` and ``v_std``.

    Raises:
        RecordingError: as :func:`load_drop`; samples are missing or velocities are; a noise that is not positive.
    """
    t, q, v, left_out = load_drop(path, clockwise)
    if v is None or left_out:
        raise RecordingError(f"{path}: eq. 18 needs v, and every sample finite ({left_out} are not); --drop does not")
    extra = read_arrays(path, (), ("force", "q_std", "v_std"))
    for name in ("q_std", "v_std"):
        if name in extra and (extra[name].shape != (3,) or not np.all(extra[name] > 0.0)):
            raise RecordingError(f"{path}: {name} is {extra[name]}, expected 3 numbers above 0")
    turn = np.array([1.0, 1.0, -1.0 if clockwise else 1.0])
    force = turn * extra["force"] if "force" in extra else None
    return RecordedStates(t, q, v, force, extra.get("q_std"), extra.get("v_std"))


def load_drop(path: Path | str, clockwise: bool = False) -> tuple[Array, Array, Array | None, int]:
    """Read one drop onto the ground y = 0.

    Args:
        path: npz with ``t`` (N,) [s], ``q`` (N, 3) = x, y, theta [m, rad] and optionally ``v`` (N, 3). Samples may be
            uneven; those that are not finite are left out.
        clockwise: the recorded angle grows clockwise (from y to x); what is returned never does.

    Returns:
        t (N,), q (N, 3), v (N, 3) or None, and how many samples were left out.

    Raises:
        RecordingError: no such file, a key is missing, shapes disagree, or the instants do not increase.
    """
    found = read_arrays(path, ("t", "q"), ("v",))
    t, q, v = found["t"], found["q"], found.get("v", found["q"])
    if t.ndim != 1 or len(t) < 3 or q.shape != (len(t), 3) or v.shape != q.shape:
        raise RecordingError(f"{path}: t {t.shape}, q {q.shape}, v {v.shape}; expected (N,), (N, 3), (N, 3), N > 2")
    finite = np.isfinite(np.column_stack([t, q, v])).all(axis=1)
    t, q, v = t[finite], q[finite], v[finite]
    if len(t) < 3:
        raise RecordingError(f"{path}: only {len(t)} samples are finite; expected at least 3")
    if not np.diff(t).min() > 0.0:
        raise RecordingError(f"{path}: the instants t must increase; the smallest step is {np.diff(t).min():.4g} s")
    turn = np.array([1.0, 1.0, -1.0 if clockwise else 1.0])
    positions = turn * np.column_stack([q[:, :2], np.unwrap(q[:, 2])])
    return t, positions, turn * v if "v" in found else None, int(np.count_nonzero(~finite))
