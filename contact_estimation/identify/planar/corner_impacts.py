"""Impacts of a tossed cube on one corner: where two free flights cross.

Before and after an impact the cube flies: its centre of mass on a parabola, its attitude at constant angular velocity
(I is nearly I times identity). Both are fitted over several samples that exclude the contact. Where the two parabolas
cross is the centroid of the impulse in time, and the attitude there places the cube.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from contact_estimation.identify.arrays import Array, Indices, cross
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


class Flights(NamedTuple):
    """Flights (f) at their reference times, attitudes ``turn`` @ ``reference``."""

    p: Array  # (f, 3) [m]
    v: Array  # (f, 3) [m/s]
    w: Array  # (f, 3) [rad/s]
    turn: Array  # (f, 3) [rad]
    reference: Rotation  # f rotations

    def attitude(self, t: Array) -> Rotation:
        """Attitudes ``t`` (f,) [s] after the reference times."""
        return Rotation.from_rotvec(self.turn + t[:, None] * self.w) * self.reference

    def take(self, rows: Indices) -> Flights:
        """Return the flights ``rows`` only."""
        return Flights(*(part[rows] for part in self))


class _Crossings(NamedTuple):
    """Pairs (n) of flights of a toss around sample ``origin`` that cross ``t`` [s] after it."""

    toss: Indices  # (n,)
    origin: Array  # (n,)
    t: Array  # (n,) [s]
    before: Flights
    after: Flights
    forces: list[tuple[Array, Array]]  # samples counted from the crossing on, and how they share the impulse


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
    prepared = [prepare(poses, side, rate, frame.scale, centre) for poses, centre in zip(tosses, centres)]
    crossings = _crossings(prepared, rate)
    if not len(crossings.toss):
        none, vectors = np.zeros(0, int), np.zeros((6, 0, 3))
        return CornerImpacts(none, none, np.zeros((0, 3, 3)), np.zeros(0), *vectors)
    lag = _spread(crossings.forces) / rate / np.sqrt(np.pi)
    return _single_corners(crossings, centres[crossings.toss], cube_corners(side), frame.ground, lag)


def _crossings(tosses: list[Toss], rate: float) -> _Crossings:
    spans = []  # toss, first and last sample of the flight before, and of the one after
    for index, toss in enumerate(tosses):
        for (a0, a1), (b0, b1) in pairwise(toss.flights()):
            a0, b1 = max(a0, a1 - _FLIGHT + 1), min(b1, b0 + _FLIGHT - 1)
            if b0 - a1 - 1 <= _LONGEST and min(a1 - a0, b1 - b0) + 1 >= _FEWEST_SAMPLES:
                spans.append((index, a0, a1, b0, b1))
    table = np.array(spans, int).reshape(-1, 5)
    of_toss, ends = table[:, 0], table[:, 1:]
    origin = 0.5 * (ends[:, 1] + ends[:, 2])
    p, attitude = np.concatenate([toss.p for toss in tosses]), Rotation.concatenate([toss.attitude for toss in tosses])
    starts = np.cumsum([0, *(len(toss.p) for toss in tosses)])[of_toss]  # samples before each toss
    pair = [
        fit_flights(p, attitude, starts[:, None] + span, starts + origin, rate) for span in (ends[:, :2], ends[:, 2:])
    ]
    kept, times, forces = [], [], []
    for i, (index, _, a1, b0, _) in enumerate(spans):
        dv = pair[1].v[i] - pair[0].v[i]
        jumps = np.diff(tosses[index].p[a1 : b0 + 1], n=2, axis=0) * rate + np.array([0.0, 0.0, GRAVITY / rate])
        share = jumps @ dv
        if np.linalg.norm(dv) < _SOFTEST or share.sum() <= 0.0:
            continue
        cross_at = float((pair[0].p[i] - pair[1].p[i]) @ dv / (dv @ dv))
        t = min(max(cross_at, (a1 - origin[i]) / rate), (b0 - origin[i]) / rate)
        kept.append(i)
        times.append(t)
        forces.append((np.arange(a1 + 1, b0) - origin[i] - t * rate, share / share.sum()))
    rows = np.array(kept, int)
    return _Crossings(of_toss[rows], origin[rows], np.array(times), pair[0].take(rows), pair[1].take(rows), forces)


def _single_corners(crossings: _Crossings, centres: Array, corners: Array, ground: float, lag: float) -> CornerImpacts:
    """Return the impacts at which a single corner touches; ``centres`` (n, 3) of mass."""
    toss, origin, t, before, after, _ = crossings
    dv, dw, each = after.v - before.v, after.w - before.w, np.arange(len(t))
    fall = np.outer(t, [0.0, 0.0, -GRAVITY])
    both = np.stack([flights.attitude(t).as_quat() for flights in (before, after)], axis=1)  # (n, 2, 4)
    halfway = np.linalg.eigh(both.swapaxes(1, 2) @ both)[1][..., -1]  # mean quaternion: q q^T has no sign
    attitude = (Rotation.from_rotvec(lag * dw) * Rotation(halfway, normalize=False)).as_matrix()
    offset = (attitude @ centres[..., None])[..., 0]
    middle = before.p + (before.v + 0.5 * fall) * t[:, None] + lag * dv - offset
    placed = corners @ attitude.swapaxes(1, 2)  # (n, 8, 3)
    lowest, next_one = np.argsort(placed[..., 2], axis=1)[:, :2].T
    corner, height = placed[each, lowest], middle[:, 2] - ground
    slips = [flights.v + fall + cross(flights.w, corner - offset) for flights in (before, after)]
    found = CornerImpacts(toss, np.round(origin).astype(int), attitude, height, corner, centres, dv, dw, *slips)
    return found[height + placed[each, next_one, 2] >= _CLEAR * np.ptp(corners[:, 0])]


def _spread(forces: list[tuple[Array, Array]]) -> float:
    """Estimate how long impacts last: standard deviation in time [samples] of the force, one for all.

    Each impact alone is mostly noise. An impulse between two samples is split among both, which by itself has the
    variance f (1 - f) of the fraction f; a force of some duration adds its own. The fraction's part, averaged over a
    Gaussian force, is a Fourier series.
    """
    centroids = np.array([share @ sample for sample, share in forces])
    variances = np.array([share @ sample**2 for sample, share in forces]) - centroids**2
    phase = centroids - np.array([sample[0] for sample, _ in forces])  # of the centroid after a sample
    sigma, n = np.linspace(0.0, 1.5, 151)[:, None, None], np.arange(1, 8)
    waves = np.cos(2 * np.pi * n * phase[:, None]) / (np.pi * n) ** 2
    split = 1.0 / 6.0 - (waves * np.exp(-2.0 * (np.pi * n * sigma) ** 2)).sum(axis=2)
    excess = np.median(variances - sigma[:, 0] ** 2 - split, axis=1)
    return float(sigma[np.argmin(np.abs(excess)), 0, 0])


def fit_flights(p: Array, attitude: Rotation, spans: Indices, origins: Array, rate: float) -> Flights:
    """Least-squares flights, those with samples alike together.

    Args:
        p: positions (N, 3) [m].
        attitude: N rotations.
        spans: first and last sample (f, 2) of each flight.
        origins: samples (f,) of the reference times; they may lie between two.
        rate: samples per second.
    """
    states = np.zeros((len(spans), 2, 6))
    middle = spans[:, 0] + (spans[:, 1] - spans[:, 0] + 1) // 2
    kinds = np.column_stack([spans[:, 0] - origins, spans[:, 1] - origins])
    for kind in np.unique(kinds, axis=0):
        at = np.flatnonzero((kinds == kind).all(axis=1))
        count = int(kind[1] - kind[0]) + 1
        index, t = spans[at, :1] + np.arange(count), (kind[0] + np.arange(count)) / rate
        fallen = p[index] + np.outer(0.5 * GRAVITY * t**2, [0.0, 0.0, 1.0])
        turned = (attitude[index.ravel()] * attitude[np.repeat(middle[at], count)].inv()).as_rotvec()
        values = np.concatenate([fallen, turned.reshape(-1, count, 3)], axis=-1).swapaxes(0, 1)  # (count, m, 6)
        rows = np.stack([np.ones_like(t), t], axis=1)
        solved = np.linalg.lstsq(rows, values.reshape(count, -1), rcond=None)[0]
        states[at] = solved.reshape(2, -1, 6).swapaxes(0, 1)
    return Flights(states[:, 0, :3], states[:, 1, :3], states[:, 1, 3:], states[:, 0, 3:], attitude[middle])
