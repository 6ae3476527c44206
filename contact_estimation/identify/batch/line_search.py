"""Line search for the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and 3.6).

The directional derivative at a trial point costs one more evaluation of the cost, not a Jacobian: a difference along the line.
"""

from __future__ import annotations

import dataclasses

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
_LARGEST_STEP = 4.0


@dataclasses.dataclass(frozen=True)
class Step:
    """Accepted step: length, cost there, evaluations spent, and whether both Wolfe conditions hold."""

    length: float
    cost: float
    evaluations: int
    wolfe: bool


def search(cost_along, cost: float, slope: float, longest: float = 1.0, evaluations: int = 12) -> Step | None:
    """Find a step length in (0, longest].

    Args:
        cost_along: function of the length, the cost there.
        cost, slope: cost and directional derivative (< 0) at 0.
        longest: largest admissible length (bounds); up to 4 a Newton step may be stretched.
        evaluations: budget; the best point with sufficient decrease is taken when it is spent.

    Returns:
        The step, or None where no point decreased the cost sufficiently.
    """
    longest = min(longest, _LARGEST_STEP)
    spent, best = 0, None

    def probe(length):
        nonlocal spent, best
        value = cost_along(length)
        spent += 1
        if value <= cost + SUFFICIENT_DECREASE * length * slope and (best is None or value < best[1]):
            best = (length, value)
        return value

    def derivative(length, value):
        nonlocal spent
        delta = 1e-4 * length
        spent += 1
        return (cost_along(length - delta) - value) / -delta

    low, low_cost, low_slope, high = 0.0, cost, slope, None
    length = min(1.0, longest)
    while spent < evaluations:
        value = probe(length)
        if value > cost + SUFFICIENT_DECREASE * length * slope or (low > 0 and value >= low_cost):
            high = length
        else:
            here = derivative(length, value)
            if abs(here) <= -CURVATURE * slope:
                return Step(length, value, spent, True)
            if here >= 0 and high is None:
                low, low_cost, low_slope, high = length, value, here, low
            elif here * ((high if high is not None else longest) - low) >= 0:
                high, low, low_cost, low_slope = low, length, value, here
            else:
                low, low_cost, low_slope = length, value, here
        if high is None:
            if length >= longest:
                return Step(length, value, spent, False)
            length = min(2.0 * length, longest)
        else:
            length = _inside(low, low_cost, low_slope, high, value if high == length else None)
    return None if best is None else Step(best[0], best[1], spent, False)


def _inside(low, low_cost, low_slope, high, high_cost):
    """Minimiser of the parabola through the bracket, kept away from its ends; the middle where there is none."""
    width = high - low
    if high_cost is not None:
        curvature = high_cost - low_cost - low_slope * width
        if curvature > 0:
            share = -0.5 * low_slope * width / curvature
            return low + min(max(share, 0.1), 0.7) * width
    return low + 0.5 * width
