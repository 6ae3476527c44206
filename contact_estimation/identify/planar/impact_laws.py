"""Five laws of a rigid planar impact side by side, with one restitution e and one Coulomb friction mu each.

Impulses per unit mass (p_t, p_n) change the velocity u of the contact point by

    du_t = a_tt p_t + a_nt p_n,    du_n = a_nt p_t + a_nn p_n,    a = J M^-1 J^T.

Three laws let the normal impulse grow and friction follow the slip of the moment, which may stop or reverse (Routh,
Dynamics of a system of rigid bodies, 1860). Compression ends at p_c, where u_n = 0. The impact ends where

    Newton        u_n' = -e u_n                                 (Wang and Mason 1992)
    Poisson       p_n = (1 + e) p_c                             (Wang and Mason 1992)
    energetic     work of restitution = -e^2 work of compression  (Stronge 1990; Mirtich 1996)

Two solve a complementarity problem for the velocity at the end alone, in which friction opposes the slip at the end:
Newton's law in paper 5 (eq. 8), and Poisson's in two such problems, compression and then restitution (Anitescu and
Potra, Formulating dynamic multi-rigid-body contact problems with friction as solvable LCPs, 1997).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array, Indices

#: Where a rate vanishes; a normal impulse [m/s] that no impact has.
_TINY, _NEVER = 1e-9, 1e12


class ContactSpace(NamedTuple):
    """Impacts (n,) as their contact points see them: velocities before [m/s], entries of a per unit mass [1]."""

    along: Array
    normal: Array  # upwards, negative where the point comes
    a_tt: Array
    a_nn: Array
    a_nt: Array

    @property
    def closing(self) -> Array:
        """Speed towards the ground (n,) [m/s], 0 where the point leaves."""
        return np.maximum(-self.normal, 0.0)

    def take(self, index: Indices) -> ContactSpace:
        """Return the impacts of ``index`` only."""
        return ContactSpace(*(part[index] for part in self))


class SlipPath:
    """Routh's path: velocities and friction while the normal impulse grows, in two straight parts.

    Args:
        space: the impacts.
        friction: mu, one or (n,).

    Attributes:
        until: (n,) normal impulse at which the first slip stops [m/s], beyond all impacts where it does not.
        rates: du_n / dp_n (n,) of both parts.
    """

    def __init__(self, space: ContactSpace, friction: float | Array) -> None:
        way = np.where(space.along >= 0.0, 1.0, -1.0)
        self._first = -way * friction  # dp_t / dp_n
        slowing = -way * (space.a_nt + self._first * space.a_tt)
        stops = slowing > _TINY
        self.until = np.where(stops, np.abs(space.along) / np.where(stops, slowing, 1.0), _NEVER)
        self._then = np.clip(-space.a_nt / space.a_tt, -friction, friction)  # sticks, or slides the other way
        self.rates = [np.maximum(space.a_nn + part * space.a_nt, _TINY) for part in (self._first, self._then)]

    def reaching(self, change: Array) -> Array:
        """Return the normal impulse (n,) after which u_n has changed by ``change`` (n,) [m/s]."""
        first, then = self.rates
        left = change - first * self.until
        return np.where(left > 0, self.until + left / then, change / first)

    def impulses(self, normal: Array) -> Array:
        """Return (p_t, p_n) (n, 2) at the normal impulse ``normal`` (n,)."""
        first = np.minimum(normal, self.until)
        return np.stack([self._first * first + self._then * (normal - first), normal], axis=1)


def newton(space: ContactSpace, restitution: float | Array, friction: float | Array) -> Array:
    """Return the impulses per unit mass (n, 2), (tangential, normal), by Newton's law on Routh's path."""
    path = SlipPath(space, friction)
    return path.impulses(path.reaching((1.0 + restitution) * space.closing))


def poisson(space: ContactSpace, restitution: float | Array, friction: float | Array) -> Array:
    """Return them by Poisson's law."""
    path = SlipPath(space, friction)
    return path.impulses((1.0 + restitution) * path.reaching(space.closing))


def energetic(space: ContactSpace, restitution: float | Array, friction: float | Array) -> Array:
    """Return them by Stronge's law: work of the normal impulse, a parabola in each part of the path."""
    path = SlipPath(space, friction)
    first, then = path.rates
    end = path.reaching(space.closing)
    in_first, in_then = np.minimum(end, path.until), np.maximum(end - path.until, 0.0)
    between = np.maximum(space.closing - first * in_first, 0.0)  # -u_n where the parts meet
    wanted = restitution**2 * 0.5 * ((space.closing + between) * in_first + between * in_then)
    ahead = np.maximum(path.until - end, 0.0)  # of the first part, in restitution
    done, at = 0.5 * first * ahead**2, first * ahead  # work there, and u_n where the parts meet
    root = np.sqrt(at**2 + 2.0 * then * np.maximum(wanted - done, 0.0))
    more = np.where(wanted <= done, np.sqrt(2.0 * wanted / first), ahead + (root - at) / then)
    return path.impulses(end + more)


