"""State, m/I and contact impulses of one drop together, with unknown contact modes (the future work of paper 5,
section 7.1).

The paper puts noisy states into eq. 26 as if they were true; noise then bends the contact Jacobian and biases m/I.
Here the trajectory is estimated too: the maximum-likelihood drop among all that obey the complementarity conditions
exactly. Which steps carry an impact is found by search (change points first, then moves one at a time), so an answer
is a ``local`` optimum over the impacts; their modes are enumerated. Where one drop says little about m/I, its
likelihood is scanned over every radius of gyration the outline allows and the median is returned, all radii being
equally likely beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from contact_estimation.exceptions import ConfigError, IdentificationError, shape_error
from contact_estimation.identify.planar.drop_fit import (DropFit, fit, fit_modes, profile, ratio_bounds,
                                                         start_from_segments)
from contact_estimation.identify.planar.drop_model import (DOUBLE, STICK, Compressed, DropProblem, Impact,
                                                           drop_jumps, replay)
from contact_estimation.identify.planar.segmentation import noise_levels, position_noise, segment
from contact_estimation.identify.planar.shapes import Shape

#: A move whose merit is this much worse with the modes it inherits is not worth enumerating modes for.
_HOPELESS = 20.0
#: Impacts in the first window, and the width of the interval (relative to m/I) beyond which the window grows.
_FIRST_IMPACTS, _WIDE = 2, 0.04
#: Samples of flight that the third and later impacts need on either side to be used.
_CROWD = 8
#: Relative uncertainty of m/I above which the likelihood is scanned instead of taken for a Gaussian.
_GAUSSIAN = 0.03
#: A step whose change of velocity the fit misses by this many standard deviations holds an impact it does not know.
_MISSED = 6.0
#: So many such impacts the first window's search may add; where there are more (a body settles), the window ends.
_ADDED = 2


@dataclass(frozen=True)
class DropEstimate:
    """Result of :func:`identify_drop`.

    ``m_over_i`` [1/m^2] with its 95 % ``interval``; ``q``, ``v`` (n, 3) the estimated states of the samples used;
    ``impacts`` and their ``jumps`` (J, 3), the change of velocity: (dvx, dvy) is the contact impulse per unit mass
    (tangential, normal) [m/s]. ``sigma`` (6,) is the noise found per channel of (q, v). ``status`` is "local"
    (converged, every mode consistent), "undetermined" (no impact says anything) or "failed", with ``reason``.
    """

    m_over_i: float
    interval: tuple[float, float]
    q: np.ndarray
    v: np.ndarray
    impacts: tuple[Impact, ...]
    jumps: np.ndarray
    sigma: np.ndarray
    cost: float
    status: str
    reason: str = ""


def identify_drop(shape: Shape, q, v, h: float, friction: float, slope: float = 0.0,
                  max_impacts: int = 4) -> DropEstimate:
    """Identify m/I, states and impulses from noisy states of a body that falls on flat ground; y = 0 is the ground.

    Args:
        shape: outline. q, v: (N, 3) states as in :mod:`shapes` [m, rad; m/s, rad/s]; ``v`` None where only q was
            measured. h: sample interval [s].
        friction: Coulomb coefficient of the contact. slope: [rad], see :class:`stepping.FallingBody`.
        max_impacts: the window ends before the third impact; while that leaves m/I uncertain, it grows up to this many.

    Raises:
        ConfigError: shapes disagree, or h, friction or max_impacts is out of range.
        IdentificationError: fewer than 8 samples, samples that are not finite, or no impact in the window.
    """
    q, seen = np.asarray(q, float), v is not None
    v = np.asarray(v, float) if seen else np.zeros_like(q)
    if q.shape != v.shape or q.ndim != 2 or q.shape[1] != 3:
        raise shape_error("identify_drop", "v", v.shape, q.shape if q.ndim == 2 and q.shape[1] == 3 else ("N", 3))
    if not (np.isfinite(h) and h > 0.0 and np.isfinite(friction) and friction >= 0.0 and max_impacts >= 1):
        raise ConfigError(f"identify_drop: h {h!r} s must be greater than 0, friction {friction!r} must not be "
                          f"negative, max_impacts {max_impacts!r} must be at least 1")
    bad = np.count_nonzero(~np.isfinite(np.hstack([q, v])))
    if len(q) < 8 or bad:
        raise IdentificationError(f"a drop needs at least 8 samples, all finite; got {len(q)} with {bad} that "
                                  "are not")
    sigma = noise_levels(q, v, h) if seen else np.concatenate([position_noise(q), np.full(3, np.inf)])
    problem = DropProblem(shape, float(friction), float(h), q, v, sigma, float(slope))
    ks = segment(problem, 8)
    if not ks:
        raise IdentificationError("no impact found in the window: free flight says nothing about m/I; record a bounce")
    estimate, best = _identify_window(*_window(problem, ks, min(_FIRST_IMPACTS, max_impacts)))
    for most in range(_FIRST_IMPACTS + 1, max_impacts + 1):
        low, high = estimate.interval
        longer, more = _window(problem, ks, most)
        if high - low < _WIDE * estimate.m_over_i or len(more) < most:
            break
        other, longer_best = _identify_window(longer, more, best)
        room = 0.5 * (estimate.m_over_i - low), 0.5 * (high - estimate.m_over_i)
        agrees = low - room[0] <= other.m_over_i <= high + room[1]
        if other.status == "local" and agrees and np.ptp(other.interval) < high - low:
            estimate, best = other, longer_best
    return estimate


def _identify_window(problem, ks, known: DropFit | None = None) -> tuple[DropEstimate, DropFit]:
    """Estimate and fit of the window with impacts near ``ks``; the impacts of ``known``, a fit of a shorter window,
    stay where they are."""
    if known is not None:
        last = known.impacts[-1].k
        ks = [*(impact.k for impact in known.impacts), *(k for k in ks if k > last)]
        known = known if len(ks) > len(known.impacts) else None
    best = _search(problem, ks, known)
    missed = _missed_step(problem, best)
    if missed is not None and missed > best.impacts[0].k:
        problem = problem.until(missed + 1)
        best = _search(problem, [impact.k for impact in best.impacts if impact.k < missed])
    problem = replace(problem, sigma=_refit_noise(problem, best))
    compressed = Compressed(problem, [impact.k for impact in best.impacts])
    settled = 0 if known is None else len(known.impacts) - 1
    best = fit_modes(problem, best.impacts, best.u, compressed, first=min(settled, len(best.impacts) - 1))
    best = fit(problem, best.impacts, best.u, compressed, tolerance=1e-6, iterations=60)
    return _estimate(problem, best), best


def _window(problem, ks, most):
    """The drop up to the impact after the last one used. From the third on, impacts that crowd (a body about to
    settle bounces faster than noise lets one count) are left out."""
    used = min(len(ks), most)
    ends = [*ks[1:], len(problem.q)]
    while used > 2 and min(ks[used - 1] - ks[used - 2], ends[used - 1] - ks[used - 1]) < _CROWD:
        used -= 1
    return problem.until(min(ends[used - 1] + 1, len(problem.q))), ks[:used]


def _search(problem, ks, known: DropFit | None = None) -> DropFit:
    """Move, split, add or leave out impacts while the merit improves; every trial starts afresh from its own change
    points, and from the impacts of ``known`` where there is one."""
    best = _best_at(problem, ks, np.inf, known)
    settled = 0 if known is None else len(known.impacts)
    tried = {tuple(ks)}
    for _ in range(12):
        improved = False
        for move in _moves(problem, best, settled, len(ks) + (0 if settled else _ADDED)):
            if tuple(move) in tried:
                continue
            tried.add(tuple(move))
            trial = _best_at(problem, move, best.merit, known)
            if trial.merit < best.merit - 1e-6:
                best, improved = trial, True
                break
        if not improved:
            break
    return best


def _best_at(problem, ks, bar, known: DropFit | None = None) -> DropFit:
    """Best fit with impacts in steps ``ks``; modes are only enumerated when the first guess comes near the merit
    ``bar``, and only of impacts that ``known`` does not hold already."""
    compressed = Compressed(problem, ks)
    start, impacts, others = start_from_segments(problem, ks)
    first = 0
    if known is not None and list(ks[:len(known.impacts)]) == [impact.k for impact in known.impacts]:
        first = len(known.impacts)
        impacts[:first], others[:first] = known.impacts, [None] * first
        start = np.concatenate([known.u[:-1], start[len(known.u) - 1:-1], known.u[-1:]])
    best = fit(problem, impacts, start, compressed)
    if not np.isfinite(bar) and not first:
        best = min([best, *_spread_starts(problem, impacts, start, compressed)], key=lambda trial: trial.merit)
    if best.merit > bar + _HOPELESS and len(ks) > 1 or best.merit > bar + 2.0 * _HOPELESS * len(ks):
        return best
    best = fit_modes(problem, impacts, best.u, compressed, first=first)
    for j, other in enumerate(others):
        if other is None:
            continue
        for contact in (impacts[j].contact, other):
            trial = [*best.impacts[:j], Impact(ks[j], STICK, contact), *best.impacts[j + 1:]]
            single = fit_modes(problem, trial, best.u, compressed, first=first)
            if single.merit < best.merit - 1e-6:
                best = single
    return best


def _spread_starts(problem, impacts, start, compressed):
    """Fits from m/I spread over its range: a long flight turns a wrong first guess into a wrong angle at the next
    impact."""
    lower, upper = ratio_bounds(problem)
    for ratio in np.geomspace(1.2 * lower, 0.8 * upper, 4):
        yield fit(problem, impacts, np.append(start[:-1], ratio), compressed, iterations=40)


def _moves(problem, best, settled: int, most: int):
    """Neighbouring sets of steps: one more where the fit misses one, an impact one or two steps off, split into two in
    a row, or left out. The first ``settled`` impacts stay; none is added beyond ``most``."""
    ks, last = [impact.k for impact in best.impacts], len(problem.q) - 3
    missed = _missed_step(problem, best)
    if missed is not None and len(ks) < most and missed not in ks and 1 <= missed <= last:
        yield sorted([*ks, missed])
    for j, k in list(enumerate(ks))[settled:]:
        first, final = ks[j - 1] + 1 if j else 1, ks[j + 1] - 1 if j + 1 < len(ks) else last
        yield from ([*ks[:j], k + shift, *ks[j + 1:]] for shift in (-1, 1, -2, 2) if first <= k + shift <= final)
        if problem.shape.n_contacts > 1 and len(ks) < most:
            yield from ([*ks[:j], *pair, *ks[j + 1:]] for pair in ((k, k + 1), (k - 1, k))
                        if first <= pair[0] and pair[1] <= final)
        if len(ks) > 1:
            yield [*ks[:j], *ks[j + 1:]]


def _misfit(problem, best) -> np.ndarray:
    """Residuals (N, 6) of (q, v)."""
    q, v = replay(best.u, problem, best.impacts, drop_jumps(best.u, problem, best.impacts).jumps)
    return np.hstack([problem.q - q, problem.v - v])


def _missed_step(problem, best) -> int | None:
    """The step at which the fitted velocities miss the recorded change most, if they miss it beyond noise."""
    change = np.abs(np.diff(_misfit(problem, best)[:, 3:], axis=0)) / (np.sqrt(2.0) * problem.sigma[3:])
    step = int(np.argmax(change.max(axis=1)))
    return step if change[step].max() > _MISSED else None


def _refit_noise(problem, best) -> np.ndarray:
    """Noise per channel from the fitted drop's residuals."""
    misfit = _misfit(problem, best)
    return np.maximum(np.sqrt(np.mean(misfit**2, axis=0)), 1e-3 * problem.sigma)


