"""How a step of eq. 18 joins two states: time stepping (paper 5, eq. 8), or the implicit midpoint rule.

With the weight a of the earlier velocity:

    q^{k+1} = q^k + h ((1 - a) v^{k+1} + a v^k),    contact rows at q^k + a (h / 2) (v^k + v^{k+1}).

Time stepping, a = 0, is exact for states that a time-stepping simulation made. For states sampled from a motion in
continuous time its error is of first order in h. The midpoint rule, a = 1/2, is of second order there (Hairer, Lubich
and Wanner, Geometric numerical integration, 2006, II.1), except in a step with an impact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.planar.window import Step

#: Steps k (...) at their states q^k, v^k, v^{k+1} (..., n); the result has the same leading axes.
Model = Callable[[int | Indices, Array, Array, Array], Step]


class Scheme(NamedTuple):
    """A discretisation of the equation of motion."""

    name: str
    before: float  # a, weight of the earlier velocity


TIME_STEPPING = Scheme("time stepping", 0.0)
MIDPOINT = Scheme("midpoint", 0.5)


def at_scheme(model: Model, h: float, scheme: Scheme) -> Model:
    """Return a model with its contact rows where a scheme takes them.

    A contact may then begin or end, and its slip may reverse, within the step: its distance is the least one, and its
    slip the slower one of both ends, or 0 where the slip reverses.

    Args:
        model: a step with its contact rows at q^k.
        h: step [s].
        scheme: of the model returned.
    """
    if scheme.before == 0.0:
        return model

    def moved(k: int | Indices, q: Array, v: Array, after: Array) -> Step:
        step = model(k, q + 0.5 * h * scheme.before * (v + after), v, after)
        lift, lift_after = (_along(step.normal, rate) for rate in (v, after))
        slip, slip_after = (_along(step.tangent, rate) for rate in (v, after))
        least = step.gap - h * lift - 0.5 * h * np.maximum(np.abs(lift), np.abs(lift_after))
        slower = np.where(np.abs(slip) < np.abs(slip_after), slip, slip_after)
        return step._replace(gap=least, slip=np.where(slip * slip_after < 0.0, 0.0, slower))

    return moved


def _along(rows: Array, rate: Array) -> Array:
    """Return speeds (..., c) of contacts along their rows (..., c, n)."""
    return np.asarray((rows @ rate[..., None])[..., 0])
