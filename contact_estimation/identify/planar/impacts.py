"""m/I, restitution, friction and contact impulses from states just before and after single impacts (paper 5, section
5.4).

Each impact obeys I dtheta' = s_n n_3 (m dv_y) + s_t d_3 (m dv_x): moments of the normal and tangential impulse about
the centre of mass (eq. 27). The signs s say whether the recorded angle turns the same way as the recorded contact
rows. Recordings differ in that, so all four are tried, the one that explains the rotations best and gives a positive
m/I is taken, and it is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contact_estimation.exceptions import IdentificationError, RecordingError
from contact_estimation.identify.planar.recordings import read_arrays

_FEWEST = 8  # impacts for a fit
_FEWEST_FOR_SLOPES = 40  # impacts for a restitution that depends on speed
_KEYS = ("pre", "post", "n", "d")


@dataclass(frozen=True)
class Impacts:
    """States ``pre``, ``post`` (n, 6) = x, y, theta and rates just before and after; contact rows ``normal``,
    ``tangent`` (n, 3)."""

    pre: np.ndarray
    post: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray

    def __len__(self) -> int:
        return len(self.pre)

    def take(self, index) -> "Impacts":
        """The impacts of ``index`` only."""
        return Impacts(self.pre[index], self.post[index], self.normal[index], self.tangent[index])

    @property
    def jump(self) -> np.ndarray:
        """Change of (vx, vy, omega) (n, 3); the first two are the impulse per unit mass [N s/kg]."""
        return self.post[:, 3:] - self.pre[:, 3:]


@dataclass(frozen=True)
class Handedness:
    """Signs of the normal and tangential lever against the recorded angle, and how much worse the next-best pair
    explains the rotations (ratio of absolute deviations, > 1)."""

    normal: int
    tangent: int
    margin: float

    @property
    def consistent(self) -> bool:
        """True when angle and contact rows turn the same way."""
        return self.normal == 1 and self.tangent == 1


@dataclass(frozen=True)
class ImpactModel:
    """What a set of impacts determines: ``m_over_i`` [1/m^2], median restitution of the contact point, Coulomb
    friction, signs.

    Real restitution falls with the speed of the contact point: ``rebound`` (3,) holds its value at rest and its slopes
    [s/m] over the speeds along and against the ground.
    """

    m_over_i: float
    restitution: float
    friction: float
    handedness: Handedness
    rebound: np.ndarray

    def predict(self, impacts: Impacts) -> np.ndarray:
        """Impulses per unit mass (n, 2) [N s/kg], (tangential, normal), from the states before the impacts alone."""
        restitution = np.clip(_contact_speeds(impacts, self.handedness) @ self.rebound, 0.0, 1.0)
        return predict_impulses(impacts, self.m_over_i, restitution, self.friction, self.handedness)


@dataclass(frozen=True)
class ImpactReport:
    """Result of :func:`identify_impacts`: ``model`` of all impacts, 95 % bootstrap ``interval`` of m/I; ``predicted``
    impulses per unit mass (n, 2), each by a model that has not seen the impact, and their relative ``errors`` (n,)."""

    model: ImpactModel
    interval: tuple[float, float]
    predicted: np.ndarray
    errors: np.ndarray
    used: int
    left_out: int

    @property
    def impulse_error_pct(self) -> float:
        """Median relative error of the impulse vector of unseen impacts [%]."""
        return float(100.0 * np.median(self.errors))


def load_impacts(path: Path | str) -> tuple[Impacts, int]:
    """Impacts of an npz with ``pre``, ``post``, ``n``, ``d`` and optionally ``flags`` (non-zero = suspect), and how
    many rows were left out as suspect or not finite.

    Raises:
        RecordingError: no such file, a key is missing or has the wrong shape, or no row is usable.
    """
    found = read_arrays(path, _KEYS, ("flags",))
    pre, post, normal, tangent = (found[key] for key in _KEYS)
    count = len(pre) if pre.ndim else 0
    for name, array, width in (("pre", pre, 6), ("post", post, 6), ("n", normal, 3), ("d", tangent, 3)):
        if array.shape != (count, width):
            raise RecordingError(f"{path}: {name} has shape {array.shape}, expected ({count}, {width})")
    if count == 0:
        raise RecordingError(f"{path} holds no impacts")
    flags = found.get("flags", np.zeros(count))
    if flags.ndim == 0 or len(flags) != count:
        raise RecordingError(f"{path}: flags has shape {flags.shape}, expected {count} rows as pre has")
    rows = np.hstack([pre, post, normal, tangent])
    good = np.isfinite(rows).all(axis=1) & (flags.reshape(count, -1) == 0).all(axis=1)
    if not good.any():
        raise RecordingError(f"{path}: none of the {len(pre)} impacts is free of flags and finite")
    return Impacts(pre, post, normal, tangent).take(good), int((~good).sum())


def least_absolute_ratio(regressor, target) -> float:
    """The global minimiser of sum |target - ratio regressor|: a weighted median of the ratios."""
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
    jump, trials = impacts.jump, []
    for normal in (1, -1):
        for tangent in (1, -1):
            moment = _moment(impacts, normal, tangent)
            ratio = least_absolute_ratio(moment, jump[:, 2])
            deviation = np.abs(jump[:, 2] - max(ratio, 0.0) * moment).sum()
            trials.append((deviation, normal, tangent))
    trials.sort()
    return Handedness(trials[0][1], trials[0][2], float(trials[1][0] / max(trials[0][0], 1e-300)))


def predict_impulses(impacts: Impacts, m_over_i: float, restitution: float | np.ndarray,
                     friction: float, signs: Handedness) -> np.ndarray:
    """Impulses per unit mass (n, 2), (tangential, normal): the LCP of eq. 8 for one contact, solved in closed form
    (eq. 20, 24).

    Sticking first; where it needs more friction than there is, sliding on the edge of the cone.
    """
    rn, rt = signs.normal * impacts.normal[:, 2], signs.tangent * impacts.tangent[:, 2]
    v = impacts.pre[:, 3:]
    a_nn, a_tt, a_nt = 1.0 + m_over_i * rn**2, 1.0 + m_over_i * rt**2, m_over_i * rn * rt
    want_n = -(1.0 + restitution) * np.minimum(v[:, 1] + rn * v[:, 2], 0.0)
    want_t = -(v[:, 0] + rt * v[:, 2])
    determinant = a_nn * a_tt - a_nt**2
    stick_n, stick_t = (a_tt * want_n - a_nt * want_t) / determinant, (a_nn * want_t - a_nt * want_n) / determinant
    edge = friction * np.sign(stick_t)
    slide_n = want_n / np.maximum(a_nn + edge * a_nt, 1e-9)
    sticks = np.abs(stick_t) <= friction * stick_n
    return np.stack([np.where(sticks, stick_t, edge * slide_n), np.where(sticks, stick_n, slide_n)], axis=1)


def fit_model(impacts: Impacts, signs: Handedness | None = None) -> ImpactModel:
    """m/I by least absolute deviation, restitution from the contact points' rebounds, friction by the impulses.

    Raises:
        IdentificationError: too few impacts, or levers without any moment.
    """
    if len(impacts) < _FEWEST:
        raise IdentificationError(
            f"{len(impacts)} impacts given, at least {_FEWEST} are needed for m/I with an interval")
    signs = signs or find_handedness(impacts)
    m_over_i = least_absolute_ratio(_moment(impacts, signs.normal, signs.tangent), impacts.jump[:, 2])
    if m_over_i <= 0.0:
        raise IdentificationError(
            f"m/I came out as {m_over_i:.3g} 1/m^2 with every handedness: rotations and levers contradict")
    restitution, rebound = _restitution(impacts, signs)
    varying = np.clip(_contact_speeds(impacts, signs) @ rebound, 0.0, 1.0)
    measured = impacts.jump[:, :2]

    def deviation(friction):
        return np.abs(predict_impulses(impacts, m_over_i, varying, friction, signs) - measured).sum()

    grid = np.linspace(0.0, 1.5, 61)
    for _ in range(3):
        best = grid[int(np.argmin([deviation(f) for f in grid]))]
        width = grid[1] - grid[0]
        grid = np.linspace(max(best - width, 0.0), best + width, 11)
    return ImpactModel(m_over_i, restitution, float(best), signs, rebound)


def identify_impacts(impacts: Impacts, left_out: int = 0, folds: int = 5,
                     resamples: int = 2000, seed: int = 0) -> ImpactReport:
    """m/I with a 95 % bootstrap interval, and impulses of every impact predicted by a model of the other folds.

    Raises:
        IdentificationError: see :func:`fit_model`.
    """
    fewest = _FEWEST + int(np.ceil(len(impacts) / folds))
    if len(impacts) < fewest:
        raise IdentificationError(
            f"{len(impacts)} usable impacts, at least {fewest} are needed to fit and to predict unseen ones")
    model = fit_model(impacts)
    signs, rng = model.handedness, np.random.default_rng(seed)
    moment, rotation = _moment(impacts, signs.normal, signs.tangent), impacts.jump[:, 2]
    draws = rng.integers(len(impacts), size=(resamples, len(impacts)))
    ratios = [least_absolute_ratio(moment[d], rotation[d]) for d in draws]
    predicted = np.empty((len(impacts), 2))
    fold = rng.permutation(len(impacts)) % folds
    for i in range(folds):
        unseen = fold == i
        predicted[unseen] = fit_model(impacts.take(~unseen)).predict(impacts.take(unseen))
    measured = impacts.jump[:, :2]
    errors = np.linalg.norm(predicted - measured, axis=1) / np.maximum(np.linalg.norm(measured, axis=1), 1e-12)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return ImpactReport(model, (float(low), float(high)), predicted, errors, len(impacts), left_out)


def _contact_speeds(impacts: Impacts, signs: Handedness) -> np.ndarray:
    """1, speed along the ground and speed towards it (n, 3) [m/s] of the contact points before the impacts."""
    v = impacts.pre[:, 3:]
    along = v[:, 0] + signs.tangent * impacts.tangent[:, 2] * v[:, 2]
    towards = -v[:, 1] - signs.normal * impacts.normal[:, 2] * v[:, 2]
    return np.column_stack([np.ones(len(v)), np.abs(along), np.maximum(towards, 0.0)])


def _restitution(impacts: Impacts, signs: Handedness) -> tuple[float, np.ndarray]:
    """Median restitution, and its least absolute deviation line (3,) over :func:`_contact_speeds`; few impacts get a
    constant."""
    speeds = _contact_speeds(impacts, signs)
    after = impacts.post[:, 4] + signs.normal * impacts.normal[:, 2] * impacts.post[:, 5]
    falling = speeds[:, 2] > 0.0
    if not falling.any():
        return 0.0, np.zeros(3)
    rows, values = speeds[falling], after[falling] / speeds[falling, 2]
    middle = float(np.clip(np.median(values), 0.0, 1.0))
    if len(values) < _FEWEST_FOR_SLOPES:
        return middle, np.array([middle, 0.0, 0.0])
    weights = np.ones(len(values))
    for _ in range(30):
        line = np.linalg.lstsq(rows * weights[:, None], values * weights, rcond=None)[0]
        weights = 1.0 / np.sqrt(np.maximum(np.abs(values - rows @ line), 1e-2))
    return middle, line


def _moment(impacts: Impacts, normal: int, tangent: int) -> np.ndarray:
    """Moment of the impulse per unit mass about the centre of mass (n,) [m^2/s], for the given signs of the levers."""
    jump = impacts.jump
    return normal * impacts.normal[:, 2] * jump[:, 1] + tangent * impacts.tangent[:, 2] * jump[:, 0]
