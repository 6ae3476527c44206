"""Best drop for given impacts: least squares within a contact mode, enumeration over modes, profile over m/I."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.drop_model import (
    DOUBLE,
    MODES,
    STICK,
    Compressed,
    DropProblem,
    Impact,
    Impacts,
    JumpState,
    drop_jumps,
    linearise,
    replay,
)
from contact_estimation.identify.planar.levenberg_marquardt import Search, minimise
from contact_estimation.identify.planar.shapes import SMALLEST_GYRATION, ratio_bounds
from contact_estimation.identify.planar.stepping import gravity

_NEARLY_FLAT = 0.25  # share of the radius: two contacts this close in height may land together
_VIOLATION_PRICE = 1e4  # [s/m] cost of broken complementarity
_CONSISTENT = 1e-3  # [m/s] violation that is rounding
_IMPACT_PRICE = 10.0  # an impact must explain this much more of the cost: its step, mode and size are free
_DOUBLE_PRICE = 12.0  # two more free numbers
_HOPELESS_COST = 100.0  # a mode this much worse after half of its iterations is given up
_SLOWEST_APPROACH = 0.3  # [m/s] below it a contact's place within its step is not pinned any harder
_UNLIKELY = 20.0  # a merit this much worse has a likelihood of e^-10
_ZOOMS, _RESOLVED = 4, 0.25  # most scans of the likelihood, and share of a scan that must matter
_BETTER = 1e-6  # a merit must be lower by this to count as lower


@dataclass(frozen=True)
class DropFit:
    """Optimum for given impacts."""

    u: Array  # unknowns, see :mod:`drop_model`
    impacts: tuple[Impact, ...]  # steps, modes and contacts
    merit: float  # cost plus what breaks the complementarity conditions and a price per impact
    cost: float  # weighted sum of squares
    information: Array  # J^T J
    consistent: bool  # no complementarity condition is broken
    converged: bool  # the last step lowered the cost by next to nothing


_DEFAULT = Search()


def fit_modes(
    problem: DropProblem,
    impacts: Impacts,
    start: Array,
    compressed: Compressed,
    fixed_ratio: float | None = None,
    first: int = 0,
) -> DropFit:
    """Best fit over the modes of ``impacts``, from the ``first`` on: every mode of every impact in turn, twice over."""
    best = fit(problem, impacts, start, compressed, fixed_ratio=fixed_ratio)
    for _ in range(2):
        changed = False
        for j in range(first, len(impacts)):
            for mode in MODES:
                if best.impacts[j].mode in (mode, DOUBLE):
                    continue
                trial = [*best.impacts[:j], best.impacts[j]._replace(mode=mode), *best.impacts[j + 1 :]]
                search = Search(give_up=best.merit + _HOPELESS_COST)
                other = fit(problem, trial, best.u, compressed, search, fixed_ratio)
                if other.merit < best.merit - _BETTER:
                    best, changed = other, True
        if not changed or len(impacts) - first == 1:
            break
    return best


def fit(
    problem: DropProblem,
    impacts: Impacts,
    start: Array,
    compressed: Compressed,
    search: Search = _DEFAULT,
    fixed_ratio: float | None = None,
) -> DropFit:
    """Levenberg-Marquardt from ``start`` (7 + 3J) for fixed impacts; a ``fixed_ratio`` is m/I [1/m^2] that stays."""
    bounds = np.full(len(start), -np.inf), np.full(len(start), np.inf)
    ratios = ratio_bounds(problem.shape) if fixed_ratio is None else (fixed_ratio, fixed_ratio)
    bounds[0][-1], bounds[1][-1] = ratios
    first = np.clip(start, *bounds)
    gaps = problem.h * np.maximum(np.abs(drop_jumps(first, problem, impacts).approach), _SLOWEST_APPROACH)
    search = search._replace(give_up=search.give_up - compressed.rest)
    found = minimise(lambda u: linearise(u, problem, impacts, compressed, gaps), first, bounds, search)
    cost = found.cost + compressed.rest
    merit, consistent = _merit(found.u, problem, impacts, found.model.state, cost)
    jacobian = found.model.jacobian
    return DropFit(found.u, tuple(impacts), merit, cost, jacobian.T @ jacobian, consistent, found.converged)


def start_from_segments(problem: DropProblem, ks: Sequence[int]) -> tuple[Array, list[Impact], list[int | None]]:
    """Start for impacts in steps ``ks`` from the unconstrained drop: its jumps and the m/I they imply (eq. 27).

    Returns:
        u, the impacts, and per impact the contact that may close in the same step (None: the others are clearly
        higher). Such landings start as ``DOUBLE``, all others as ``STICK``.
    """
    p = Compressed(problem, ks).linear()
    jumps, arms = p[:, 2:].T, np.zeros(len(ks))
    impacts, others = [], []
    for j, k in enumerate(ks):
        since = np.maximum(k - np.asarray(ks), 0)
        levers = problem.shape.levers(p[2, 0] + problem.h * (k * p[2, 1] + since @ p[2, 2:]))
        order = np.argsort(levers[:, 1]).tolist()
        contact, other = order[0], None
        if len(order) > 1 and levers[order[1], 1] - levers[contact, 1] < _NEARLY_FLAT * problem.shape.radius:
            other = order[1]
        else:
            arms[j] = levers[contact, 0] * jumps[j, 1] - levers[contact, 1] * jumps[j, 0]
        impacts.append(Impact(int(k), STICK if other is None else DOUBLE, contact))
        others.append(other)
    lower, upper = ratio_bounds(problem.shape)
    ratio = arms @ jumps[:, 2] / (arms @ arms) if arms.any() else 4.0 * lower
    ratio = np.clip(ratio, 1.05 * lower, 0.1 * upper)
    return np.concatenate([p[:, 0], p[:, 1], jumps[:, [1, 0, 2]].ravel(), [ratio]]), impacts, others


def profile(problem: DropProblem, best: DropFit, points: int = 20) -> tuple[Array, Array]:
    """Scan the likelihood of m/I.

    A scan of the whole range is followed by scans of the part that matters, as long as that is a few cells wide.

    Args:
        problem: the drop.
        best: its fit.
        points: radii per scan.

    Returns:
        Evenly spaced radii of gyration sqrt(I/m) (points,) [m] and the merit of the best drop with each.
    """
    low, high = smallest, largest = SMALLEST_GYRATION * problem.shape.radius, problem.shape.radius
    for _ in range(_ZOOMS):
        cell = (high - low) / points
        radii: Array = np.asarray(low + cell * (np.arange(points) + 0.5))
        costs = _scan(problem, best, radii)
        likely = radii[costs < costs.min() + _UNLIKELY]
        if np.ptp(likely) >= _RESOLVED * (high - low):
            break
        low, high = max(smallest, likely.min() - cell), min(largest, likely.max() + cell)
    return radii, costs


def _scan(problem: DropProblem, best: DropFit, radii: Array) -> Array:
    """Merit of the best drop with each radius of gyration, from the one nearest to ``best`` outwards."""
    costs = np.empty(len(radii))
    compressed = Compressed(problem, [impact.k for impact in best.impacts])
    middle = int(np.argmin(np.abs(radii - 1.0 / np.sqrt(best.u[-1]))))
    for order in (range(middle, len(radii)), range(middle - 1, -1, -1)):
        near = best
        for i in order:
            ratio = 1.0 / radii[i] ** 2
            near = fit(problem, near.impacts, near.u, compressed, fixed_ratio=ratio)
            if not near.consistent:
                near = fit_modes(problem, near.impacts, near.u, compressed, ratio)
            costs[i] = near.merit
    return costs


def _merit(u: Array, problem: DropProblem, impacts: Impacts, state: JumpState, cost: float) -> tuple[float, bool]:
    """Cost plus what breaks the complementarity conditions: inconsistent modes, pulling contacts, penetration."""
    violation = 0.0
    for impact, jump, slip, approach in zip(impacts, state.jumps, state.slip, state.approach):
        violation += max(0.0, -jump[1]) + max(0.0, approach)
        if impact.mode in (STICK, DOUBLE):
            violation += max(0.0, abs(jump[0]) - problem.friction * jump[1])
        elif abs(impact.mode) == 1:
            violation += max(0.0, -impact.mode * slip)
    q, v = replay(u, problem, impacts, state.jumps)
    depth = np.maximum(-(q[:, 1] + problem.shape.levers(q[:, 2])[..., 1].min(axis=-1)), 0.0)
    scale = problem.h * max(1.0, float(np.abs(v[:, 1]).max()))
    price = _IMPACT_PRICE * len(impacts) + _DOUBLE_PRICE * sum(impact.mode == DOUBLE for impact in impacts)
    price += _second_contacts(problem, impacts, q, v)
    merit = cost + _VIOLATION_PRICE * violation + float(np.sum((depth / scale) ** 2)) + price
    return float(merit), violation < _CONSISTENT


def _second_contacts(problem: DropProblem, impacts: Impacts, q: Array, v: Array) -> float:
    """Price of single impacts in whose step a second contact would close too: eq. 8 has both of them then.

    A second contact that would be ``depth`` below ground counts with depth over the noise of its height, squared.
    """
    if problem.shape.n_contacts == 1:
        return 0.0
    g, price = gravity(problem.slope), 0.0
    spread = np.hypot(problem.sigma[1], 2.0 * problem.shape.radius * problem.sigma[2]) / 4.0
    for impact in impacts:
        if impact.mode != DOUBLE:
            r, before = problem.shape.levers(q[impact.k, 2]), v[impact.k] + problem.h * g
            ahead = q[impact.k, 1] + r[:, 1] + problem.h * (before[1] + r[:, 0] * before[2])
            ahead[impact.contact] = np.inf
            price += (min(ahead.min(), 0.0) / spread) ** 2
    return float(price)
