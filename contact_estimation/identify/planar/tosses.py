"""Recorded tosses of a cube: their file, their flights, and what they say about their own frame.

Free fall gauges the recording: it must fall at g, so the length unit of the positions is corrected by g over the fall
that was measured. The ground is where the cube comes to rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.identify.planar.recordings import read_arrays
from contact_estimation.identify.planar.stepping import GRAVITY

_QUIET_V, _QUIET_W = 0.12, 1.2  # m/s, rad/s: change per sample that free flight and tracking noise stay below
LONG_FLIGHT = 8                  # samples: shorter flights hardly bend
CLEAR = 0.02                     # share of the side that a corner must stay above the ground for a flight to be one
_STILL_V, _STILL_W = 0.02, 0.2   # m/s, rad/s: at rest
_UPRIGHT = 0.995                 # cosine: a face is down


@dataclass(frozen=True)
class Gauge:
    """What the recording says about its own frame.

    ``scale``: true metres per recorded metre, from free fall (1 without a long flight). ``ground``: height [m, true] of
    the ground, from the cube at rest (0 where it never rests).
    """

    scale: float
    ground: float


def load_tosses(path: Path | str) -> list[np.ndarray]:
    """Tosses (N_i, 7) = position [m], quaternion (w, x, y, z), from an npz with ``data`` (rows, 13 or 7) = quaternion,
    position and anything after it, ``start``, ``length``. Samples that are not finite end a toss; what follows them
    becomes a toss of its own.

    Raises:
        RecordingError: no such file, a key is missing, shapes or rows disagree, no sample is finite, or the quaternions
            are not unit ones.
    """
    data, start, length = read_arrays(path, ("data", "start", "length")).values()
    if data.ndim != 2 or data.shape[1] < 7 or start.ndim != 1 or start.shape != length.shape:
        raise RecordingError(f"{path}: data has shape {data.shape}, expected (rows, 7 or more) = quaternion w, x, y, "
                             f"z, position, ...; start {start.shape}, length {length.shape}, expected as many")
    if not (np.equal(start, np.floor(start)).all() and np.equal(length, np.floor(length)).all()):
        raise RecordingError(f"{path}: start and length must be whole numbers of rows")
    if len(start) == 0 or start.min() < 0 or length.min() < 1 or (start + length).max() > len(data):
        raise RecordingError(f"{path}: start and length do not describe stretches of the {len(data)} rows")
    start, length = start.astype(int), length.astype(int)
    poses = data[:, [4, 5, 6, 0, 1, 2, 3]]
    tosses = [part for s, n in zip(start, length) for part in _finite_parts(poses[s:s + n])]
    if not tosses:
        raise RecordingError(f"{path}: no pose is finite")
    lengths = np.linalg.norm(np.vstack(tosses)[:, 3:], axis=1)
    if np.abs(lengths - 1.0).max() > 0.05:
        raise RecordingError(f"{path}: quaternions have lengths from {lengths.min():.3g} to {lengths.max():.3g}, "
                             "expected 1; columns must be quaternion w, x, y, z, then position")
    return tosses


def _finite_parts(poses):
    good = np.isfinite(poses).all(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], good, [0]])))
    return [poses[a:b] for a, b in edges.reshape(-1, 2)]


@dataclass(frozen=True)
class _Toss:
    """One toss ready for use: positions (N, 3), attitudes, offsets (N, 8, 3) of the corners, and which samples (N,) are
    disturbed by contact (the first and last count as disturbed)."""

    p: np.ndarray
    attitude: Rotation
    offsets: np.ndarray
    disturbed: np.ndarray

    def flights(self):
        """First and last sample of every undisturbed stretch."""
        edges = np.flatnonzero(np.diff(np.concatenate([[1], self.disturbed, [1]])))
        return [(a, b - 1) for a, b in edges.reshape(-1, 2)]

    def long_flights(self, clear):
        """First and last sample of every flight that is long enough to bend and stays ``clear`` [m] of the ground."""
        low = self.p[:, 2] + self.offsets[..., 2].min(axis=1)
        return [(a, b) for a, b in self.flights() if b - a + 1 >= LONG_FLIGHT and low[a:b + 1].min() >= clear]


def prepare(poses, corners, rate, scale, centre=(0.0, 0.0, 0.0)):
    """A toss (N, 7) made ready: true metres by ``scale``, corners (8, 3) [m] placed, contact found by its kinks.

    ``p`` and ``offsets`` of the answer are those of the point ``centre`` (3,) [m, body axes from the cube's middle].
    """
    attitude = Rotation.from_quat(poses[:, [4, 5, 6, 3]])
    p, corners = scale * poses[:, :3] + attitude.apply(centre), corners - np.asarray(centre)
    disturbed = np.ones(len(p), bool)
    if len(p) > 2:
        dv = np.diff(p, n=2, axis=0) * rate + [0.0, 0.0, GRAVITY / rate]
        dw = np.diff((attitude[1:] * attitude[:-1].inv()).as_rotvec(), axis=0) * rate
        disturbed[1:-1] = (np.linalg.norm(dv, axis=1) > _QUIET_V) | (np.linalg.norm(dw, axis=1) > _QUIET_W)
    return _Toss(p, attitude, np.einsum("nij,cj->nci", attitude.as_matrix(), corners), disturbed)


def cube_corners(side: float) -> np.ndarray:
    """The corners (8, 3) [m] of a cube about its centre."""
    return 0.5 * side * np.array([[i, j, k] for i in (1, -1) for j in (1, -1) for k in (1, -1)], float)


def gauge(tosses: list[np.ndarray], side: float, rate: float) -> Gauge:
    """Length scale and ground of a recording, see :class:`Gauge`. z points up, and the ground is near z = 0: flights
    that come near it are not trusted to be flights.

    Raises:
        ConfigError: ``side`` [m] or ``rate`` [1/s] is not greater than 0.
        RecordingError: free fall is off by more than a fifth: side, rate or units are not what was said.
    """
    if not (np.isfinite(side) and side > 0 and np.isfinite(rate) and rate > 0):
        raise ConfigError(f"side is {side!r} and rate {rate!r}, expected a length [m] and a rate [1/s] greater than 0")
    corners = cube_corners(side)
    moment, weight = 0.0, 0.0
    for poses in tosses:
        toss = prepare(poses, corners, rate, 1.0)
        for a, b in toss.long_flights(CLEAR * side):
            t = (np.arange(a, b + 1) - 0.5 * (a + b)) / rate
            curve = t**2 - np.mean(t**2)
            moment, weight = moment + 0.5 * curve @ toss.p[a:b + 1, 2], weight + 0.25 * curve @ curve
    scale = 1.0
    if weight > 0.0:
        fall = -moment / weight
        if not 0.8 * GRAVITY < fall < 1.2 * GRAVITY:
            raise RecordingError(f"in free flight the cube falls at {fall:.3g} m/s^2; check that z points up, "
                                 f"positions are in metres and the rate is {rate:g} 1/s")
        scale = GRAVITY / fall
    heights = [height for poses in tosses for height in _resting_heights(prepare(poses, corners, rate, scale), rate)]
    return Gauge(float(scale), float(np.median(heights)) if heights else 0.0)


def _resting_heights(toss, rate):
    """Height [m] of the face below at every sample at which the cube rests on one."""
    if len(toss.p) < 2:
        return []
    v = np.linalg.norm(np.diff(toss.p, axis=0), axis=1) * rate
    w = np.linalg.norm((toss.attitude[1:] * toss.attitude[:-1].inv()).as_rotvec(), axis=1) * rate
    flat = np.abs(toss.attitude.as_matrix()[:-1, 2]).max(axis=1) > _UPRIGHT
    low = np.sort(toss.p[:-1, None, 2] + toss.offsets[:-1, :, 2], axis=1)[:, :4].mean(axis=1)
    return low[(v < _STILL_V) & (w < _STILL_W) & flat]
