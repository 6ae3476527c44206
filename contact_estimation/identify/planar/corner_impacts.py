"""Impacts of a tossed cube on one corner: where two free flights cross.

Before and after an impact the cube flies: its centre of mass on a parabola, its attitude at constant angular velocity
(I is nearly I times identity). Both are fitted over several samples that exclude the contact. Where the two parabolas
cross is the centroid of the impulse in time, and the attitude there places the cube.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.planar.cube_shape import cube_corners
from contact_estimation.identify.planar.stepping import GRAVITY
from contact_estimation.identify.planar.tosses import Gauge, Toss, gauge, prepare

_FLIGHT, _FEWEST_SAMPLES = 6, 4  # most and fewest samples of a flight used on either side of an impact
_LONGEST = 3  # samples in a row that an impact may disturb
_CLEAR = 0.05  # share of the side by which the second-lowest corner must be above the ground
_SOFTEST = 0.4  # [m/s] smallest change of velocity used


@dataclass(frozen=True)
class CornerImpacts:
    """Impacts of a cube (n) of which one corner is below the ground; world axes, z up."""

    toss: Indices  # (n,)
    k: Indices  # sample (n,)
    attitude: Array  # body into world axes (n, 3, 3), at the centroid of the impulse
    height: Array  # of the cube's middle over the ground (n,) [m], then
    corner: Array  # from the middle (n, 3) [m]
    centre: Array  # centre of mass (n, 3) [m, body axes from the middle]
    dv: Array  # jump of the centre of mass's velocity (n, 3) [m/s]
    dw: Array  # jump of the angular velocity (n, 3) [rad/s]
    slip_before: Array  # velocity of the corner (n, 3) [m/s]
    slip_after: Array  # (n, 3) [m/s]

    def __len__(self) -> int:
        return len(self.toss)

    def __getitem__(self, rows: Indices | slice | Array) -> CornerImpacts:
        """Return the impacts ``rows`` (indices or mask)."""
        return CornerImpacts(*(value[rows] for value in vars(self).values()))


class Flight(NamedTuple):
    """A flight at a reference time, its attitude ``turn`` @ ``reference``."""

    p: Array
    v: Array
    w: Array
    turn: Array
    reference: Rotation

    def attitude(self, t: float) -> Rotation:
        """Attitude ``t`` [s] after the reference time."""
        return Rotation.from_rotvec(self.turn + t * self.w) * self.reference


class _Crossing(NamedTuple):
    """Two flights of a toss around sample ``origin`` that cross ``t`` [s] after it."""

    toss: int
    origin: float
    t: float
    before: Flight
    after: Flight
    sample: Array  # indices, counted from the crossing on
    share: Array  # how they share the impulse


def corner_impacts(
    tosses: list[Array], side: float, rate: float, frame: Gauge | None = None, centres: Array | None = None
) -> CornerImpacts:
    """Find every impact on a single corner.

    Args:
        tosses: poses (N_i, 7), see :func:`tosses.load_tosses`.
        side: of the cube [m].
        rate: samples per second.
        frame: of the recording; None: gauged here.
        centres: centre of mass of every toss (tosses, 3) [m, its body axes, from the cube's middle]; None: the middle.

    Raises:
        ConfigError, RecordingError: see :func:`tosses.gauge`.
    """
    frame = frame or gauge(tosses, side, rate)
    centres = np.zeros((len(tosses), 3)) if centres is None else centres
    crossings: list[_Crossing] = []
    for index, (poses, centre) in enumerate(zip(tosses, centres)):
        crossings += _crossings(index, prepare(poses, side, rate, frame.scale, centre), rate)
    lag = _spread(crossings) / rate / np.sqrt(np.pi)
    corners = cube_corners(side)
    found: list[tuple[float | Array, ...]] = []
    for crossing in crossings:
        found += _corner_impact(crossing, centres[crossing.toss], corners, frame.ground, lag)
    shapes = (-1,), (-1,), (-1, 3, 3), (-1,), *[(-1, 3)] * 6
    columns = list(zip(*found)) or [()] * len(shapes)
    arrays = [np.array(column, float).reshape(shape) for column, shape in zip(columns, shapes)]
    return CornerImpacts(arrays[0].astype(int), arrays[1].astype(int), *arrays[2:])


def _crossings(index: int, toss: Toss, rate: float) -> Iterator[_Crossing]:
    for (a0, a1), (b0, b1) in pairwise(toss.flights()):
        a0, b1 = max(a0, a1 - _FLIGHT + 1), min(b1, b0 + _FLIGHT - 1)
        if b0 - a1 - 1 > _LONGEST or min(a1 - a0, b1 - b0) + 1 < _FEWEST_SAMPLES:
            continue
        origin = 0.5 * (a1 + b0)
        before, after = fit_flight(toss, a0, a1, origin, rate), fit_flight(toss, b0, b1, origin, rate)
        dv = after.v - before.v
        jumps = np.diff(toss.p[a1 : b0 + 1], n=2, axis=0) * rate + np.array([0.0, 0.0, GRAVITY / rate])
        share = jumps @ dv
        if np.linalg.norm(dv) < _SOFTEST or share.sum() <= 0.0:
            continue
        t = float(np.clip((before.p - after.p) @ dv / (dv @ dv), (a1 - origin) / rate, (b0 - origin) / rate))
        sample = np.asarray(np.arange(a1 + 1, b0) - origin - t * rate)
        yield _Crossing(index, origin, t, before, after, sample, share / share.sum())


def _corner_impact(
    crossing: _Crossing, centre: Array, corners: Array, ground: float, lag: float
) -> Iterator[tuple[float | Array, ...]]:
    """One row of :class:`CornerImpacts`, where a single corner touches."""
    before, after, t = crossing.before, crossing.after, crossing.t
    dv, dw = after.v - before.v, after.w - before.w
    fall = np.array([0.0, 0.0, -GRAVITY * t])
    halfway = Rotation.concatenate([before.attitude(t), after.attitude(t)]).mean()
    attitude = (Rotation.from_rotvec(lag * dw) * halfway).as_matrix()
    middle = before.p + (before.v + 0.5 * fall) * t + lag * dv - attitude @ centre
    offsets = corners @ attitude.T
    lowest, second = np.argsort(offsets[:, 2])[:2]
    if middle[2] + offsets[second, 2] - ground < _CLEAR * np.ptp(corners[:, 0]):
        return
    lever, corner = offsets[lowest] - attitude @ centre, offsets[lowest]
    slip_before, slip_after = (flight.v + fall + np.cross(flight.w, lever) for flight in (before, after))
    k, height = round(crossing.origin), middle[2] - ground
    yield crossing.toss, k, attitude, height, corner, centre, dv, dw, slip_before, slip_after


def _spread(crossings: list[_Crossing]) -> float:
    """Estimate how long impacts last: standard deviation in time [samples] of the force, one for all.

    Each impact alone is mostly noise. An impulse between two samples is split among both, which by itself has the
    variance f (1 - f) of the fraction f; a force of some duration adds its own. The fraction's part, averaged over a
    Gaussian force, is a Fourier series.
    """
    if not crossings:
        return 0.0
    centroids = np.array([crossing.share @ crossing.sample for crossing in crossings])
    variances = np.array([crossing.share @ crossing.sample**2 for crossing in crossings]) - centroids**2
    phase = centroids - np.array([crossing.sample[0] for crossing in crossings])  # of the centroid after a sample
    sigma, n = np.linspace(0.0, 1.5, 151)[:, None, None], np.arange(1, 8)
    waves = np.cos(2 * np.pi * n * phase[:, None]) / (np.pi * n) ** 2
    split = 1.0 / 6.0 - (waves * np.exp(-2.0 * (np.pi * n * sigma) ** 2)).sum(axis=2)
    excess = np.median(variances - sigma[:, 0] ** 2 - split, axis=1)
    return float(sigma[np.argmin(np.abs(excess)), 0, 0])


def fit_flight(toss: Toss, first: int, last: int, origin: float, rate: float) -> Flight:
    """Least-squares flight through samples ``first`` to ``last``, its state at sample ``origin``."""
    index = np.arange(first, last + 1)
    t = (index - origin) / rate
    rows = np.stack([np.ones_like(t), t], axis=1)
    line = np.linalg.lstsq(rows, toss.p[index] + np.outer(0.5 * GRAVITY * t**2, [0.0, 0.0, 1.0]), rcond=None)[0]
    reference = toss.attitude[int(index[len(index) // 2])]
    turning = np.linalg.lstsq(rows, (toss.attitude[index] * reference.inv()).as_rotvec(), rcond=None)[0]
    return Flight(line[0], line[1], turning[1], turning[0], reference)
