"""Line search for the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and 3.6).

The directional derivative at a trial point costs one more evaluation of the cost, not a Jacobian: a difference along
the line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
_EVALUATIONS = 12  # of the cost, at most
_DIFFERENCE = 1e-4  # of the length: step of the directional derivative


class Step(NamedTuple):
    """Accepted step."""

    length: float
    cost: float  # there
    evaluations: int  # spent
    wolfe: bool  # whether both Wolfe conditions hold


class _Line:
    """Cost along the line; counts evaluations and remembers the best point with sufficient decrease."""

    def __init__(self, cost_along: Callable[[float], float], cost: float, slope: float) -> None:
        self._cost_along, self.cost, self.slope = cost_along, cost, slope
        self.spent = 0
        self.best: tuple[float, float] | None = None

    def enough(self, length: float, value: float) -> bool:
        return value <= self.cost + SUFFICIENT_DECREASE * length * self.slope

    def value(self, length: float) -> float:
        self.spent += 1
        value = self._cost_along(length)
        if self.enough(length, value) and (self.best is None or value < self.best[1]):
            self.best = (length, value)
        return value

    def derivative(self, length: float, value: float) -> float:
        self.spent += 1
        delta = _DIFFERENCE * length
        return (value - self._cost_along(length - delta)) / delta


def search(cost_along: Callable[[float], float], cost: float, slope: float, longest: float = 1.0) -> Step | None:
    """Find a step length in (0, longest], starting with a full Newton step.

    Args:
        cost_along: function of the length, the cost there.
        cost: at 0.
        slope: directional derivative (< 0) at 0.
        longest: largest length tried; 1 keeps to what the quadratic model covers.

    Returns:
        The step; its ``wolfe`` is False where the budget of evaluations or ``longest`` ended the search at a point
        that decreases the cost sufficiently but not flatly. None where no point decreased the cost sufficiently.
    """
    line = _Line(cost_along, cost, slope)
    low = (0.0, cost, slope)  # (length, cost, derivative) of the bracket's better end
    high: float | None = None  # length of the other
    length = min(1.0, longest)
    while line.spent < _EVALUATIONS:
        value, high_cost = line.value(length), None
        if not line.enough(length, value) or (low[0] > 0 and value >= low[1]):
            high, high_cost = length, value
        else:
            here = line.derivative(length, value)
            if abs(here) <= -CURVATURE * slope:
                return Step(length, value, line.spent, True)
            if here > 0 and (high is None or high > low[0]):
                high = low[0]  # the minimum lies back there
            if high is None and length >= longest:
                return Step(length, value, line.spent, False)
            low = (length, value, here)
        length = min(2.0 * length, longest) if high is None else _inside(low, high, high_cost)
    return None if line.best is None else Step(*line.best, line.spent, False)


def _inside(low: tuple[float, float, float], high: float, high_cost: float | None) -> float:
    """Minimiser of the parabola through the bracket, kept away from its ends; the middle where there is none."""
    start, cost, derivative = low
    width = high - start
    curvature = 0.0 if high_cost is None else high_cost - cost - derivative * width
    share = -0.5 * derivative * width / curvature if curvature > 0 else 0.5
    return start + min(max(share, 0.1), 0.7) * width
