"""State, m/I and impulses of one drop together, contact modes unknown (the future work of paper 5, section 7.1).

The paper inserts noisy states into eq. 26. Noise then disturbs the contact Jacobian and biases m/I. Here the trajectory
is estimated too: the maximum-likelihood drop among all that obey the complementarity conditions exactly. A search finds
the steps of the first two impacts (change points first, then moves one at a time). The result is therefore a ``local``
optimum over the impacts; their modes are enumerated. Further bounces are predicted and followed (:mod:`drop_bounces`).
Time stepping then fits the whole recording, down to rest, where one restitution explains it (:mod:`whole_drop`).
If one drop has little information on m/I, its likelihood is scanned over every radius of gyration that the outline
allows, with equal prior probability. The median is returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.exceptions import ConfigError, IdentificationError, shape_error
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.drop_bounces import follow_bounces
from contact_estimation.identify.planar.drop_fit import DropFit, fit, fit_modes, profile, start_from_segments
from contact_estimation.identify.planar.drop_model import (
    DOUBLE,
    STICK,
    Compressed,
    DropProblem,
    Impact,
    Impacts,
    drop_jumps,
    replay,
)
from contact_estimation.identify.planar.levenberg_marquardt import Search
from contact_estimation.identify.planar.segmentation import noise_levels, position_noise, segment
from contact_estimation.identify.planar.shapes import Shape, ratio_bounds
from contact_estimation.identify.planar.whole_drop import fit_whole_drop

_MOST_CHANGES = 8  # change points sought in the whole recording
_HOPELESS = 20.0  # a move whose merit is this much worse with inherited modes is not worth enumerating modes for
_FIRST_IMPACTS = 2  # impacts in the first window
_GAUSSIAN = 0.03  # relative uncertainty of m/I above which the likelihood is scanned instead of taken for a Gaussian
_MISSED = 6.0  # standard deviations of missed change of velocity that give away an impact the fit does not know
_ADDED = 2  # most impacts the first window's search may add; where there are more (a body settles), the window ends
_BETTER = 1e-6  # a merit must be lower by this to count as lower


@dataclass(frozen=True)
class DropEstimate:
    """Result of :func:`identify_drop`."""

    m_over_i: float  # m/I [1/m^2], of the whole recording where time stepping explains it
    interval: tuple[float, float]  # 95 % interval of m/I
    q: Array  # estimated configurations (n, 3) of the samples used
    v: Array  # estimated velocities (n, 3)
    impacts: tuple[Impact, ...]  # J steps, modes and contacts
    # change of velocity (J, 3); (dvx, dvy) is the contact impulse per unit mass (tangential, normal) [m/s]
    jumps: Array
    sigma: Array  # noise (6,) found per channel of (q, v)
    cost: float  # weighted sum of squares
    status: str  # "local" (converged, every mode consistent), "undetermined" (no impact says anything) or "failed"
    reason: str = ""  # why it is not "local"
    whole: bool = False  # time stepping explains every sample, down to rest; else the first impacts only


def identify_drop(
    shape: Shape, q: ArrayLike, v: ArrayLike | None, h: float, friction: float, slope: float = 0.0, max_impacts: int = 8
) -> DropEstimate:
    """Identify m/I, states and impulses from noisy states of a body that falls on flat ground at y = 0.

    Args:
        shape: outline.
        q: configurations (N, 3) as in :mod:`shapes` [m, rad].
        v: velocities (N, 3) [m/s, rad/s]; None where only q was measured.
        h: sample interval [s].
        friction: Coulomb coefficient of the contact.
        slope: of the ground [rad], see :class:`stepping.FallingBody`.
        max_impacts: the first two impacts are searched for; further ones, up to this many, are followed while they
            share one restitution.

    Raises:
        ConfigError: shapes disagree, or h, friction or max_impacts is out of range.
        IdentificationError: fewer than 8 samples, samples that are not finite, or no impact in the window.
    """
    problem = _pose(shape, q, v, h, friction, slope, max_impacts)
    ks = segment(problem, _MOST_CHANGES)
    if not ks:
        raise IdentificationError("no impact found in the window: free flight says nothing about m/I; record a bounce")
    window, first = _identify_window(*_window(problem, ks, min(_FIRST_IMPACTS, max_impacts)))
    whole = replace(problem, sigma=window.sigma)
    estimate = _estimate(window, first)
    longer, best = follow_bounces(whole, first, len(window.q), max_impacts)
    if estimate.status != "local":
        return estimate
    if best is not first:
        followed = _estimate(longer, best)
        estimate = followed if _sharpens(estimate, followed.m_over_i, followed.interval) else estimate
    return _to_its_end(whole, longer, best, estimate)


def _sharpens(estimate: DropEstimate, ratio: float, interval: tuple[float, float]) -> bool:
    """Whether a further m/I agrees with an estimate and has the shorter interval."""
    low, high = estimate.interval
    return 1.5 * low - 0.5 * high <= ratio <= 1.5 * high - 0.5 * low and interval[1] - interval[0] < high - low


def _to_its_end(whole: DropProblem, window: DropProblem, best: DropFit, estimate: DropEstimate) -> DropEstimate:
    """Return the estimate with the m/I of the whole drop, where that explains the recording and says more."""
    found = fit_whole_drop(whole, window, best)
    if found is None:
        return estimate
    interval = (found.m_over_i - 1.96 * found.std, found.m_over_i + 1.96 * found.std)
    if found.std <= _GAUSSIAN * found.m_over_i and _sharpens(estimate, found.m_over_i, interval):
        estimate = replace(estimate, m_over_i=found.m_over_i, interval=interval)
    return replace(estimate, whole=True)


def _pose(
    shape: Shape, q: ArrayLike, v: ArrayLike | None, h: float, friction: float, slope: float, max_impacts: int
) -> DropProblem:
    """Check the arguments of :func:`identify_drop`."""
    q = np.asarray(q, float)
    rates = np.zeros_like(q) if v is None else np.asarray(v, float)
    if q.ndim != 2 or q.shape[1] != 3:
        raise shape_error("identify_drop", "q", q.shape, ("N", 3))
    if q.shape != rates.shape:
        raise shape_error("identify_drop", "v", rates.shape, q.shape)
    if not (np.isfinite(h) and h > 0.0 and np.isfinite(friction) and friction >= 0.0 and max_impacts >= 1):
        raise ConfigError(
            f"identify_drop: h {h!r} s must be greater than 0, friction {friction!r} must not be "
            f"negative, max_impacts {max_impacts!r} must be at least 1"
        )
    bad = np.count_nonzero(~np.isfinite(np.hstack([q, rates])))
    if len(q) < 8 or bad:
        raise IdentificationError(f"a drop needs at least 8 samples, all finite; got {len(q)} with {bad} that are not")
    sigma = np.concatenate([position_noise(q), np.full(3, np.inf)]) if v is None else noise_levels(q, rates, h)
    return DropProblem(shape, float(friction), float(h), q, rates, sigma, float(slope))


def _identify_window(problem: DropProblem, ks: list[int]) -> tuple[DropProblem, DropFit]:
    """Fit of the window with impacts near ``ks``, and the window with the noise that the fit leaves."""
    best = _search(problem, ks)
    missed = _missed_step(problem, best)
    if missed is not None and missed > best.impacts[0].k:
        problem = problem.until(missed + 1)
        best = _search(problem, [impact.k for impact in best.impacts if impact.k < missed])
    noise = np.sqrt(np.mean(_misfit(problem, best) ** 2, axis=0))
    problem = replace(problem, sigma=np.maximum(noise, 1e-3 * problem.sigma))
    compressed = Compressed(problem, [impact.k for impact in best.impacts])
    best = fit_modes(problem, best.impacts, best.u, compressed)
    return problem, fit(problem, best.impacts, best.u, compressed, Search(tolerance=1e-6, iterations=60))


def _window(problem: DropProblem, ks: list[int], most: int) -> tuple[DropProblem, list[int]]:
    """Return the drop up to the impact after the last of the first ``most``."""
    used = min(len(ks), most)
    end = ks[used] + 1 if used < len(ks) else len(problem.q)
    return problem.until(min(end, len(problem.q))), ks[:used]


def _search(problem: DropProblem, ks: list[int]) -> DropFit:
    """Move, split, add or leave out impacts while the merit improves; every trial starts from its own change points."""
    best = _best_at(problem, ks, np.inf)
    tried, improved, rounds = {tuple(ks)}, True, 0
    while improved and rounds < 12:
        improved, rounds = False, rounds + 1
        for move in _moves(problem, best, len(ks) + _ADDED):
            if tuple(move) in tried:
                continue
            tried.add(tuple(move))
            trial = _best_at(problem, move, best.merit)
            if trial.merit < best.merit - _BETTER:
                best, improved = trial, True
                break
    return best


def _best_at(problem: DropProblem, ks: list[int], bar: float) -> DropFit:
    """Best fit with impacts in steps ``ks``; modes are enumerated where the first guess nears the merit ``bar``."""
    compressed = Compressed(problem, ks)
    start, impacts, others = start_from_segments(problem, ks)
    best = fit(problem, impacts, start, compressed)
    if not np.isfinite(bar):
        best = min([best, *_spread_starts(problem, impacts, start, compressed)], key=lambda trial: trial.merit)
    if (best.merit > bar + _HOPELESS and len(ks) > 1) or best.merit > bar + 2.0 * _HOPELESS * len(ks):
        return best
    best = fit_modes(problem, impacts, best.u, compressed)
    for j, other in enumerate(others):
        for contact in () if other is None else (impacts[j].contact, other):
            trial = [*best.impacts[:j], Impact(ks[j], STICK, contact), *best.impacts[j + 1 :]]
            single = fit_modes(problem, trial, best.u, compressed)
            if single.merit < best.merit - _BETTER:
                best = single
    return best


def _spread_starts(problem: DropProblem, impacts: Impacts, start: Array, compressed: Compressed) -> Iterator[DropFit]:
    """Fits from m/I spread over its range: a long flight turns a wrong guess into a wrong angle at the next impact."""
    lower, upper = ratio_bounds(problem.shape)
    for ratio in np.geomspace(1.2 * lower, 0.8 * upper, 4):
        yield fit(problem, impacts, np.append(start[:-1], ratio), compressed, Search(iterations=40))


def _moves(problem: DropProblem, best: DropFit, most: int) -> Iterator[list[int]]:
    """Neighbouring sets of at most ``most`` steps.

    One more where the fit misses one; an impact one or two steps off, split into two in a row, or left out.
    """
    ks, last = [impact.k for impact in best.impacts], len(problem.q) - 3
    missed = _missed_step(problem, best)
    if missed is not None and len(ks) < most and missed not in ks and 1 <= missed <= last:
        yield sorted([*ks, missed])
    for j, k in enumerate(ks):
        first, final = ks[j - 1] + 1 if j else 1, ks[j + 1] - 1 if j + 1 < len(ks) else last
        changes: list[tuple[int, ...]] = [(k + shift,) for shift in (-1, 1, -2, 2)]
        if problem.shape.n_contacts > 1 and len(ks) < most:
            changes += [(k, k + 1), (k - 1, k)]
        for change in changes:
            if first <= change[0] and change[-1] <= final:
                yield [*ks[:j], *change, *ks[j + 1 :]]
        if len(ks) > 1:
            yield [*ks[:j], *ks[j + 1 :]]


def _misfit(problem: DropProblem, best: DropFit) -> Array:
    """Residuals (N, 6) of (q, v)."""
    q, v = replay(best.u, problem, best.impacts, drop_jumps(best.u, problem, best.impacts).jumps)
    return np.hstack([problem.q - q, problem.v - v])


def _missed_step(problem: DropProblem, best: DropFit) -> int | None:
    """Find the step at which the fitted velocities miss the recorded change most, if they miss it beyond noise."""
    change = np.abs(np.diff(_misfit(problem, best)[:, 3:], axis=0)) / (np.sqrt(2.0) * problem.sigma[3:])
    step = int(np.argmax(change.max(axis=1)))
    return step if change[step].max() > _MISSED else None


def _estimate(problem: DropProblem, best: DropFit) -> DropEstimate:
    """Read the fit out; m/I from the scanned likelihood where a Gaussian would not do."""
    variance = np.linalg.pinv(best.information)[-1, -1]
    ratio, std = float(best.u[-1]), float(np.sqrt(max(variance, 0.0)))
    interval = (ratio - 1.96 * std, ratio + 1.96 * std)
    lower, upper = ratio_bounds(problem.shape)
    if std > _GAUSSIAN * ratio or not best.converged or not 1.001 * lower < ratio < 0.5 * upper:
        ratio, interval = _median(*profile(problem, best))
    state = drop_jumps(best.u, problem, best.impacts)
    q, v = replay(best.u, problem, best.impacts, state.jumps)
    status, reason = "local", ""
    if not best.consistent:
        status, reason = "failed", "no consistent contact mode explains the window"
    elif all(impact.mode == DOUBLE for impact in best.impacts):
        status = "undetermined"
        reason = (
            "every landing is on two contacts at once and says nothing about m/I; if the body landed on one, "
            "check which way the angle turns"
        )
    return DropEstimate(ratio, interval, q, v, best.impacts, state.jumps, problem.sigma, best.cost, status, reason)


def _median(radii: Array, costs: Array) -> tuple[float, tuple[float, float]]:
    """Median and 95 % interval of m/I = 1 / radius^2 with density exp(-cost / 2) over the radii."""
    share = np.exp(-0.5 * (costs - costs.min()))
    spacing = radii[1] - radii[0]
    cumulative = np.concatenate([[0.0], np.cumsum(share)]) / share.sum()
    edges = np.append(radii - spacing / 2.0, radii[-1] + spacing / 2.0)
    low, middle, high = 1.0 / np.interp([0.975, 0.5, 0.025], cumulative, edges) ** 2
    return float(middle), (float(low), float(high))
