"""Recorded tosses of a cube: their file, their flights, their frame and length unit.

Free fall calibrates the recording. It must have the acceleration g, so the length unit of the positions is corrected by
g over the measured acceleration. The ground is the height at which the cube comes to rest.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.cube_shape import cube_corners
from contact_estimation.identify.planar.stepping import GRAVITY
from contact_estimation.io.npz import read_arrays

_QUIET_V, _QUIET_W = 0.12, 1.2  # [m/s, rad/s] change per sample that free flight and tracking noise stay below
LONG_FLIGHT = 8  # samples: shorter flights hardly bend
CLEAR = 0.02  # share of the side that a corner must stay above the ground for a flight to be one
_STILL_V, _STILL_W = 0.02, 0.2  # [m/s, rad/s] at rest
_UPRIGHT = 0.995  # cosine: a face is down


class Gauge(NamedTuple):
    """What a recording says about its own frame."""

    scale: float  # true metres per recorded metre, from free fall (1 without a long flight)
    ground: float  # height of the ground [m, true], from the cube at rest (0 where it never rests)


class Toss(NamedTuple):
    """One toss ready for use."""

    p: Array  # positions (N, 3) [m]
    attitude: Rotation  # N rotations, body to world axes
    offsets: Array  # corners (N, 8, 3) [m] from the positions, world axes
    disturbed: npt.NDArray[np.bool_]  # by contact (N,); the first and last count as disturbed

    def flights(self) -> list[tuple[int, int]]:
        """First and last sample of every undisturbed stretch."""
        return [(first, end - 1) for first, end in _stretches(~self.disturbed)]

    def long_flights(self, clear: float) -> list[tuple[int, int]]:
        """First and last sample of every flight that is long enough to bend and stays ``clear`` [m] of the ground."""
        low = self.p[:, 2] + self.offsets[..., 2].min(axis=1)
        return [(a, b) for a, b in self.flights() if b - a + 1 >= LONG_FLIGHT and low[a : b + 1].min() >= clear]


def load_tosses(path: Path | str) -> list[Array]:
    """Tosses (N_i, 7) = position [m], quaternion (w, x, y, z).

    Samples that are not finite end a toss; what follows them becomes a toss of its own.

    Args:
        path: npz with ``data`` (rows, 13 or 7) = quaternion, position and anything after it, ``start``, ``length``.

    Raises:
        RecordingError: no such file, a key is missing, shapes or rows disagree, no sample is finite, or the quaternions
            are not unit ones.
    """
    data, start, length = read_arrays(path, ("data", "start", "length")).values()
    if data.ndim != 2 or data.shape[1] < 7 or start.ndim != 1 or start.shape != length.shape:
        raise RecordingError(
            f"{path}: data has shape {data.shape}, expected (rows, 7 or more) = quaternion w, x, y, "
            f"z, position, ...; start {start.shape}, length {length.shape}, expected as many"
        )
    if not (np.equal(start, np.floor(start)).all() and np.equal(length, np.floor(length)).all()):
        raise RecordingError(f"{path}: start and length must be whole numbers of rows")
    if len(start) == 0 or start.min() < 0 or length.min() < 1 or (start + length).max() > len(data):
        raise RecordingError(f"{path}: start and length do not describe stretches of the {len(data)} rows")
    tosses = []
    for first, count in zip(start.astype(int), length.astype(int)):
        poses = data[first : first + count, [4, 5, 6, 0, 1, 2, 3]]
        tosses += [poses[a:b] for a, b in _stretches(np.asarray(np.isfinite(poses).all(axis=1)))]
    if not tosses:
        raise RecordingError(f"{path}: no pose is finite")
    lengths = np.linalg.norm(np.vstack(tosses)[:, 3:], axis=1)
    if np.abs(lengths - 1.0).max() > 0.05:
        raise RecordingError(
            f"{path}: quaternions have lengths from {lengths.min():.3g} to {lengths.max():.3g}, "
            "expected 1; columns must be quaternion w, x, y, z, then position"
        )
    return tosses


def _stretches(good: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and end index of every run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], good, [0]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def prepare(poses: Array, side: float, rate: float, scale: float, centre: ArrayLike = (0.0, 0.0, 0.0)) -> Toss:
    """Make a toss ready for use; contact shows as a change point of the motion.

    Args:
        poses: (N, 7), see :func:`load_tosses`.
        side: of the cube [m].
        rate: samples per second.
        scale: true metres per recorded metre.
        centre: point (3,) [m, body axes from the cube's middle] that positions and offsets are of.
    """
    attitude = Rotation.from_quat(poses[:, [4, 5, 6, 3]])
    p, corners = scale * poses[:, :3] + attitude.apply(centre), cube_corners(side) - np.asarray(centre)
    disturbed = np.ones(len(p), bool)
    if len(p) > 2:
        dv, dw = velocity_changes(p, attitude, rate)
        dv = dv + np.array([0.0, 0.0, GRAVITY / rate])
        disturbed[1:-1] = (np.linalg.norm(dv, axis=1) > _QUIET_V) | (np.linalg.norm(dw, axis=1) > _QUIET_W)
    return Toss(p, attitude, np.einsum("nij,cj->nci", attitude.as_matrix(), corners), disturbed)


def velocity_changes(p: Array, attitude: Rotation, rate: float) -> tuple[Array, Array]:
    """Find the changes of velocity (N-2, 3) [m/s] and of angular velocity (N-2, 3) [rad/s] from sample to sample."""
    return np.diff(p, n=2, axis=0) * rate, np.diff((attitude[1:] * attitude[:-1].inv()).as_rotvec(), axis=0) * rate


def gauge(tosses: list[Array], side: float, rate: float) -> Gauge:
    """Length scale and ground of a recording.

    z points up, and the ground is near z = 0: flights that come near it are not trusted to be flights.

    Args:
        tosses: poses (N_i, 7), see :func:`load_tosses`.
        side: of the cube [m].
        rate: samples per second.

    Raises:
        ConfigError: ``side`` or ``rate`` is not greater than 0.
        RecordingError: free fall is off by more than a fifth: side, rate or units are not what was said.
    """
    if not (np.isfinite(side) and side > 0 and np.isfinite(rate) and rate > 0):
        raise ConfigError(f"side is {side!r} and rate {rate!r}, expected a length [m] and a rate [1/s] greater than 0")
    moment, weight, scale = 0.0, 0.0, 1.0
    for poses in tosses:
        toss = prepare(poses, side, rate, 1.0)
        for a, b in toss.long_flights(CLEAR * side):
            t = (np.arange(a, b + 1) - 0.5 * (a + b)) / rate
            curve = t**2 - np.mean(t**2)
            moment, weight = moment + 0.5 * curve @ toss.p[a : b + 1, 2], weight + 0.25 * curve @ curve
    if weight > 0.0:
        fall = -moment / weight
        if not 0.8 * GRAVITY < fall < 1.2 * GRAVITY:
            raise RecordingError(
                f"in free flight the cube falls at {fall:.3g} m/s^2; check that z points up, "
                f"positions are in metres and the rate is {rate:g} 1/s"
            )
        scale = float(GRAVITY / fall)
    heights = np.concatenate([_resting_heights(prepare(poses, side, rate, scale), rate) for poses in tosses])
    return Gauge(scale, float(np.median(heights)) if heights.size else 0.0)


def _resting_heights(toss: Toss, rate: float) -> Array:
    """Height [m] of the face below at every sample at which the cube rests on one."""
    if len(toss.p) < 2:
        return np.zeros(0)
    v = np.linalg.norm(np.diff(toss.p, axis=0), axis=1) * rate
    w = np.linalg.norm((toss.attitude[1:] * toss.attitude[:-1].inv()).as_rotvec(), axis=1) * rate
    flat = np.abs(toss.attitude.as_matrix()[:-1, 2]).max(axis=1) > _UPRIGHT
    low = np.sort(toss.p[:-1, None, 2] + toss.offsets[:-1, :, 2], axis=1)[:, :4].mean(axis=1)
    return np.asarray(low[(v < _STILL_V) & (w < _STILL_W) & flat])
