"""m/I, friction and restitution of a cube from recorded tosses: the paper's impact equations in three dimensions.

A homogeneous or symmetric cube has the inertia I times identity, so an impact turns it by I dw = r x m dv, whatever the
contact did in between (eq. 27 with a vector lever). Real corners do not touch at a point: corner and ground give way
by millimetres, and the impulse acts somewhere in the part of the cube that is at the ground, which is all that eq. 26
asks of it (an impulse only where the distance is 0, and never pulling). So r is any point of the triangle in which the
ground cuts the cube, and an impact says nothing while some point there explains its rotation. Taking the corner itself
for r makes every lever too long and m/I too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.planar.impacts import least_absolute_ratio
from contact_estimation.identify.planar.tosses import CornerImpacts, Gauge, corner_impacts, gauge

_FEWEST = 8
_CONTRADICTION = 0.5  # share of the rotation left unexplained above which nothing is reported
_CHECK = "check the side, and that the quaternions turn body axes into world axes, in the order w, x, y, z"
_GRID = np.geomspace(1.0 / 3.0, 3.0, 56)  # m/I searched, in units of the corner's own answer


@dataclass(frozen=True)
class CubeReport:
    """m/I [1/m^2], Coulomb friction and corner restitution with 95 % intervals (bootstrap over tosses).

    ``m_over_i_corner`` is what the corner itself as contact point would give; ``unexplained`` the median |dw| the model
    leaves [rad/s] over the median |dw|; ``scale`` and ``ground`` see :class:`tosses.Gauge`.
    """

    m_over_i: float
    interval: tuple[float, float]
    m_over_i_corner: float
    friction: float
    friction_interval: tuple[float, float]
    restitution: float
    unexplained: float
    impacts: int
    sliding: int
    tosses: int
    scale: float
    ground: float


def identify_cube(tosses: list[np.ndarray], side: float, rate: float, seed: int = 0,
                  resamples: int = 500) -> CubeReport:
    """m/I by least absolute deviation of the rotations of all single-corner impacts; friction from those that go on
    sliding.

    Args:
        tosses: poses (N_i, 7), see :func:`tosses.load_tosses`. side: of the cube [m]. rate: samples per second.

    Raises:
        ConfigError, RecordingError: see :func:`tosses.gauge`.
        IdentificationError: fewer than 8 usable impacts, or none of them slides.
    """
    frame: Gauge = gauge(tosses, side, rate)
    impacts = corner_impacts(tosses, side, rate, frame)
    if len(impacts) < _FEWEST:
        raise IdentificationError(f"{len(impacts)} single-corner impacts between stretches of free flight found in "
                                  f"{len(tosses)} tosses, at least {_FEWEST} are needed; check side ({side} m) and "
                                  f"rate ({rate} 1/s)")
    corner = least_absolute_ratio(np.cross(impacts.r, impacts.dv).ravel(), impacts.dw.ravel())
    if corner <= 0.0:
        raise IdentificationError(f"m/I came out as {corner:.3g} 1/m^2: rotations contradict the levers; {_CHECK}")
    grid = corner * _GRID
    table = np.stack([unexplained_rotation(impacts, ratio) for ratio in grid])
    ratio = minimize_scalar(lambda k: unexplained_rotation(impacts, k).sum(), method="bounded",
                            bounds=_around(grid, table.sum(axis=1)), options={"xatol": 1e-4 * corner}).x
    left = np.median(unexplained_rotation(impacts, ratio)) / np.median(np.linalg.norm(impacts.dw, axis=1))
    if left > _CONTRADICTION:
        raise IdentificationError(f"no m/I explains the rotations: {100 * left:.0f} % of them is left; {_CHECK}")
    slides, friction = _friction(impacts)
    if not slides.any():
        raise IdentificationError(f"none of {len(impacts)} impacts goes on sliding: friction has a lower bound only")
    rng = np.random.default_rng(seed)
    names = np.unique(impacts.toss)
    rows = {name: np.flatnonzero(impacts.toss == name) for name in names}
    ratios, frictions = [], []
    for _ in range(resamples):
        draw = np.concatenate([rows[name] for name in rng.choice(names, len(names))])
        ratios.append(_grid_minimum(grid, table[:, draw].sum(axis=1)))
        sliding = draw[slides[draw]]
        if sliding.size:
            frictions.append(np.median(friction[sliding]))
    return CubeReport(float(ratio), _interval(ratios), corner, float(np.median(friction[slides])), _interval(frictions),
                      float(np.median(-impacts.slip_after[:, 2] / impacts.slip_before[:, 2])),
                      float(left),
                      len(impacts), int(slides.sum()), len(tosses), frame.scale, frame.ground)


def unexplained_rotation(impacts: CornerImpacts, ratio: float) -> np.ndarray:
    """Smallest |dw - ratio r x dv| (n,) [rad/s] over all r in the section of cube and ground."""
    turned = ratio * np.cross(impacts.section, impacts.dv[:, None, :])
    return _distance_to_triangle(impacts.dw, turned)


def _distance_to_triangle(point, corners):
    """Distances (n,) of points (n, 3) from triangles (n, 3, 3), corners in rows; triangles may be degenerate."""
    origin, first, second = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    away = point - origin
    a, b, c = (first * first).sum(1), (first * second).sum(1), (second * second).sum(1)
    d, e = (first * away).sum(1), (second * away).sum(1)
    area = a * c - b * b
    flat = area <= 1e-9 * np.maximum(a * c, 1e-30)
    s, t = (c * d - b * e) / np.where(flat, 1.0, area), (a * e - b * d) / np.where(flat, 1.0, area)
    inside = ~flat & (s >= 0.0) & (t >= 0.0) & (s + t <= 1.0)
    plane = np.linalg.norm(away - s[:, None] * first - t[:, None] * second, axis=1)
    edges = [_distance_to_segment(point, corners[:, i], corners[:, (i + 1) % 3]) for i in range(3)]
    return np.where(inside, plane, np.min(edges, axis=0))


def _distance_to_segment(point, start, end):
    along = end - start
    share = np.clip(((point - start) * along).sum(1) / np.maximum((along * along).sum(1), 1e-30), 0.0, 1.0)
    return np.linalg.norm(point - start - share[:, None] * along, axis=1)


def _around(grid, cost):
    best = int(np.argmin(cost))
    return grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]


def _grid_minimum(grid, cost):
    """Where a parabola through the lowest three of a grid has its minimum."""
    best = int(np.clip(np.argmin(cost), 1, len(grid) - 2))
    x, y = np.log(grid[best - 1:best + 2]), cost[best - 1:best + 2]
    bend = y[0] - 2.0 * y[1] + y[2]
    if bend <= 0.0:
        return float(grid[best])
    return float(np.exp(x[1] + np.clip(0.5 * (y[0] - y[2]) / bend, -1.0, 1.0) * (x[1] - x[0])))


def _friction(impacts):
    """Which impacts slide throughout (corner still moving the same way afterwards), and everyone's impulse ratio."""
    before, after = impacts.slip_before[:, :2], impacts.slip_after[:, :2]
    speed = np.linalg.norm(before, axis=1), np.linalg.norm(after, axis=1)
    along = (before * after).sum(axis=1) / np.maximum(speed[0] * speed[1], 1e-12)
    return (speed[1] > 0.3) & (along > 0.8), np.linalg.norm(impacts.dv[:, :2], axis=1) / impacts.dv[:, 2]


def _interval(values) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
