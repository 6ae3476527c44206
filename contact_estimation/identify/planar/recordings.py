"""Archives of recorded arrays; a recorded planar drop and the outline it was made with, as the command line takes
them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.identify.planar.shapes import Ellipse, Shape, rimless_wheel, square

_MAKERS = {"square": (square, 1, "square:SIDE"), "ellipse": (Ellipse, 2, "ellipse:A,B (semi-axes)"),
           "wheel": (lambda spokes, length: rimless_wheel(int(spokes), length), 2, "wheel:SPOKES,LENGTH")}


def parse_shape(text: str) -> Shape:
    """Shape from ``square:SIDE``, ``ellipse:A,B`` (semi-axes) or ``wheel:SPOKES,LENGTH`` [m].

    Raises:
        ConfigError: another word, or the wrong numbers.
    """
    name, _, numbers = text.partition(":")
    expected = ", ".join(usage for _, _, usage in _MAKERS.values())
    if name not in _MAKERS:
        raise ConfigError(f"shape {text!r} is not known; expected {expected} [m]")
    make, count, usage = _MAKERS[name]
    try:
        values = [float(number) for number in numbers.split(",")]
    except ValueError:
        values = []
    if len(values) != count:
        raise ConfigError(f"shape {text!r} lacks its {count} number(s); expected {usage} [m]")
    return make(*values)


def read_arrays(path: Path | str, keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """The arrays ``keys``, and those of ``optional`` that are there, of an npz, as floats.

    Raises:
        RecordingError: no such file, not an archive of plain numbers, or one of ``keys`` is missing.
    """
    path = Path(path)
    if not path.is_file():
        raise RecordingError(f"no such recording: {path}")
    try:
        with np.load(path, allow_pickle=False) as file:
            names = list(file.files)
            found = {key: np.asarray(file[key], float) for key in (*keys, *optional) if key in names}
    except (AttributeError, EOFError, OSError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise RecordingError(f"{path} is not a readable npz of plain arrays of numbers: {error}") from error
    missing = [key for key in keys if key not in found]
    if missing:
        raise RecordingError(f"{path} lacks {', '.join(missing)}; expected {', '.join(keys)}, found "
                             f"{', '.join(names) or 'nothing'}")
    return found


def load_drop(path: Path | str, clockwise: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, float]:
    """t (N,), q, v (N, 3) and the interval h [s] of an npz with ``t`` (N,) [s], ``q`` (N, 3) = x, y, theta [m, rad]
    and optionally ``v`` (None where it is absent); y = 0 is the ground.

    ``clockwise`` says that the recorded angle grows clockwise (from y to x); what is returned never does.

    Raises:
        RecordingError: no such file, a key is missing, shapes disagree, or the samples are not evenly spaced.
    """
    found = read_arrays(path, ("t", "q"), ("v",))
    t, q = found["t"], found["q"]
    if t.ndim != 1 or len(t) < 3 or q.shape != (len(t), 3) or found.get("v", q).shape != q.shape:
        raise RecordingError(
            f"{path}: t {t.shape}, q {q.shape}, v {found.get('v', q).shape}; expected (N,), (N, 3), (N, 3), N > 2")
    bad = np.count_nonzero(~np.isfinite(np.column_stack([t, *(found[key] for key in found if key != "t")])).all(axis=1))
    if bad:
        raise RecordingError(f"{path}: {bad} of {len(t)} samples are not finite; cut the drop where they are missing")
    steps = np.diff(t)
    h = float(np.median(steps))
    if not h > 0.0 or np.abs(steps - h).max() > 0.2 * h:
        raise RecordingError(
            f"{path}: samples are {steps.min():.4g} to {steps.max():.4g} s apart; resample them evenly (section 7.2)")
    turn = np.array([1.0, 1.0, -1.0 if clockwise else 1.0])
    return t, turn * np.column_stack([q[:, :2], np.unwrap(q[:, 2])]), turn * found["v"] if "v" in found else None, h
