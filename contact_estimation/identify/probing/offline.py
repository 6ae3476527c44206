"""Identify from a recording of a real probing motion."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.runs import bounds
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel

#: Arrays of a recording: name -> trailing shape in the plane and in space (None: any).
_SHAPES = {
    "planar": {"t": (), "pose": (3,), "twist": (3,), "wrench": (3,), "tip": (2,), "phi": ()},
    "spatial": {"t": (), "pose": (4, 4), "twist": (6,), "wrench": (6,), "tip": (3,), "normal": (3,)},
}


def identify_recording(path: Path, example: str, settings: ProbingSettings) -> dict:
    """Filter a recording that begins at first contact.

    Args:
        path: ``.npz`` with ``t`` (T,) [s], ``pose`` (T, 3) [m, m, rad] or (T, 4, 4), ``twist`` and ``wrench`` (T, 3
            or 6; the wrench is that of
            the environment ON the probe in end-effector axes), and the rough guess: ``tip`` (2 or 3,) [m] and ``phi``
            [rad], the surface's angle, or ``normal`` (3,), pointing out of it.
        example: ``planar`` or ``spatial``.
        settings: priors and noise.

    Returns:
        names, units, mean and std of the parameters after the last sample, samples and used samples.

    Raises:
        RecordingError: the file or an array is missing, misshapen, not finite, or time does not advance.
    """
    data = _load(Path(path), _SHAPES[example])
    if example == "planar":
        model = PlanarModel(*bounds(settings))
        start = model.start(settings, data["pose"][0], data["tip"], float(data["phi"]))
    else:
        model = SpatialModel(*bounds(settings), [frame_from_normal(data["normal"])], (0,))
        start = model.start(settings, data["pose"][0], data["tip"])
    estimator = ProbingFilter(model, settings)
    estimator.start(data["t"][0], data["pose"][0], *start)
    used = 0
    for k in range(1, len(data["t"])):
        estimator.step(data["t"][k] - data["t"][k - 1], data["pose"][k], data["twist"][k], data["wrench"][k])
        used += estimator.estimate().used
    estimate = estimator.estimate()
    return {"names": estimate.names, "units": model.units, "mean": estimate.mean, "std": estimate.std,
            "samples": len(data["t"]), "used": used}


def frame_from_normal(normal) -> np.ndarray:
    """A rotation (3, 3) whose third column is ``normal`` (3,), made a unit vector."""
    z = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _load(path, shapes):
    if not path.is_file():
        raise RecordingError(f"no such recording: {path}")
    with np.load(path, allow_pickle=False) as file:
        missing = sorted(set(shapes) - set(file.files))
        if missing:
            raise RecordingError(f"{path} lacks {', '.join(missing)}; expected the arrays {', '.join(shapes)}")
        data = {name: np.asarray(file[name], dtype=float) for name in shapes}
    samples = data["t"].shape
    for name, trailing in shapes.items():
        expected = trailing if name in ("tip", "phi", "normal") else samples + trailing
        if data[name].shape != expected or (name == "t" and (len(samples) != 1 or samples[0] < 2)):
            raise RecordingError(
                f"{path}: {name} has shape {data[name].shape}, expected {expected} with at least two samples"
            )
        if not np.all(np.isfinite(data[name])):
            raise RecordingError(f"{path}: {name} has values that are not finite; repair or cut the recording")
    if np.any(np.diff(data["t"]) <= 0.0):
        raise RecordingError(f"{path}: t does not advance everywhere; sort the samples and drop repeated ones")
    return data
