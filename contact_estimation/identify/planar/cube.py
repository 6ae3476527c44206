"""m/I, centre of mass, friction and restitution of a cube with any corners, from recorded tosses.

:mod:`cube_model` has the equations. Free flight and every impact determine the centre of mass. A tracker may change
the names of the cube's axes between tosses. The estimate therefore searches the names as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.planar.corner_impacts import CornerImpacts, corner_impacts
from contact_estimation.identify.planar.cube_model import CubeModel, Residuals, fit, name_axes
from contact_estimation.identify.planar.cube_shape import LENGTHS, corner_depth
from contact_estimation.identify.planar.impacts import least_absolute_ratio
from contact_estimation.identify.planar.tosses import Gauge, gauge
from contact_estimation.identify.verdict import Finding, Verdict, conclude

_FEWEST = 20  # impacts
_CONTRADICTION = 0.5  # share of the rotation left unexplained above which nothing is reported
_CHECK = "check the side, and that the quaternions turn body axes into world axes, in the order w, x, y, z"
# Where the search for the centre of mass starts, in sides: the middle, and off it towards a face, an edge, a corner.
_STARTS = 0.05 * np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.7, 0.7], [0.6, 0.6, 0.6]])
_UNEXPLAINED = 0.15  # share of the rotation left unexplained that is let pass
_STRETCH = 0.05  # error of the length unit that is let pass; it is corrected
_SHAPE_BIAS = 0.06  # largest bias of m/I among the simulated blunt cubes
_NAMINGS, _REFITS = 5, 2  # rounds of naming and fitting, and of taking impacts about the centre of mass found
_SLIDES, _SAME_WAY = 0.3, 0.8  # [m/s, cosine] an impact slides throughout if its corner still moves so afterwards


@dataclass(frozen=True)
class CubeReport:
    """What tosses say, with 95 % intervals (bootstrap over tosses, axes keeping their names).

    Attributes:
        m_over_i: mass over inertia about the centre of mass [1/m^2].
        interval: of ``m_over_i`` [1/m^2].
        m_over_i_axes: (3,) [1/m^2] fitted as three values, about the axes of ``centre``.
        m_over_i_corner: [1/m^2] with the sharp corner as contact point and the centre of mass in the middle.
        centre: centre of mass (3,) [m] from the cube's middle, in axes of the model, which ``FittedCube.turns`` turns
            into the body axes of each toss.
        centre_interval: (3, 2) [m] of ``centre``.
        corner_depth: how much nearer the middle a downward corner touches than a sharp one [m].
        compression: depth per speed of touch [s].
        friction: Coulomb coefficient.
        friction_interval: of ``friction``.
        restitution: of a corner, normal velocity after over before an impact (median).
        unexplained: median norm of the change of rotation that the model leaves, over that of the change.
        impacts: number of them.
        sliding: how many of them slide throughout.
        tosses: number of them.
        renamings: how often the body axes were named anew.
        scale: true metres per recorded metre, from free fall (:class:`tosses.Gauge`).
        ground: z of the ground [m, true], positive above the world's origin; 0 where the cube never rests.
    """

    m_over_i: float
    interval: tuple[float, float]
    m_over_i_axes: tuple[float, ...]
    m_over_i_corner: float
    centre: tuple[float, ...]
    centre_interval: tuple[tuple[float, float], ...]
    corner_depth: float
    compression: float
    friction: float
    friction_interval: tuple[float, float]
    restitution: float
    unexplained: float
    impacts: int
    sliding: int
    tosses: int
    renamings: int
    scale: float
    ground: float

    @property
    def interval_total(self) -> tuple[float, float]:
        """Interval of m/I with the bias of a blunt shape outside the fitted family (docs/identify_planar.md)."""
        return self.interval[0] / (1.0 + _SHAPE_BIAS), self.interval[1]

    @property
    def verdict(self) -> Verdict:
        """What the impacts and the length unit say about the model."""
        left = f"{100 * self.unexplained:.0f} % of the change of rotation is unexplained: side, rate or axes are wrong"
        stretch = abs(self.scale - 1.0)
        unit = f"free fall makes a recorded metre {self.scale:.3f} m: check units and the rate"
        return conclude(
            [Finding("unexplained", self.unexplained, _UNEXPLAINED, left), Finding("scale", stretch, _STRETCH, unit)]
        )


@dataclass(frozen=True)
class FittedCube:
    """A model with what it was fitted to."""

    model: CubeModel
    impacts: CornerImpacts
    turns: Array  # names of the axes of every toss (tosses, 3, 3)
    frame: Gauge
    m_over_i_corner: float

    def residuals(self, rows: Indices | slice = slice(None)) -> Residuals:
        """Return what can be compared with the model, of impacts ``rows``."""
        impacts = self.impacts[rows]
        return Residuals(impacts, self.turns[impacts.toss], self.model.side)

    def unexplained(self, model: CubeModel) -> float:
        """Median |dw| that ``model`` leaves over the median |dw|."""
        left = np.linalg.norm(self.residuals().rotation(model), axis=1)
        return float(np.median(left) / np.median(np.linalg.norm(self.impacts.dw, axis=1)))


def fit_cube(tosses: list[Array], side: float, rate: float) -> FittedCube:
    """Fit levers and heights of all single-corner impacts by least absolute deviation.

    Args:
        tosses: poses (N_i, 7), see :func:`tosses.load_tosses`.
        side: of the cube [m].
        rate: samples per second.

    Raises:
        ConfigError, RecordingError: see :func:`tosses.gauge`.
        IdentificationError: fewer than 20 usable impacts, or rotations that contradict the levers.
    """
    frame = gauge(tosses, side, rate)
    impacts = corner_impacts(tosses, side, rate, frame)
    if len(impacts) < _FEWEST:
        raise IdentificationError(
            f"{len(impacts)} single-corner impacts between stretches of free flight found in "
            f"{len(tosses)} tosses, at least {_FEWEST} are needed; check side ({side} m) and "
            f"rate ({rate} 1/s)"
        )
    corner = least_absolute_ratio(np.cross(impacts.corner, impacts.dv).ravel(), impacts.dw.ravel())
    if corner <= 0.0:
        raise IdentificationError(f"m/I came out as {corner:.3g} 1/m^2: rotations contradict the levers; {_CHECK}")
    starts = [CubeModel(side, np.array([corner]), side * start, np.zeros(LENGTHS)) for start in _STARTS]
    searches = [_search(impacts, start, len(tosses)) for start in starts]
    model, turns, _ = min(searches, key=lambda search: search[2])
    for _ in range(_REFITS):
        impacts = corner_impacts(tosses, side, rate, frame, turns @ model.centre)
        model, turns, _ = _search(impacts, model, len(tosses))
    fitted = FittedCube(model, impacts, turns, frame, corner)
    left = fitted.unexplained(model)
    if left > _CONTRADICTION:
        raise IdentificationError(f"no m/I explains the rotations: {100 * left:.0f} % of them is left; {_CHECK}")
    return fitted


def _search(impacts: CornerImpacts, model: CubeModel, tosses: int) -> tuple[CubeModel, Array, float]:
    """Names and model in turn; with what the names cost at the end."""
    for _ in range(_NAMINGS):
        turns, _ = name_axes(impacts, model, tosses)
        model = fit(Residuals(impacts, turns[impacts.toss], model.side), model)
    return model, *name_axes(impacts, model, tosses)


def identify_cube(fitted: FittedCube, seed: int = 0, resamples: int = 200) -> CubeReport:
    """Report a fitted cube with intervals; friction from the impacts that go on sliding.

    Args:
        fitted: what :func:`fit_cube` said.
        seed: of the resampling.
        resamples: of the bootstrap over tosses.

    Raises:
        IdentificationError: no impact slides.
    """
    model, impacts = fitted.model, fitted.impacts
    slides, friction = _friction(impacts)
    if not slides.any():
        raise IdentificationError(f"none of {len(impacts)} impacts goes on sliding: friction has a lower bound only")
    rng, names = np.random.default_rng(seed), np.unique(impacts.toss)
    rows = {name: np.flatnonzero(impacts.toss == name) for name in names}
    models, frictions = [], []
    for _ in range(resamples):
        draw = np.concatenate([rows[name] for name in rng.choice(names, len(names))])
        models.append(fit(fitted.residuals(draw), model, rounds=6))
        sliding = draw[slides[draw]]
        if sliding.size:
            frictions.append(float(np.median(friction[sliding])))
    three = fit(fitted.residuals(), replace(model, ratio=np.repeat(model.ratio, 3)))
    return CubeReport(
        m_over_i=float(model.ratio[0]),
        interval=_interval([float(drawn.ratio[0]) for drawn in models]),
        m_over_i_axes=tuple(map(float, three.ratio)),
        m_over_i_corner=fitted.m_over_i_corner,
        centre=tuple(map(float, model.centre)),
        centre_interval=tuple(_interval([float(drawn.centre[i]) for drawn in models]) for i in range(3)),
        corner_depth=corner_depth(model.lengths),
        compression=float(model.compression),
        friction=float(np.median(friction[slides])),
        friction_interval=_interval(frictions),
        restitution=float(np.median(-impacts.slip_after[:, 2] / impacts.slip_before[:, 2])),
        unexplained=fitted.unexplained(model),
        impacts=len(impacts),
        sliding=int(slides.sum()),
        tosses=len(fitted.turns),
        renamings=int(np.any(fitted.turns[1:] != fitted.turns[:-1], axis=(1, 2)).sum()),
        scale=fitted.frame.scale,
        ground=fitted.frame.ground,
    )


def _friction(impacts: CornerImpacts) -> tuple[Array, Array]:
    """Which impacts slide throughout (n,), and everyone's impulse ratio (n,)."""
    before, after = impacts.slip_before[:, :2], impacts.slip_after[:, :2]
    speed = np.linalg.norm(before, axis=1), np.linalg.norm(after, axis=1)
    along = (before * after).sum(axis=1) / np.maximum(speed[0] * speed[1], 1e-12)
    slides = (speed[1] > _SLIDES) & (along > _SAME_WAY)
    return slides, np.linalg.norm(impacts.dv[:, :2], axis=1) / impacts.dv[:, 2]


def _interval(values: list[float]) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
