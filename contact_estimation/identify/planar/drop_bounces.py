"""Follow a drop from bounce to bounce: every further impact narrows m/I once Newton's restitution is known.

A search finds the first impacts of a drop, with free normal impulses. They give m/I, the state and a restitution. Time
stepping (paper 5, eq. 8) then predicts the next impact. It is tried at this time and its neighbours, and fitted
together with all earlier ones; the bounces share one unknown restitution. The extension ends if the impacts disagree
on the restitution, or if the prediction misses an impact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.drop_fit import DropFit, fit, fit_modes
from contact_estimation.identify.planar.drop_model import (
    DOUBLE,
    STICK,
    Compressed,
    DropProblem,
    Impact,
    drop_jumps,
    replay,
    restitution,
)
from contact_estimation.identify.planar.levenberg_marquardt import Search
from contact_estimation.identify.planar.stepping import FallingBody, Trajectory, simulate

_DISAGREE = 9.0  # chi-square per bounce at which restitutions differ: three standard deviations
_MISFIT = 5.0  # standard deviations of chi-square beyond which an added stretch is not explained
_SHIFTS = (0, -1, 1, -2, 2)  # steps around the predicted one that are tried
_FLIGHT = 4  # samples of flight that end a bounce
_IN_A_ROW = 3  # most impacts of one bounce; where there are more, the body settles
_SETTLED = Search(tolerance=1e-3, iterations=20)


class _Next(NamedTuple):
    """A predicted bounce: one impact, or several in a row."""

    impacts: list[Impact]
    jumps: Array  # changes of velocity (impacts, 3)
    end: int  # samples up to the bounce after it, which may come earlier than predicted


def follow_bounces(problem: DropProblem, first: DropFit, used: int, most: int) -> tuple[DropProblem, DropFit]:
    """Extend the fit of the first impacts.

    Args:
        problem: the whole drop, with the noise found in the first window.
        first: fit of its first ``used`` samples.
        used: samples of the first window.
        most: most impacts in the result.

    Returns:
        The part of the drop that is explained, and its fit; those of ``first`` where nothing can be added.
    """
    window = replace(problem.until(used), shared_restitution=True)
    best = _refit(window, first, first.impacts)
    bounces = max(len(first.impacts) - 1, 1)
    if not best.consistent or best.cost > first.cost + _DISAGREE * bounces:
        return problem.until(used), first
    while len(best.impacts) < most:
        ahead = _predict(problem, best)
        if ahead is None or ahead.end < len(window.q):  # nothing ahead, or an impact where there was none
            break
        longer = replace(problem.until(ahead.end), shared_restitution=True)
        found = min(_trials(longer, best, ahead), key=lambda trial: trial.merit, default=None)
        if found is None or not _explains(found, best, longer, window):
            break
        window, best = longer, found
    return window, best


def _refit(problem: DropProblem, start: DropFit, impacts: tuple[Impact, ...]) -> DropFit:
    return fit(problem, impacts, start.u, Compressed(problem, [impact.k for impact in impacts]), _SETTLED)


def _predict(problem: DropProblem, best: DropFit) -> _Next | None:
    """Step on from the last impact; None where the drop ends or settles."""
    state = drop_jumps(best.u, problem, best.impacts)
    coefficient, _ = restitution(problem, best.impacts, state)
    q, v = replay(best.u, problem, best.impacts, state.jumps)
    start = best.impacts[-1].k + 1
    body = FallingBody(
        problem.shape, float(best.u[-1]), 1.0, problem.friction, float(np.clip(coefficient, 0.0, 1.0)), problem.slope
    )
    try:
        run = simulate(body, q[start], v[start], problem.h, len(problem.q) - 1 - start)
    except IdentificationError:
        return None
    steps = np.flatnonzero(run.normal.any(axis=1))
    if not len(steps):
        return None
    last = int(np.argmax(np.diff(steps, append=len(problem.q)) >= _FLIGHT))  # of the impacts in a row
    row, end = steps[: last + 1], start + int(steps[last + 1]) if last + 1 < len(steps) else len(problem.q)
    jumps = run.v[row + 1] - run.v[row]
    impacts = [_impact(run, int(step), start, problem.friction) for step in row]
    bounces = jumps[0, 1] > 4.0 * problem.h * np.linalg.norm(body.force(q[start], v[start]))
    settles = len(row) > _IN_A_ROW or end - impacts[-1].k < _FLIGHT
    if not bounces or settles or impacts[-1].k > len(problem.q) - 3:
        return None
    return _Next(impacts, jumps, max(end - max(_SHIFTS), impacts[-1].k + _FLIGHT))


def _impact(run: Trajectory, step: int, start: int, friction: float) -> Impact:
    """Read a stepped impact out; ``start`` is the sample at which the stepping began."""
    double = np.count_nonzero(run.normal[step]) > 1
    contact = int(np.argmax(run.normal[step]))
    return Impact(start + step, DOUBLE if double else _mode(run, step, contact, friction), contact)


def _mode(run: Trajectory, step: int, contact: int, friction: float) -> int:
    """Mode of a stepped impact: it slips along the side on which friction is at the edge of its cone."""
    normal, tangent = run.normal[step, contact], run.friction_impulse[step, contact]
    return STICK if abs(tangent) < (friction - 1e-9) * normal else int(-np.sign(tangent))


def _trials(problem: DropProblem, best: DropFit, ahead: _Next) -> Iterator[DropFit]:
    """Fits with the next impact in the predicted step and in those beside it."""
    start = np.concatenate([best.u[:-1], ahead.jumps[:, [1, 0, 2]].ravel(), best.u[-1:]])
    bar = np.inf
    for shift in _SHIFTS:
        if not best.impacts[-1].k < ahead.impacts[0].k + shift <= ahead.impacts[-1].k + shift < len(problem.q) - 2:
            continue
        impacts = [*best.impacts, *(impact._replace(k=impact.k + shift) for impact in ahead.impacts)]
        compressed = Compressed(problem, [impact.k for impact in impacts])
        trial = fit(problem, impacts, start, compressed, Search(give_up=bar + 100.0))
        if trial.merit < bar:
            bar = trial.merit
            modes = fit_modes(problem, impacts, trial.u, compressed, first=len(best.impacts))
            yield fit(problem, modes.impacts, modes.u, compressed, _SETTLED)


def _explains(found: DropFit, best: DropFit, longer: DropProblem, window: DropProblem) -> bool:
    """Whether the added samples are explained as well as noise allows."""
    channels = int(np.isfinite(longer.sigma).sum())
    added = channels * (len(longer.q) - len(window.q))
    return found.consistent and found.cost - best.cost < added + _MISFIT * np.sqrt(2.0 * added) + _DISAGREE