def complementary_newton(space: ContactSpace, restitution: float | Array, friction: float | Array) -> Array:
    """Return them by eq. 8 for one contact in closed form (eq. 20, 24): sticking, or the edge of the cone."""
    a_tt, a_nn, a_nt = space.a_tt, space.a_nn, space.a_nt
    want_n, want_t = (1.0 + restitution) * space.closing, -space.along
    determinant = a_nn * a_tt - a_nt**2
    stick_n, stick_t = (a_tt * want_n - a_nt * want_t) / determinant, (a_nn * want_t - a_nt * want_n) / determinant
    edge = friction * np.sign(stick_t)
    slide_n = want_n / np.maximum(a_nn + edge * a_nt, _TINY)
    sticks = np.abs(stick_t) <= friction * stick_n
    return np.stack([np.where(sticks, stick_t, edge * slide_n), np.where(sticks, stick_n, slide_n)], axis=1)


def complementary_poisson(space: ContactSpace, restitution: float | Array, friction: float | Array) -> Array:
    """Return them by Poisson's law in two complementarity problems; the second returns e times the normal impulse."""
    before = complementary_newton(space, 0.0, friction)
    returned = restitution * before[:, 1]
    along = space.along + space.a_tt * before[:, 0] + space.a_nt * before[:, 1]
    sticking = -(along + space.a_nt * returned) / space.a_tt
    tangential = np.clip(sticking, -friction * returned, friction * returned)
    # Friction may pull the point back to the ground; the ground then holds it by more than was stored.
    rest = np.stack([tangential, returned], axis=1)
    pulled = space.a_nt * tangential + space.a_nn * returned < 0
    held = ContactSpace(along, space.normal * 0.0, *space[2:])
    return before + np.where(pulled[:, None], complementary_newton(held, 0.0, friction), rest)


#: Impulses (n, 2) of n impacts with restitution and friction, each one or (n,).
Law = Callable[[ContactSpace, float | Array, float | Array], Array]

LAWS: dict[str, Law] = {
    "newton": newton,
    "poisson": poisson,
    "energetic": energetic,
    "complementary_newton": complementary_newton,
    "complementary_poisson": complementary_poisson,
}


class LawScore(NamedTuple):
    """How a law predicts impacts that its numbers were not fitted to."""

    law: str
    restitution: float  # of all impacts
    friction: float
    error_pct: float  # median relative error of the impulse vector [%]
    error_p90_pct: float  # its 90th percentile


def deviations(law: Law, space: ContactSpace, restitution: float | Array, frictions: Array, measured: Array) -> Array:
    """Return the summed absolute deviations (m,) of a law from impulses (n, 2), for each of the ``frictions`` (m,)."""
    count, many = len(measured), len(frictions)
    every = space.take(np.tile(np.arange(count), many))
    each = np.tile(np.broadcast_to(restitution, count), many)
    off = np.abs(law(every, each, np.repeat(frictions, count)).reshape(many, count, 2) - measured)
    return np.asarray(off.reshape(many, -1).sum(axis=1))


def fit_law(law: str, space: ContactSpace, measured: Array) -> tuple[float, float]:
    """Return restitution and friction with the least absolute deviation from impulses (n, 2) per unit mass."""
    predict = LAWS[law]
    centre, width = np.array([0.5, 0.75]), np.array([0.5, 0.75])
    for count in (21, 11, 11):  # many minima: a grid, then finer ones around its best
        axes = [np.linspace(max(c - w, 0.0), c + w, count) for c, w in zip(centre, width)]
        costs = [deviations(predict, space, e, axes[1], measured) for e in axes[0]]
        best = np.unravel_index(int(np.argmin(costs)), (count, count))
        centre = np.array([axis[k] for axis, k in zip(axes, best)])
        width = np.array([axis[1] - axis[0] for axis in axes])
    return float(centre[0]), float(centre[1])


def predict_unseen(
    measured: Array, folds: int, rng: np.random.Generator, predict: Callable[[Indices, Indices], Array]
) -> tuple[Array, Array]:
    """Predict every impact by what was fitted to the other folds.

    Args:
        measured: impulses (n, 2) per unit mass, (tangential, normal) [m/s].
        folds: of the cross-validation.
        rng: draws them.
        predict: of the impacts to fit to and those to predict, gives the impulses (k, 2) of the latter.

    Returns:
        The predictions (n, 2), and their relative errors (n,).
    """
    predicted, fold = np.empty(measured.shape), rng.permutation(len(measured)) % folds
    for k in range(folds):
        unseen = np.flatnonzero(fold == k)
        predicted[unseen] = predict(np.flatnonzero(fold != k), unseen)
    size = np.maximum(np.linalg.norm(measured, axis=1), 1e-12)
    return predicted, np.linalg.norm(predicted - measured, axis=1) / size


def compare_laws(space: ContactSpace, measured: Array, folds: int = 5, seed: int = 0) -> list[LawScore]:
    """Fit every law to all folds but one and predict that one; the best law comes first.

    Args:
        space: n impacts.
        measured: impulses (n, 2) per unit mass, (tangential, normal) [m/s].
        folds: of the cross-validation.
        seed: of the folds.
    """
    scores = []
    for law in LAWS:

        def predict(seen: Indices, unseen: Indices, law: str = law) -> Array:
            return LAWS[law](space.take(unseen), *fit_law(law, space.take(seen), measured[seen]))

        _, errors = predict_unseen(measured, folds, np.random.default_rng(seed), predict)
        middle, high = (100.0 * np.percentile(errors, [50.0, 90.0])).tolist()
        scores.append(LawScore(law, *fit_law(law, space, measured), middle, high))
    return sorted(scores, key=lambda score: score.error_pct)
