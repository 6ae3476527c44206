"""m/I, friction and restitution of a cube from recorded tosses: the paper's impact equations in three dimensions.

A homogeneous or symmetric cube has the inertia I times identity, so it flies at constant angular velocity, and an
impact on ONE corner at r from the centre turns it by I dw = r x m dv, whatever the contact did in between (eq. 27
with a vector lever). Impacts are found as bursts between two stretches of free flight; those in which a second corner
comes near the ground are left out, because nothing tells how they share the impulse.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from contact_estimation.exceptions import ConfigError, IdentificationError, RecordingError
from contact_estimation.identify.planar.impacts import least_absolute_ratio
from contact_estimation.identify.planar.stepping import GRAVITY

_FLIGHT = 3               # intervals of free flight averaged on either side of an impact
_LONGEST = 5              # samples an impact may last
_QUIET_V, _QUIET_W = 0.12, 1.2  # m/s, rad/s: change per sample that free flight and tracking noise stay below
_CLEAR = 0.19             # share of the side by which the second-lowest corner must be higher
_HARDEST_SHARE = 0.3      # m/s: smallest normal impulse per unit mass used
_FEWEST = 8


@dataclass(frozen=True)
class CornerImpacts:
    """Single-corner impacts (n): ``toss`` index, sample ``k``, lever ``r`` (n, 3) [m], jumps ``dv`` [m/s] and ``dw``
    [rad/s] (n, 3), velocities of the corner ``slip_before``, ``slip_after`` (n, 3) [m/s]; world axes, z up."""

    toss: np.ndarray
    k: np.ndarray
    r: np.ndarray
    dv: np.ndarray
    dw: np.ndarray
    slip_before: np.ndarray
    slip_after: np.ndarray

    def __len__(self) -> int:
        return len(self.toss)


@dataclass(frozen=True)
class CubeReport:
    """m/I [1/m^2], Coulomb friction and corner restitution with 95 % intervals (bootstrap over tosses);
    ``unexplained`` is the median |dw| the model leaves [rad/s] over the median |dw|."""

    m_over_i: float
    interval: tuple[float, float]
    friction: float
    friction_interval: tuple[float, float]
    restitution: float
    unexplained: float
    impacts: int
    sliding: int
    tosses: int


def load_tosses(path: Path | str) -> list[np.ndarray]:
    """Tosses (N_i, 7) = position [m], quaternion (w, x, y, z), from an npz with ``data`` (rows, 13), ``start``,
    ``length``.

    Raises:
        RecordingError: no such file, a key is missing, shapes or rows disagree, or values are not finite.
    """
    path = Path(path)
    if not path.is_file():
        raise RecordingError(f"no such recording: {path}")
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [key for key in ("data", "start", "length") if key not in file]
            if missing:
                raise RecordingError(f"{path} lacks {', '.join(missing)}; tosses need data, start, length")
            data, start, length = file["data"], file["start"], file["length"]
    except (ValueError, OSError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(f"{path} is not a readable npz of plain arrays: {error}") from error
    if data.ndim != 2 or data.shape[1] != 13 or len(start) != len(length):
        raise RecordingError(f"{path}: data has shape {data.shape}, expected (rows, 13); {len(start)} starts, "
                             f"{len(length)} lengths")
    if len(start) == 0 or np.min(start) < 0 or np.min(length) < 1 or np.max(start + length) > len(data):
        raise RecordingError(f"{path}: start and length do not describe stretches of the {len(data)} rows")
    tosses = [np.hstack([data[s:s + n, 4:7], data[s:s + n, :4]]) for s, n in zip(start, length)]
    if not all(np.isfinite(toss).all() for toss in tosses):
        raise RecordingError(f"{path}: poses that are not finite")
    return tosses


def corner_impacts(tosses: list[np.ndarray], side: float, rate: float) -> CornerImpacts:
    """Every impact on a single corner in ``tosses`` (poses of a cube of ``side`` [m] at ``rate`` [1/s])."""
    if not (np.isfinite(side) and side > 0 and np.isfinite(rate) and rate > 0):
        raise ConfigError(f"side is {side!r} and rate {rate!r}, expected a length [m] and a rate [1/s] greater than 0")
    corners = 0.5 * side * np.array([[i, j, k] for i in (1, -1) for j in (1, -1) for k in (1, -1)], float)
    found = [row for index, toss in enumerate(tosses) for row in _toss_impacts(index, toss, corners, side, rate)]
    columns = list(zip(*found)) or [[]] * 7
    return CornerImpacts(*(np.array(column, int) for column in columns[:2]),
                         *(np.array(column, float).reshape(-1, 3) for column in columns[2:]))


def _toss_impacts(index, toss, corners, side, rate):
    if len(toss) < 2 * _FLIGHT + 3:
        return
    rotation = Rotation.from_quat(toss[:, [4, 5, 6, 3]])
    fall = np.outer(np.arange(len(toss) - 1), [0.0, 0.0, -GRAVITY / rate])
    v = np.diff(toss[:, :3], axis=0) * rate - fall
    w = (rotation[1:] * rotation[:-1].inv()).as_rotvec() * rate
    offsets = np.einsum("nij,cj->nci", rotation.as_matrix(), corners)
    heights = toss[:, None, 2] + offsets[..., 2]
    dv, dw = np.diff(v, axis=0), np.diff(w, axis=0)
    busy = (np.linalg.norm(dv, axis=1) > _QUIET_V) | (np.linalg.norm(dw, axis=1) > _QUIET_W)
    for first, last in _bursts(busy):
        before, after = slice(first - _FLIGHT + 1, first + 1), slice(last + 1, last + 1 + _FLIGHT)
        if before.start < 0 or after.stop > len(v):
            continue
        if busy[before.start:first].any() or busy[last + 1:last + _FLIGHT].any():
            continue
        share = np.maximum(dv[first:last + 1, 2], 0.0)
        if last - first >= _LONGEST or share.sum() < _HARDEST_SHARE:
            continue
        share = share / share.sum()
        middle = int(round(float(np.arange(first, last + 1) @ share))) + 1
        lowest = np.argsort(heights[middle])[:2]
        if heights[middle, lowest[1]] - heights[middle, lowest[0]] < _CLEAR * side:
            continue
        r = share @ offsets[first + 1:last + 2, lowest[0]]
        v0, v1, w0, w1 = v[before].mean(axis=0), v[after].mean(axis=0), w[before].mean(axis=0), w[after].mean(axis=0)
        falling = fall[middle]
        yield index, middle, r, v1 - v0, w1 - w0, v0 + falling + np.cross(w0, r), v1 + falling + np.cross(w1, r)


def _bursts(busy):
    """First and last index of every stretch of busy samples; a single quiet sample does not end one."""
    index = np.flatnonzero(busy)
    if index.size == 0:
        return []
    parts = np.split(index, np.flatnonzero(np.diff(index) > 2) + 1)
    return [(int(part[0]), int(part[-1])) for part in parts]


def identify_cube(tosses: list[np.ndarray], side: float, rate: float, seed: int = 0,
                  resamples: int = 500) -> CubeReport:
    """m/I by least absolute deviation over all components of all single-corner impacts; friction from those that go
    on sliding.

    Raises:
        IdentificationError: fewer than 8 usable impacts, or none of them slides.
    """
    impacts = corner_impacts(tosses, side, rate)
    if len(impacts) < _FEWEST:
        raise IdentificationError(f"{len(impacts)} single-corner impacts between stretches of free flight found in "
                                  f"{len(tosses)} tosses, at least {_FEWEST} are needed; check side ({side} m) and "
                                  f"rate ({rate} 1/s)")
    moment = np.cross(impacts.r, impacts.dv)
    ratio = least_absolute_ratio(moment.ravel(), impacts.dw.ravel())
    slides, friction = _friction(impacts)
    if not slides.any():
        raise IdentificationError(f"none of {len(impacts)} impacts goes on sliding: friction has a lower bound only")
    rng = np.random.default_rng(seed)
    names = np.unique(impacts.toss)
    rows = {name: np.flatnonzero(impacts.toss == name) for name in names}
    ratios, frictions = [], []
    for _ in range(resamples):
        draw = np.concatenate([rows[name] for name in rng.choice(names, len(names))])
        ratios.append(least_absolute_ratio(moment[draw].ravel(), impacts.dw[draw].ravel()))
        sliding = draw[slides[draw]]
        if sliding.size:
            frictions.append(np.median(friction[sliding]))
    left = np.linalg.norm(impacts.dw - ratio * moment, axis=1)
    return CubeReport(ratio, _interval(ratios), float(np.median(friction[slides])), _interval(frictions),
                      float(np.median(-impacts.slip_after[:, 2] / impacts.slip_before[:, 2])),
                      float(np.median(left) / np.median(np.linalg.norm(impacts.dw, axis=1))),
                      len(impacts), int(slides.sum()), len(tosses))


def _friction(impacts):
    """Which impacts slide throughout (corner still moving the same way afterwards), and everyone's impulse ratio."""
    before, after = impacts.slip_before[:, :2], impacts.slip_after[:, :2]
    speed = np.linalg.norm(before, axis=1), np.linalg.norm(after, axis=1)
    along = (before * after).sum(axis=1) / np.maximum(speed[0] * speed[1], 1e-12)
    return (speed[1] > 0.3) & (along > 0.8), np.linalg.norm(impacts.dv[:, :2], axis=1) / impacts.dv[:, 2]


def _interval(values) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
