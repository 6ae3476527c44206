"""Levenberg-Marquardt within bounds (Marquardt 1963); a derivative is made only where a step starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from contact_estimation.identify.arrays import Array

_FIRST, _LEAST, _MOST = 1e-4, 1e-12, 1e8  # damping, as a share of the information's diagonal
_FACTOR = 10.0  # by which the damping falls after a good step and rises after a bad one


class Linearisation(Protocol):
    """A model at one point."""

    @property
    def residual(self) -> Array:
        """Residuals (R,) over their noise; infinite where the model does not exist."""

    @property
    def jacobian(self) -> Array:
        """Derivative of the residuals (R, P)."""


Model = TypeVar("Model", bound=Linearisation)


class Search(NamedTuple):
    """How far one fit goes."""

    tolerance: float = 0.02  # the fit ends when a step lowers the cost (a chi-square) by less
    iterations: int = 12  # at most
    give_up: float = np.inf  # the fit also ends when the cost is still above this after half of the iterations


@dataclass(frozen=True)
class Minimum(Generic[Model]):
    """Where a fit ended."""

    u: Array  # unknowns (P,)
    model: Model  # there
    cost: float  # sum of squares
    converged: bool  # the last step lowered the cost by next to nothing, or none does


def minimise(
    linearise: Callable[[Array], Model], start: Array, bounds: tuple[Array, Array], search: Search
) -> Minimum[Model]:
    """Minimise a sum of squares.

    Args:
        linearise: the model at unknowns (P,).
        start: first unknowns (P,).
        bounds: least and largest unknowns (P,) each; where both are equal, the unknown stays.
        search: when to stop.

    Returns:
        The minimum; unconverged where the derivative is not finite.
    """
    fixed, damping, converged = bounds[0] == bounds[1], _FIRST, False
    u = np.clip(start, *bounds)
    model = linearise(u)
    cost = float(model.residual @ model.residual)
    for iteration in range(search.iterations):
        jacobian = np.where(fixed, 0.0, model.jacobian)
        if not np.isfinite(jacobian).all():
            break
        trial = np.clip(u - damped_step(jacobian, model.residual, damping), *bounds)
        new = linearise(trial)
        new_cost = float(new.residual @ new.residual)
        if new_cost <= cost:
            converged = cost - new_cost < search.tolerance
            u, model, cost, damping = trial, new, new_cost, max(damping / _FACTOR, _LEAST)
        else:
            damping *= _FACTOR
            converged = damping > _MOST
        if converged or (iteration >= search.iterations // 2 and cost > search.give_up):
            break
    return Minimum(u, model, cost, converged)


def damped_step(jacobian: Array, residual: Array, damping: float) -> Array:
    """Return the step (P,) for residuals (R,) with ``jacobian`` (R, P).

    It is solved in units of the columns' lengths: a fit on its way may have columns of 1e-4 beside others of 1e31.
    """
    information = jacobian.T @ jacobian
    damped = information + np.diag(damping * np.diag(information) + 1e-9)
    unit = np.sqrt(np.diag(damped))
    return np.asarray(np.linalg.solve(damped / np.outer(unit, unit), jacobian.T @ residual / unit) / unit)
