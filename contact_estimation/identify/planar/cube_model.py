"""One model of all corner impacts of a cube: m/I, centre of mass, blunt shape and compression, fitted together.

An impact turns a cube by I dw = r x m dv, with r from the centre of mass to the contact point. Rotations alone cannot
separate m/I from the length of r, because a blunt corner shortens every lever. Heights can: the height of the cube's
middle at touch is the support function of the shape, and its gradient is the contact point. Both are fitted together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from contact_estimation.identify.arrays import Array, cross
from contact_estimation.identify.planar.corner_impacts import CornerImpacts
from contact_estimation.identify.planar.cube_shape import LENGTHS, cheapest_sequence, cube_turns, norms

_QUADRATIC = 0.3  # residuals below this many scales count squared, above by their size
_LEAST_SCALE = 1e-3  # of the side: scales of the residuals are not taken for smaller
_ROBUST = 1.4826  # standard deviation of a Gaussian over its median absolute value
_NAMING = 0.01  # of the side: lever error that costs 1 when axes are named
_WORST = 10.0  # most that one impact may cost then
_CHANGE = 3.0  # cost of axes being named anew


@dataclass(frozen=True)
class CubeModel:
    """A cube with its centre of mass and its blunt corners; leading axes (...) hold several at once."""

    side: float  # [m]
    ratio: Array  # m/I about the centre of mass (..., 1 or 3: along the axes of ``centre``) [1/m^2]
    centre: Array  # centre of mass (..., 3) [m, from the middle]
    lengths: Array  # of the shape (..., 3) [m], see :mod:`cube_shape`
    compression: float | Array = 0.0  # depth per speed of touch (...) [s]

    def vector(self) -> Array:
        """Unknowns as one vector: logarithm of m/I, centre, lengths, compression."""
        return np.concatenate([np.log(self.ratio), self.centre, self.lengths, [self.compression]])

    def moved(self, vectors: Array) -> CubeModel:
        """Return the same cube with the unknowns ``vectors`` (..., u)."""
        ratios = self.ratio.shape[-1]
        ratio, centre, lengths = vectors[..., :ratios], vectors[..., ratios : ratios + 3], vectors[..., ratios + 3 : -1]
        compression = vectors[..., -1] if vectors.ndim > 1 else float(vectors[-1])
        return replace(self, ratio=np.exp(ratio), centre=centre, lengths=lengths, compression=compression)


class Residuals:
    """What models leave of impacts.

    All are in metres, so that they can be weighed against each other: of rotations the change of lever that would
    explain them, of heights as they are. Several models have leading axes (...).

    Args:
        impacts: the n impacts.
        turns: names of the axes of each impact's toss (..., n, 3, 3), model to body axes.
        side: of the cube [m].
    """

    def __init__(self, impacts: CornerImpacts, turns: Array, side: float) -> None:
        self.impacts, self.axes = impacts, impacts.attitude @ turns
        self.heights, points = norms(-impacts.attitude[:, 2], 0.5 * side)
        self.points = impacts.attitude @ points
        self.centre = np.einsum("nij,nj->ni", impacts.attitude, impacts.centre)
        self._jumps = np.linalg.norm(impacts.dv, axis=1, keepdims=True)  # (n, 1) [m/s]
        self._touch = np.maximum(-impacts.slip_before[:, 2], 0.0)  # speed of touch (n,) [m/s]

    def turning(self, model: CubeModel) -> tuple[Array, Array]:
        """Levers from the centre of mass (..., n, 3) [m] and its jumps of velocity (..., n, 3) [m/s], world axes."""
        centre = (self.axes @ model.centre[..., None, :, None])[..., 0]
        dv = self.impacts.dv + cross(self.impacts.dw, centre - self.centre)
        return (self.points @ _with_one(model.lengths)[..., None, :, None])[..., 0] - centre, dv

    def rotation(self, model: CubeModel) -> Array:
        """Dw - m/I r x dv (..., n, 3) [rad/s]."""
        moment, ratio = cross(*self.turning(model)), model.ratio[..., None, :]
        if model.ratio.shape[-1] == 1:
            return np.asarray(self.impacts.dw - ratio * moment)
        inside = np.einsum("...nji,...nj->...ni", self.axes, moment)
        return np.asarray(self.impacts.dw - np.einsum("...nij,...nj->...ni", self.axes, ratio * inside))

    def levers(self, model: CubeModel) -> Array:
        """Return the same as lengths (..., n, 3) [m]."""
        return np.asarray(self.rotation(model) / (np.mean(model.ratio, axis=-1)[..., None, None] * self._jumps))

    def height(self, model: CubeModel) -> Array:
        """Return the recorded height of the middle minus the model's (..., n) [m]."""
        support = (self.heights @ _with_one(model.lengths)[..., None])[..., 0]
        return np.asarray(self.impacts.height - support + np.asarray(model.compression)[..., None] * self._touch)

    def stacked(self, model: CubeModel) -> Array:
        """Levers and height (..., n, 4) [m]."""
        return np.concatenate([self.levers(model), self.height(model)[..., None]], axis=-1)


