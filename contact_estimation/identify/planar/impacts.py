"""m/I, restitution, friction and impulses from states just before and after single impacts (paper 5, section 5.4).

Each impact obeys eq. 27: moments of the normal and tangential impulse about the centre of mass,

    I dtheta' = s_n n_3 (m dv_y) + s_t d_3 (m dv_x).

The signs s state whether the recorded angle has the orientation of the recorded contact rows. Recordings differ in
that, so all four pairs are tried. The pair with a positive m/I that explains the rotations best is used and reported.

Errors of levers and velocities attenuate the m/I of this regression. Regressing the moments on the rotations errs the
other way. For least squares the two enclose the truth (Frisch 1934); for the medians used here that is a good guess.
Their distance is tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.exceptions import IdentificationError, RecordingError
from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.planar.impact_laws import (
    ContactSpace,
    complementary_newton,
    deviations,
    predict_unseen,
)
from contact_estimation.identify.planar.stepping import GRAVITY
from contact_estimation.identify.verdict import Finding, Verdict, conclude
from contact_estimation.io.npz import read_arrays

_FEWEST = 8  # impacts for a fit
_FEWEST_FOR_SLOPES = 40  # impacts for a restitution that depends on speed
_KEYS = ("pre", "post", "n", "d")


class Handedness(NamedTuple):
    """Whether the recorded angle turns like the recorded contact rows."""

    normal: int  # sign of the normal lever against the angle
    tangent: int  # sign of the tangential lever
    margin: float  # absolute deviations of the next-best pair of signs over those of this one, > 1

    @property
    def consistent(self) -> bool:
        """True when angle and contact rows turn the same way."""
        return self.normal == 1 and self.tangent == 1


#: Median relative error of unseen impulses that is let pass, and from which the model is worthless.
_UNPREDICTED, _USELESS = 0.15, 0.5
_APART = 0.15  # by which m/I from moments and from rotations may differ, relative to the first
_LEAST_JUMP = 0.02  # [m/s] common vertical jump that is let pass: 2 ms of gravity
_SIGMAS = 3.0  # standard deviations from which a common jump counts
_JUMP_RESAMPLES = 200  # for its standard deviation
_ALIKE = 0.8  # deviations of the best signs over those of the next-best pair


_UNCHECKED = (
    "no measurement checks the scale of the spin against that of vx and vy: m/I is wrong by the ratio of both",
    "no measurement checks the length of the levers in 'n' and 'd': levers 1 % long make m/I 1 % small",
)


@dataclass(frozen=True)
class Impacts:
    """States just before and after n impacts, and where they touched."""

    pre: Array  # (n, 6) x, y, theta and rates before
    post: Array  # (n, 6) after
    normal: Array  # contact rows (n, 3)
    tangent: Array  # contact rows (n, 3)

    def __len__(self) -> int:
        return len(self.pre)

    def take(self, index: Indices | Array) -> Impacts:
        """Return the impacts of ``index`` (indices or mask) only."""
        return Impacts(*(part[index] for part in (self.pre, self.post, self.normal, self.tangent)))

    @property
    def jump(self) -> Array:
        """Change of (vx, vy, omega) (n, 3); the first two are the impulse per unit mass [N s/kg]."""
        return self.post[:, 3:] - self.pre[:, 3:]

    def levers(self, signs: Handedness) -> tuple[Array, Array]:
        """Moment arms of the normal and tangential impulse (n,) [m]."""
        return signs.normal * self.normal[:, 2], signs.tangent * self.tangent[:, 2]

    def moment(self, signs: Handedness) -> Array:
        """Moment of the impulse per unit mass about the centre of mass (n,) [m^2/s]."""
        normal, tangent = self.levers(signs)
        return normal * self.jump[:, 1] + tangent * self.jump[:, 0]

    def contact_space(self, m_over_i: float, signs: Handedness) -> ContactSpace:
        """Return what the contact points see before the impacts, of a body of ``m_over_i`` [1/m^2]."""
        (rn, rt), v = self.levers(signs), self.pre[:, 3:]
        along, normal = v[:, 0] + rt * v[:, 2], v[:, 1] + rn * v[:, 2]
        return ContactSpace(along, normal, 1.0 + m_over_i * rt**2, 1.0 + m_over_i * rn**2, m_over_i * rn * rt)

    def speeds(self, signs: Handedness) -> Array:
        """1, speed along the ground and speed towards it (n, 3) [m/s] of the contact points before the impacts."""
        space = self.contact_space(0.0, signs)
        return np.column_stack([np.ones(len(self)), np.abs(space.along), space.closing])


@dataclass(frozen=True)
class ImpactModel:
    """What a set of impacts determines; real restitution falls with the speed of the contact point."""

    m_over_i: float  # [1/m^2]
    restitution: float  # median of the contact point
    friction: float  # Coulomb coefficient
    handedness: Handedness
    rebound: Array  # restitution at rest and its slopes [s/m] over the speeds along and against the ground (3,)

    def predict(self, impacts: Impacts) -> Array:
        """Impulses per unit mass (n, 2) [N s/kg], (tangential, normal), from the states before the impacts alone."""
        restitution = np.clip(impacts.speeds(self.handedness) @ self.rebound, 0.0, 1.0)
        space = impacts.contact_space(self.m_over_i, self.handedness)
        return complementary_newton(space, restitution, self.friction)


@dataclass(frozen=True)
class ImpactReport:
    """Result of :func:`identify_impacts`."""

    model: ImpactModel  # of all impacts
    interval: tuple[float, float]  # 95 % bootstrap interval of m/I
    reverse: (
        float  # m/I [1/m^2] of the moments regressed on the rotations, which errors of the moments do not attenuate
    )
    common_jump: float  # change of vy [m/s] in every impact that turns no body, see :func:`common_jump`
    common_jump_std: float  # its standard deviation [m/s]
    jump_limit: float  # [m/s] up to which it is let pass
    interval_total: tuple[float, float]  # 95 %, from the lower of both regressions to the upper
    predicted: Array  # impulses per unit mass (n, 2), each by a model that has not seen the impact
    errors: Array  # their relative errors (n,)
    used: int
    left_out: int

    @property
    def impulse_error_pct(self) -> float:
        """Median relative error of the impulse vector of unseen impacts [%]."""
        return float(100.0 * np.median(self.errors))

    @property
    def verdict(self) -> Verdict:
        """What unseen impacts and the signs of the angle say about the model."""
        error, doubt = float(np.median(self.errors)), 1.0 / self.model.handedness.margin
        wrong = f"impulses of unseen impacts are off by {100 * error:.0f} %: contact rows, states or units are wrong"
        signs = "two ways for the angle to turn explain the rotations nearly alike: the impacts hardly turn the body"
        direct = self.model.m_over_i
        apart = (
            f"m/I is {direct:.4g} 1/m^2 if the moments are taken as exact, {self.reverse:.4g} if the rotations are: "
            "levers, velocities or centre of mass are wrong, or the impacts are of different bodies"
        )
        jump = (
            f"vy changes by {self.common_jump:+.3f} m/s in every impact without turning the body, as gravity does in "
            f"{-1e3 * self.common_jump / GRAVITY:.0f} ms: pre and post are not at the instant of the impact; give "
            "'dt', the time between them, or extrapolate both to the instant; vy of another scale looks alike"
        )
        return conclude(
            [
                Finding("impulses", error, _UNPREDICTED, wrong, fatal=error > _USELESS),
                Finding("regressions", abs(self.reverse / direct - 1.0), _APART, apart),
                Finding("handedness", doubt, _ALIKE, signs),
                Finding("common_jump", abs(self.common_jump), self.jump_limit, jump),
            ],
            unchecked=_UNCHECKED,
        )


def load_impacts(path: Path | str) -> tuple[Impacts, int]:
    """Read the impacts of an npz.

    Args:
        path: archive with ``pre``, ``post``, ``n``, ``d`` and optionally ``flags`` (non-zero = suspect) and ``dt``, the
            time [s] between the velocities of ``pre`` and ``post``, a number or one per impact. Gravity's part of the
            jump is taken off, half of it before the impact and half after.

    Returns:
        The impacts, and how many rows were left out as suspect or not finite.

    Raises:
        RecordingError: no such file, a key is missing or has the wrong shape, or no row is usable.
    """
    found = read_arrays(path, _KEYS, ("flags", "dt"))
    count = len(found["pre"]) if found["pre"].ndim else 0
    for name, width in zip(_KEYS, (6, 6, 3, 3)):
        if found[name].shape != (count, width):
            raise RecordingError(f"{path}: {name} has shape {found[name].shape}, expected ({count}, {width})")
    if count == 0:
        raise RecordingError(f"{path} holds no impacts")
    flags = found.get("flags", np.zeros(count))
    if flags.ndim == 0 or len(flags) != count:
        raise RecordingError(f"{path}: flags has shape {flags.shape}, expected {count} rows as pre has")
    rows = [found[name] for name in _KEYS]
    if "dt" in found:
        rows[:2] = _at_impact(path, found["dt"], rows[0], rows[1])
    good = np.isfinite(np.hstack(rows)).all(axis=1) & (flags.reshape(count, -1) == 0).all(axis=1)
    if not good.any():
        raise RecordingError(f"{path}: none of the {count} impacts is free of flags and finite")
    return Impacts(*rows).take(np.flatnonzero(good)), int((~good).sum())


def _at_impact(path: Path | str, dt: Array, pre: Array, post: Array) -> list[Array]:
    """Return both states with the velocities that gravity gives them in the middle of ``dt``."""
    if dt.shape not in ((), (1,), (len(pre),)) or np.any(dt < 0.0):
        raise RecordingError(
            f"{path}: dt has shape {dt.shape}, least value {np.min(dt, initial=np.inf):.3g} s; expected a number or "
            f"({len(pre)},), none below 0: the time from pre to post of each impact"
        )
    fallen = np.zeros_like(pre)
    fallen[:, 4] = -0.5 * GRAVITY * dt
    return [pre + fallen, post - fallen]


def least_absolute_ratio(regressor: ArrayLike, target: ArrayLike) -> float:
    """Return the global minimiser of sum |target - ratio regressor|: a weighted median of the ratios."""
    regressor, target = np.asarray(regressor, float), np.asarray(target, float)
    keep = regressor != 0.0
    if not keep.any():
        raise IdentificationError("every impact's moment arm is zero: no rotation can be attributed to m/I")
    ratio, weight = target[keep] / regressor[keep], np.abs(regressor[keep])
    order = np.argsort(ratio)
    total = np.cumsum(weight[order])
    return float(ratio[order][np.searchsorted(total, 0.5 * total[-1])])


def find_handedness(impacts: Impacts) -> Handedness:
    """Try the four sign pairs of the levers; the best has the least absolute deviation with a positive m/I."""
    rotation, trials = impacts.jump[:, 2], []
    for normal in (1, -1):
        for tangent in (1, -1):
            moment = impacts.moment(Handedness(normal, tangent, 1.0))
            ratio = max(least_absolute_ratio(moment, rotation), 0.0)
            trials.append((float(np.abs(rotation - ratio * moment).sum()), normal, tangent))
    best, second = sorted(trials)[:2]
    return Handedness(best[1], best[2], second[0] / max(best[0], 1e-300))


def fit_model(impacts: Impacts) -> ImpactModel:
    """m/I by least absolute deviation, restitution from the contact points' rebounds, friction by the impulses.

    Raises:
        IdentificationError: too few impacts, or levers without any moment.
    """
    if len(impacts) < _FEWEST:
        raise IdentificationError(
            f"{len(impacts)} impacts given, at least {_FEWEST} are needed for m/I with an interval"
        )
    signs = find_handedness(impacts)
    m_over_i = least_absolute_ratio(impacts.moment(signs), impacts.jump[:, 2])
    if m_over_i <= 0.0:
        raise IdentificationError(
            f"m/I came out as {m_over_i:.3g} 1/m^2 with every handedness: rotations and levers contradict"
        )
    restitution, rebound = _restitution(impacts, signs)
    varying = np.clip(impacts.speeds(signs) @ rebound, 0.0, 1.0)
    measured, grid = impacts.jump[:, :2], np.linspace(0.0, 1.5, 61)
    space = impacts.contact_space(m_over_i, signs)
    for _ in range(3):  # the deviation has many minima: a grid, then two finer ones around its best
        off = deviations(complementary_newton, space, varying, grid, measured)
        best, width = grid[int(np.argmin(off))], grid[1] - grid[0]
        grid = np.linspace(max(best - width, 0.0), best + width, 11)
    return ImpactModel(m_over_i, restitution, float(best), signs, rebound)


def identify_impacts(
    impacts: Impacts, left_out: int = 0, folds: int = 5, resamples: int = 2000, seed: int = 0
) -> ImpactReport:
    """m/I with a 95 % bootstrap interval, and impulses of every impact predicted by a model of the other folds.

    Raises:
        IdentificationError: see :func:`fit_model`.
    """
    fewest = _FEWEST + int(np.ceil(len(impacts) / folds))
    if len(impacts) < fewest:
        raise IdentificationError(
            f"{len(impacts)} usable impacts, at least {fewest} are needed to fit and to predict unseen ones"
        )
    model, rng = fit_model(impacts), np.random.default_rng(seed)
    moment, jump = impacts.moment(model.handedness), impacts.jump
    draws = rng.integers(len(impacts), size=(resamples, len(impacts)))
    ratios = [least_absolute_ratio(moment[d], jump[d, 2]) for d in draws]
    reverse = _reverse_ratio(moment, jump[:, 2])
    reversed_ratios = [_reverse_ratio(moment[d], jump[d, 2]) for d in draws]
    predicted, errors = predict_unseen(
        jump[:, :2], folds, rng, lambda seen, unseen: fit_model(impacts.take(seen)).predict(impacts.take(unseen))
    )
    (low, high), ends = (np.quantile(r, [0.025, 0.975]) for r in (ratios, reversed_ratios))
    total = (float(min(low, ends[0])), float(max(high, ends[1])))
    common, spread = common_jump(impacts, model.handedness, rng)
    attenuated = abs(reverse / model.m_over_i - 1.0) * float(np.median(np.abs(jump[:, 1])))  # [m/s] looks like one
    limit = max(_SIGMAS * spread + attenuated, _LEAST_JUMP)
    apart = (common, spread, limit) if np.isfinite(common) else (0.0, np.inf, np.inf)
    interval = float(low), float(high)
    return ImpactReport(model, interval, reverse, *apart, total, predicted, errors, len(impacts), left_out)


def common_jump(impacts: Impacts, signs: Handedness, rng: np.random.Generator) -> tuple[float, float]:
    """Estimate a change of vy that is the same in every impact and turns no body, such as gravity's.

    dtheta' = m/I (moment - r_n c): the lever r_n of the normal is a second regressor beside the moment.

    Returns:
        c and its standard deviation [m/s], from a bootstrap.
    """
    columns = np.column_stack([impacts.moment(signs), impacts.levers(signs)[0]])
    rotation, count = impacts.jump[:, 2], len(impacts)
    if np.linalg.matrix_rank(columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300), 1e-6) < 2:
        return 0.0, np.inf

    def jump(rows: Array | Indices) -> float:
        ratio, lever = _least_absolute(columns[rows], rotation[rows])
        return float(-lever / ratio) if ratio > 0.0 else np.nan

    draws = np.array([jump(rng.integers(count, size=count)) for _ in range(_JUMP_RESAMPLES)])
    return jump(np.arange(count)), float(1.4826 * np.nanmedian(np.abs(draws - np.nanmedian(draws))))


def _least_absolute(columns: Array, target: Array) -> Array:
    """Return the least-absolute-deviation fit of columns (n, p), by iteratively reweighted least squares."""
    weights = np.ones(len(target))
    for _ in range(20):
        line = np.linalg.lstsq(columns * weights[:, None], target * weights, rcond=None)[0]
        left = np.abs(target - columns @ line)
        weights = 1.0 / np.sqrt(np.maximum(left, 1e-2 * np.median(left) + 1e-12))
    return np.asarray(line)


def _reverse_ratio(moment: Array, rotation: Array) -> float:
    """Return m/I [1/m^2] as one over the least-absolute slope of the moments over the rotations; infinite if flat."""
    slope = least_absolute_ratio(rotation, moment)
    return 1.0 / slope if slope > 0.0 else np.inf


def _restitution(impacts: Impacts, signs: Handedness) -> tuple[float, Array]:
    """Median restitution and its least-absolute line (3,) over the speeds; few impacts get a constant."""
    speeds = impacts.speeds(signs)
    after = impacts.post[:, 4] + impacts.levers(signs)[0] * impacts.post[:, 5]
    falling = speeds[:, 2] > 0.0
    if not falling.any():
        return 0.0, np.zeros(3)
    rows, values = speeds[falling], after[falling] / speeds[falling, 2]
    middle = float(np.clip(np.median(values), 0.0, 1.0))
    if len(values) < _FEWEST_FOR_SLOPES:
        return middle, np.array([middle, 0.0, 0.0])
    weights = np.ones(len(values))
    for _ in range(30):  # iteratively reweighted least squares
        line = np.linalg.lstsq(rows * weights[:, None], values * weights, rcond=None)[0]
        weights = 1.0 / np.sqrt(np.maximum(np.abs(values - rows @ line), 1e-2))
    return middle, line