def _estimate(problem, best) -> DropEstimate:
    variance = np.linalg.pinv(best.information)[-1, -1]
    ratio, std = float(best.u[-1]), float(np.sqrt(max(variance, 0.0)))
    interval = (ratio - 1.96 * std, ratio + 1.96 * std)
    lower, upper = ratio_bounds(problem)
    if std > _GAUSSIAN * ratio or not best.converged or not 1.001 * lower < ratio < 0.5 * upper:
        radii, costs = profile(problem, best)
        ratio, interval = _median(radii, costs)
    state = drop_jumps(best.u, problem, best.impacts)
    q, v = replay(best.u, problem, best.impacts, state.jumps)
    status, reason = "local", ""
    if not best.consistent:
        status, reason = "failed", "no consistent contact mode explains the window"
    elif all(impact.mode == DOUBLE for impact in best.impacts):
        status, reason = "undetermined", ("every landing is on two contacts at once and says nothing about m/I; if the "
                                          "body landed on one, check which way the angle turns")
    return DropEstimate(ratio, interval, q, v, best.impacts, state.jumps, problem.sigma, best.cost, status, reason)


def _median(radii, costs) -> tuple[float, tuple[float, float]]:
    """Median and 95 % interval of m/I = 1 / radius^2 with density exp(-cost / 2) over the radii."""
    share = np.exp(-0.5 * (costs - costs.min()))
    spacing = radii[1] - radii[0]
    edges = np.concatenate([[0.0], np.cumsum(share)]) / share.sum()
    low, middle, high = (1.0 / np.interp(p, edges, np.append(radii - spacing / 2.0, radii[-1] + spacing / 2.0))**2
                         for p in (0.975, 0.5, 0.025))
    return float(middle), (float(low), float(high))