def _with_one(lengths: Array) -> Array:
    """Return the weights (..., 4) of the norms: 1 of the sharp cube, then ``lengths`` (..., 3)."""
    return np.concatenate([np.ones((*lengths.shape[:-1], 1)), lengths], axis=-1)


def fit(residuals: Residuals, model: CubeModel, rounds: int = 25, hold_ratio: bool = False) -> CubeModel:
    """Least absolute deviation of levers (as vectors) and heights, each by their own median.

    Gauss-Newton on reweighted squares; the scales and weights are those of the last step.

    Args:
        residuals: of the impacts.
        model: start.
        rounds: at most.
        hold_ratio: m/I stays.
    """
    least, ratios = _LEAST_SCALE * model.side, len(model.ratio)
    # Differences and largest steps: of the logarithm of m/I, then of the lengths [m] (and, alike, of compression).
    widths = np.concatenate([np.full(ratios, 1e-4), np.full(4 + LENGTHS, 1e-3 * least)])
    limits = np.concatenate([np.full(ratios, 0.2), np.full(4 + LENGTHS, 0.05 * model.side)])
    x = model.vector()
    free = np.arange(ratios if hold_ratio else 0, len(x))
    for _ in range(rounds):
        now = residuals.stacked(model.moved(x))
        lever, height = np.linalg.norm(now[:, :3], axis=1), np.abs(now[:, 3])
        scales = [max(_ROBUST * float(np.median(size)), least) for size in (lever, height)]
        # A vector of three noisy components has a median length of about 1.5 of their scale.
        scales[0] = max(scales[0] / 1.5, least)
        weight = np.column_stack([*[_weights(lever, scales[0])] * 3, _weights(height, scales[1])])
        moved = residuals.stacked(model.moved(x + np.diag(widths)[free]))  # (free, n, 4)
        columns = (moved - now) * weight / widths[free, None, None]
        rows = np.moveaxis(columns, 0, -1).reshape(-1, len(free))
        step = np.linalg.lstsq(rows, -(now * weight).ravel(), rcond=1e-8)[0]
        x[free] += np.clip(step, -limits[free], limits[free])
        if np.all(np.abs(step) < 0.1 * widths[free]):
            break
    return model.moved(x)


def _weights(size: Array, scale: float) -> Array:
    return 1.0 / np.sqrt(scale * np.maximum(size, _QUADRATIC * scale))


def name_axes(impacts: CornerImpacts, model: CubeModel, tosses: int) -> tuple[Array, float]:
    """How the axes of every toss are named: turns (tosses, 3, 3), model to body axes, and what they cost."""
    turns = cube_turns()
    left = Residuals(impacts, turns[:, None], model.side).levers(model)  # (24, n, 3)
    size = np.minimum(np.linalg.norm(left, axis=2) / (_NAMING * model.side), _WORST)
    costs = [np.bincount(impacts.toss, each, tosses) for each in size]
    names, cost = cheapest_sequence(np.array(costs).T, _CHANGE)
    return turns[names], cost
