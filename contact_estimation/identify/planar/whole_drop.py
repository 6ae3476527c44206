"""Fit a whole drop by time stepping (paper 5, eq. 8): first state, m/I and one restitution; modes follow from them.

A search explains the first impacts only. The later ones, down to rest, are sensitive to m/I: each bounce magnifies what
an earlier one left open. The fit therefore grows with the drop. Where it does not explain the samples that a stretch
adds, an impact happens in another step or at another contact. No derivative leads there, so the next fits start from
samples of the last stretch's posterior. The result counts where it explains every sample as well as noise allows.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.drop_fit import DropFit
from contact_estimation.identify.planar.drop_model import DropProblem, drop_jumps, restitution
from contact_estimation.identify.planar.levenberg_marquardt import Minimum, Search, minimise
from contact_estimation.identify.planar.shapes import ratio_bounds
from contact_estimation.identify.planar.stepping import FallingBody, fall

_DIFFERENCE = 1e-6  # of the derivatives, in units of the unknowns
_SEARCH = Search(tolerance=0.1, iterations=30)
_GROWTH = 1.2  # of the samples from stretch to stretch
_SURPRISING, _MISFIT = 2.0, 5.0  # standard deviations of chi-square: other starts are tried; a drop is not explained
_SPREADS = np.linspace(0.25, 4.0, 40)  # standard deviations of the posterior, one per sample: beyond it as well
_FITTED = 3  # starts of lowest cost that are fitted
_VAGUEST = 1e3  # largest standard deviation of a direction, in units of the best known ones


class WholeDrop(NamedTuple):
    """Fit of a whole drop.

    Attributes:
        m_over_i: m/I [1/m^2].
        std: its standard deviation.
    """

    m_over_i: float
    std: float


class _SteppedDrop:
    """A drop by time stepping.

    Args:
        problem: recorded states and their noise.
        u: first state (6,), m/I [1/m^2] and restitution.
    """

    def __init__(self, problem: DropProblem, u: Array) -> None:
        self.u, self._problem = u, problem
        self.residual = self._residual(u)

    @property
    def cost(self) -> float:
        """Sum of squares."""
        return float(self.residual @ self.residual)

    @cached_property
    def jacobian(self) -> Array:
        """Derivative of the residuals (6 N, 8), by differences."""
        shifted = [self._residual(self.u + step) for step in _DIFFERENCE * np.eye(self.u.size)]
        return np.stack([(each - self.residual) / _DIFFERENCE for each in shifted], axis=-1)

    def _residual(self, u: Array) -> Array:
        """Return q and v less the recorded ones over the noise (6 N,); infinite where a step has no solution."""
        problem = self._problem
        body = FallingBody(problem.shape, float(u[6]), 1.0, problem.friction, float(u[7]), problem.slope)
        try:
            q, v = fall(body, u[:3], u[3:6], problem.h, len(problem.q) - 1)
        except IdentificationError:
            return np.full(problem.q.size * 2, np.inf)
        return np.asarray((np.hstack([q - problem.q, v - problem.v]) / problem.sigma).ravel())


def fit_whole_drop(problem: DropProblem, window: DropProblem, first: DropFit) -> WholeDrop | None:
    """Fit every sample of a drop.

    Args:
        problem: recorded states and their noise.
        window: its first samples.
        first: fit of the impacts in ``window``.

    Returns:
        The fit; None where it does not explain the recording.
    """
    channels, rng = int(np.isfinite(problem.sigma).sum()), np.random.default_rng(0)
    (u, spread), cost, used, end = _start(window, first), 0.0, 0, len(window.q)
    while True:
        added = channels * (end - used)
        deviation = np.sqrt(2.0 * (added + u.size))
        found = _fit_stretch(problem.until(end), u, spread, cost + added + _SURPRISING * deviation, rng)
        jacobian = found.model.jacobian
        if not found.cost < cost + added + _MISFIT * deviation or not np.isfinite(jacobian).all():
            return None
        information = jacobian.T @ jacobian
        if end == len(problem.q):
            return WholeDrop(float(found.u[6]), float(np.sqrt(np.linalg.pinv(information)[6, 6])))
        u, spread, cost = found.u, _covariance_root(information), found.cost
        used, end = end, min(int(np.ceil(_GROWTH * end)), len(problem.q))


def _start(window: DropProblem, first: DropFit) -> tuple[Array, Array]:
    """Return the unknowns (8,) that a fit of impacts implies, and a root (8, u) of their covariance."""

    def unknowns(u: Array) -> Array:
        coefficient, _ = restitution(window, first.impacts, drop_jumps(u, window, first.impacts))
        return np.array([*u[:6], u[-1], coefficient])

    steps = _DIFFERENCE * np.eye(len(first.u))
    rows = [(unknowns(first.u + step) - unknowns(first.u - step)) / (2.0 * _DIFFERENCE) for step in steps]
    return unknowns(first.u), np.transpose(rows) @ _covariance_root(first.information)


def _covariance_root(information: Array) -> Array:
    """Return S (n, n) with S S^T the inverse of ``information``, bounded where that is singular."""
    unit = np.sqrt(np.where(np.diag(information) > 0.0, np.diag(information), 1.0))
    values, directions = np.linalg.eigh(information / np.outer(unit, unit))
    return np.asarray(directions / unit[:, None] / np.sqrt(np.maximum(values, _VAGUEST**-2)))


def _fit_stretch(
    problem: DropProblem, u: Array, spread: Array, likely: float, rng: np.random.Generator
) -> Minimum[_SteppedDrop]:
    """Best fit from ``u`` or, where its cost is not ``likely``, from samples around it."""
    low, high = ratio_bounds(problem.shape)
    bounds = np.array([*[-np.inf] * 6, low, 0.0]), np.array([*[np.inf] * 6, high, 1.0])
    model = partial(_SteppedDrop, problem)
    starts = [model(np.clip(u, *bounds))]
    if not starts[0].cost < likely:
        samples = (u + scale * spread @ rng.standard_normal(spread.shape[1]) for scale in _SPREADS)
        starts = sorted([*starts, *(model(np.clip(each, *bounds)) for each in samples)], key=lambda start: start.cost)
    best = minimise(model, starts[0].u, bounds, _SEARCH)
    for start in starts[1:_FITTED]:
        if best.cost < likely:
            break
        best = min(best, minimise(model, start.u, bounds, _SEARCH), key=lambda found: found.cost)
    return best
