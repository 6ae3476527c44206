"""Impacts of a tossed cube on one corner: where two free flights cross.

Before and after an impact the cube flies: its centre of mass on a parabola, its attitude at constant angular velocity
(I is nearly I times identity). Both are fitted over several samples that exclude the contact; where the two parabolas
cross is the centroid of the impulse in time, and the attitude there places the cube.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from contact_estimation.identify.planar.stepping import GRAVITY
from contact_estimation.identify.planar.tosses import Gauge, cube_corners, gauge, prepare

_FLIGHT, _FEWEST_SAMPLES = 6, 4  # most and fewest samples of a flight used on either side of an impact
_LONGEST = 3                     # samples in a row that an impact may disturb
_CLEAR = 0.05  # share of the side by which the second-lowest corner must be above the ground
_SOFTEST = 0.4                   # m/s: smallest change of velocity used


@dataclass(frozen=True)
class CornerImpacts:
    """Impacts of a cube (n) of which one corner is below the ground; world axes, z up.

    ``toss`` and sample ``k`` [indices]; ``attitude`` (n, 3, 3) turns body into world axes; ``height`` (n,) of the
    cube's middle over the ground [m], both at the centroid of the impulse; ``corner`` (n, 3) from the middle [m].
    Of the centre of mass: its place ``centre`` (n, 3) [m, body axes from the middle] and its jump ``dv`` (n, 3) [m/s].
    Jump ``dw`` (n, 3) of the angular velocity [rad/s]; velocity of the corner ``slip_before``, ``slip_after`` (n, 3).
    """

    toss: np.ndarray
    k: np.ndarray
    attitude: np.ndarray
    height: np.ndarray
    corner: np.ndarray
    centre: np.ndarray
    dv: np.ndarray
    dw: np.ndarray
    slip_before: np.ndarray
    slip_after: np.ndarray

    def __len__(self) -> int:
        return len(self.toss)

    def __getitem__(self, rows) -> CornerImpacts:
        """The impacts ``rows`` (indices or mask)."""
        return CornerImpacts(*(value[rows] for value in vars(self).values()))


def corner_impacts(tosses: list[np.ndarray], side: float, rate: float, frame: Gauge | None = None,
                   centres: np.ndarray | None = None) -> CornerImpacts:
    """Every impact on a single corner in ``tosses`` (poses of a cube of ``side`` [m] at ``rate`` [1/s]).

    Args:
        centres: centre of mass of every toss (tosses, 3) [m, its body axes, from the cube's middle]; None: the middle.

    Raises:
        ConfigError, RecordingError: see :func:`tosses.gauge`.
    """
    frame = frame or gauge(tosses, side, rate)
    centres = np.zeros((len(tosses), 3)) if centres is None else centres
    corners = cube_corners(side)
    crossings = [crossing for index, (poses, centre) in enumerate(zip(tosses, centres))
                 for crossing in _crossings(index, prepare(poses, corners, rate, frame.scale, centre), rate)]
    lag = _spread(crossings) / rate / np.sqrt(np.pi)
    found = [row for crossing in crossings
             for row in _corner_impact(crossing, centres[crossing.toss], corners, rate, frame.ground, lag)]
    columns = list(zip(*found)) or [[]] * 10
    shapes = (-1,), (-1,), (-1, 3, 3), (-1,), *[(-1, 3)] * 6
    return CornerImpacts(*(np.array(column, int if i < 2 else float).reshape(shape)
                           for i, (column, shape) in enumerate(zip(columns, shapes))))


@dataclass(frozen=True)
class _Crossing:
    """Two flights of toss ``toss`` around sample ``origin`` that cross ``t`` [s] after it, and how the samples from the
    crossing on, counted in ``index``, share the impulse."""

    toss: int
    origin: float
    t: float
    before: _Flight
    after: _Flight
    index: np.ndarray
    share: np.ndarray


def _crossings(index, toss, rate):
    flights = toss.flights()
    for (a0, a1), (b0, b1) in zip(flights, flights[1:]):
        a0, b1 = max(a0, a1 - _FLIGHT + 1), min(b1, b0 + _FLIGHT - 1)
        if b0 - a1 - 1 > _LONGEST or min(a1 - a0, b1 - b0) + 1 < _FEWEST_SAMPLES:
            continue
        origin = 0.5 * (a1 + b0)
        before, after = _flight(toss, a0, a1, origin, rate), _flight(toss, b0, b1, origin, rate)
        dv = after.v - before.v
        kinks = np.diff(toss.p[a1:b0 + 1], n=2, axis=0) * rate + [0.0, 0.0, GRAVITY / rate]
        share = kinks @ dv
        if np.linalg.norm(dv) < _SOFTEST or share.sum() <= 0.0:
            continue
        t = float(np.clip((before.p - after.p) @ dv / (dv @ dv), (a1 - origin) / rate, (b0 - origin) / rate))
        yield _Crossing(index, origin, t, before, after, np.arange(a1 + 1, b0) - origin - t * rate, share / share.sum())


def _corner_impact(crossing, mass_centre, corners, rate, ground, lag):
    before, after, t = crossing.before, crossing.after, crossing.t
    dv, dw = after.v - before.v, after.w - before.w
    fall = np.array([0.0, 0.0, -GRAVITY * t])
    halfway = Rotation.concatenate([before.attitude(t), after.attitude(t)]).mean()
    attitude = (Rotation.from_rotvec(lag * dw) * halfway).as_matrix()
    middle = before.p + (before.v + 0.5 * fall) * t + lag * dv - attitude @ mass_centre
    offsets = corners @ attitude.T
    heights = middle[2] + offsets[:, 2] - ground
    lowest, second = np.argsort(heights)[:2]
    if heights[second] < _CLEAR * np.ptp(corners[:, 0]):
        return
    lever = offsets[lowest] - attitude @ mass_centre
    yield (crossing.toss, int(round(crossing.origin)), attitude, middle[2] - ground, offsets[lowest], mass_centre, dv,
           dw, before.v + fall + np.cross(before.w, lever), after.v + fall + np.cross(after.w, lever))


def _spread(crossings) -> float:
    """Standard deviation in time [samples] of the force of an impact, one for all: each alone is mostly noise.

    An impulse between two samples is split among both, which by itself has the variance f (1 - f) of the fraction f; a
    force of some duration adds its own. The fraction's part, averaged over a Gaussian force, is a Fourier series.
    """
    if not crossings:
        return 0.0
    centroids = np.array([crossing.share @ crossing.index for crossing in crossings])
    variances = np.array([crossing.share @ crossing.index**2 for crossing in crossings]) - centroids**2
    phase = centroids - [crossing.index[0] for crossing in crossings]  # of the centroid after a sample
    sigma, n = np.linspace(0.0, 1.5, 151)[:, None, None], np.arange(1, 8)
    waves = np.cos(2 * np.pi * n * phase[:, None]) / (np.pi * n)**2
    split = 1.0 / 6.0 - (waves * np.exp(-2.0 * (np.pi * n * sigma)**2)).sum(axis=2)
    excess = np.median(variances - sigma[:, 0]**2 - split, axis=1)
    return float(sigma[np.argmin(np.abs(excess)), 0, 0])


@dataclass(frozen=True)
class _Flight:
    """A flight at a reference time: position, velocity, angular velocity, and attitude ``turn`` @ ``reference``."""

    p: np.ndarray
    v: np.ndarray
    w: np.ndarray
    turn: np.ndarray
    reference: Rotation

    def attitude(self, t: float) -> Rotation:
        """Attitude ``t`` [s] after the reference time."""
        return Rotation.from_rotvec(self.turn + t * self.w) * self.reference


def _flight(toss, first, last, origin, rate) -> _Flight:
    """Least-squares flight through samples ``first`` to ``last``, its state at sample ``origin``."""
    index = np.arange(first, last + 1)
    t = (index - origin) / rate
    rows = np.stack([np.ones_like(t), t], axis=1)
    line = np.linalg.lstsq(rows, toss.p[index] + np.outer(0.5 * GRAVITY * t**2, [0.0, 0.0, 1.0]), rcond=None)[0]
    reference = toss.attitude[int(index[len(index) // 2])]
    turning = np.linalg.lstsq(rows, (toss.attitude[index] * reference.inv()).as_rotvec(), rcond=None)[0]
    return _Flight(line[0], line[1], turning[1], turning[0], reference)
