"""The contact modes as a Markov chain, and the mixing of their filters: the interacting multiple model filter.

Blom and Bar-Shalom, The interacting multiple model algorithm for systems with Markovian switching coefficients, 1988.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from contact_estimation.codegen import named_function, symbols
from contact_estimation.filters.imm.push_course import PushCourse
from contact_estimation.filters.imm.settings import UNKNOWN, ImmSettings, UnknownContactSettings
from contact_estimation.filters.kalman import packed_outer, packed_size

#: Course of a push that neither ends nor reverses.
_ANY_COURSE = PushCourse()
#: Share of the probability that known contacts would have behind a gap, where an unknown one acted before it.
_KNOWN = 0.01
#: exp(-600) is 1e-261, far below the least mode probability; no likelihood becomes zero.
_LEAST_LOG_LIKELIHOOD = -600.0
#: 1 / 18! is below the rounding error of a double.
_UNIFORMISATION_TERMS = 18


class ModeChain:
    """Combinations of closed contacts and the unknown contact, and their filters.

    A slow press adds little evidence per block. A plain IMM restarts the filter of an improbable contact from the free
    one at every block, so its evidence never accumulates. A combination of contacts therefore has several filters, born
    at different times. Only one of them, the newborn, mixes with filters of other combinations.

    Beside an unknown contact three combinations follow those of known contacts: a push that changes, a steady push, and
    free space with steady friction. Friction is as steady in the last one as in a push, so a push has to earn its place
    by its torque alone.

    Args:
        settings: contacts, modes and rates.
        hypotheses: filters per combination of closed contacts.
        steady_rate: how often a push is steady from its first moment [1/s].

    Attributes:
        names: of the modes: ``free``, ``contact_1``, ``contact_1+contact_2``, ..., ``unknown``.
        free_mode: index of ``free`` in these, None where the arm is never free.
        combinations: (C, I) one where a combination has the contact closed.
        unknown: (C,) one where a combination is the unknown contact.
        rates: (C, C) generator of the combinations' Markov chain [1/s]; only one contact changes at an instant.
        owner: (M,) combination of each filter.
        label: (M,) mode of each filter.
        closed: (M, I) one where a filter has the known contact closed.
        touched: (M,) whether a filter has any known contact closed.
        felt: (M,) one where an unknown contact acts in a filter.
        free: (M,) whether nothing touches the arm in a filter.
        steady_friction: (M,) whether friction is nearly constant in a filter.
        walk: (M,) share of the random walk that the unknown torque has in a filter.
    """

    def __init__(self, settings: ImmSettings, hypotheses: int, steady_rate: float = 0.0) -> None:
        names = [c.name for c in settings.contacts]
        chosen = settings.modes
        if chosen is None:
            chosen = [list(c) for k in range(len(names) + 1) for c in combinations(names, k)]
        self.names = ["+".join(mode) if mode else "free" for mode in chosen]
        self.combinations = np.array([[float(name in mode) for name in names] for mode in chosen])  # (C, I)
        self.rates = _rates(self.combinations, settings.close_rate, settings.open_rate)
        filters = [hypotheses if mode and len(chosen) > 1 else 1 for mode in chosen]
        self.unknown, labels, steady = np.zeros(len(chosen)), [*range(len(chosen))], [False] * len(chosen)
        self._changing, self._steady = len(chosen), len(chosen) + 1
        if settings.has_unknown:
            free, unknown = chosen.index([]), settings.unknown
            filters, labels = [*filters, unknown.filters, 1, 1], [*labels, len(chosen), len(chosen), free]
            self.names.append(UNKNOWN)
            self.rates = _with_unknown(self.rates, self.combinations, unknown, steady_rate)
            self.rates = _with_steady_friction(self.rates, free, unknown.friction_change_rate)
            self.combinations = np.vstack([self.combinations, np.zeros((3, len(names)))])
            self.unknown, steady = np.append(self.unknown, [1.0, 1.0, 0.0]), [*steady, True, True, True]
        count = len(filters)
        self.owner = np.repeat(np.arange(count), filters)
        self.closed, self.felt = self.combinations[self.owner], self.unknown[self.owner]
        self.touched: NDArray[np.bool_] = np.asarray(self.closed.any(axis=1))
        self.free: NDArray[np.bool_] = ~self.touched & (self.felt == 0)
        self.label, self.steady_friction = np.array(labels)[self.owner], np.array(steady)[self.owner]
        self._rates_if_reversed = self._with_end_rate(settings.unknown.rate_if_reversed)
        self.walk = np.where(self.owner == self._steady, settings.unknown.steady_share, 1.0) * self.felt
        self._floor = settings.least_probability
        self.free_mode = chosen.index([]) if [] in chosen else None
        self._first = np.searchsorted(self.owner, np.arange(count))
        self._newborn = self._first.copy()

    def reset(self, closed: float, last: int | None = None) -> np.ndarray:
        """Return the probabilities (M,) of the filters before the first sample; the newborns are the first ones again.

        Args:
            closed: probability that anything is touched.
            last: the most probable filter of before, None where there was none. An unknown contact has hardly become a
                known one.
        """
        self._newborn = self._first.copy()
        free = self.free
        if free.all() or not free.any():
            return np.full(len(free), 1.0 / len(free))
        share = np.where(free, 0.0, 1.0)
        if last is not None and self.felt[last]:
            share[self.touched] *= _KNOWN
        shared = np.where(free, (1 - closed) / free.sum(), closed * share / share.sum())
        return np.asarray(np.maximum(shared, self._floor))

    def transition(self, dt: float, deciding: bool = False, push: PushCourse = _ANY_COURSE) -> np.ndarray:
        """Return the probabilities (M, M) of going from filter a (row) to filter b in ``dt`` [s].

        Staying within a combination keeps the filter; coming from another one leads to the newborn.

        Args:
            dt: time step [s].
            deciding: no known contact closes, from free space or from an unknown contact: a newborn would replace the
                one that may be closed since the start.
            push: course of an unknown contact's force. Where it reverses it has probably ended, and while it ends no
                known contact closes in its place.
        """
        chain = _transition(self._rates_if_reversed if push.reverses else self.rates, dt)
        if self.unknown.any():  # no detour over a changing push within dt: it would change which filter is the source
            known, changing, steady = self.unknown == 0, self._changing, self._steady
            direct = np.minimum(self.rates[known, steady] * dt, chain[known, steady])
            chain[known, changing] += chain[known, steady] - direct
            chain[known, steady] = direct
        enters = self._newborn[self.owner] == np.arange(len(self.owner))
        matrix = chain[np.ix_(self.owner, self.owner)] * enters
        staying = np.diag(chain)[self.owner]
        if deciding or push.ends:
            before = ~self.touched if deciding else self.felt > 0
            closing = before[:, None] & self.touched
            staying = staying + np.where(closing, matrix, 0.0).sum(axis=1)
            matrix[closing] = 0.0
        same = self.owner[:, None] == self.owner
        return np.asarray(np.where(same, 0.0, matrix) + np.diag(staying))

    def _with_end_rate(self, rate: float) -> np.ndarray:
        """Return the generator (C, C) [1/s] with ``rate`` [1/s] from an unknown contact to free space."""
        rates, touched = self.rates.copy(), self.combinations.any(axis=1) | (self.unknown > 0)
        unknown, free = np.flatnonzero(self.unknown), np.flatnonzero(~touched)
        rates[np.ix_(unknown, free)] = rate / max(len(free), 1)
        np.fill_diagonal(rates, 0.0)
        return np.asarray(rates - np.diag(rates.sum(axis=1)))

    def give_birth(self, probabilities: np.ndarray) -> bool:
        """Make the least probable filter of every combination its newborn.

        Its probability goes to the combination's most probable one.

        Args:
            probabilities: (M,) of the filters, changed in place.

        Returns:
            Whether a newborn has changed: :meth:`transition` must then be asked again.
        """
        before = self._newborn.copy()
        for c in range(self.owner[-1] + 1):
            members = np.flatnonzero(self.owner == c)
            worst, best = members[np.argmin(probabilities[members])], members[np.argmax(probabilities[members])]
            if len(members) > 1:
                self._newborn[c] = worst
            if worst != best:
                probabilities[best] += probabilities[worst] - self._floor
                probabilities[worst] = self._floor
        return bool((self._newborn != before).any())

    def of_combinations(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the probabilities of the modes ``names`` from those of the filters (M,)."""
        return np.bincount(self.label, probabilities, len(self.names))


class NamedMode:
    """The mode that is named: the most probable one, but a contact not for a moment only.

    In fast motion a block that fits no model makes a contact certain for a moment. So a contact is named once it is all
    but certain (``commit_probability``) and was likely a block before, or has been likely for ``commit_time``, and
    until free space is likeliest. A force that may be zero is no contact: as a model with more freedom it is likely
    wherever friction does not fit.

    Args:
        settings: of the filter.
        free: which mode is free space; None where there is none.

    Attributes:
        mode: index in the names of the modes.
    """

    def __init__(self, settings: ImmSettings, free: int | None) -> None:
        self._certain, self._time, self._free = settings.commit_probability, settings.commit_time, free
        self.reset(np.zeros(1))

    def reset(self, probabilities: np.ndarray) -> None:
        """Name the most probable of the modes."""
        self.mode, self._likely_for = int(probabilities.argmax()), 0.0

    @property
    def surely_free(self) -> bool:
        """Whether free space is named, and no contact is likelier."""
        return self.mode == self._free and self._likely_for == 0.0

    @property
    def undecided_for(self) -> float:
        """How long free space has been named while a contact is likelier, but not shown [s]."""
        return self._likely_for if self.mode == self._free else 0.0

    def update(self, probabilities: np.ndarray, duration: float, shown: Callable[[], bool]) -> None:
        """Take the probabilities of the modes after a block.

        Args:
            probabilities: of the modes.
            duration: of the block [s].
            shown: whether the most probable contact differs from free space; asked where a contact would be named.
        """
        likeliest = int(probabilities.argmax())
        free = self._free
        was_likely = self._likely_for > 0
        self._likely_for = 0.0 if likeliest == free else self._likely_for + duration
        if free is None or likeliest == free or self.mode != free:
            self.mode = likeliest
            return
        certain = was_likely and 1 - probabilities[free] >= self._certain
        if (certain or self._likely_for > self._time) and shown():
            self.mode = likeliest


def _transition(rates: np.ndarray, dt: float) -> np.ndarray:
    """Return the transition probabilities (C, C) of a Markov chain over ``dt`` [s] by uniformisation (Jensen 1953).

    exp(Q dt) = sum_k e^-a a^k / k! (I + Q dt / a)^k, with a at least the largest rate out of a mode, times dt.
    No term is negative. A long ``dt`` is halved until a = 1 is enough, and the result squared as often.

    Args:
        rates: generator Q (C, C) [1/s].
        dt: time [s].
    """
    most = float(-rates.diagonal().min()) * dt
    halvings = max(math.frexp(most)[1], 0)
    jumps = np.eye(len(rates)) + rates * (dt / 2**halvings)  # a = 1
    term = chain = np.eye(len(rates)) / math.e
    for k in range(1, _UNIFORMISATION_TERMS):
        term = term @ jumps / k
        chain = chain + term
    return np.linalg.matrix_power(chain, 2**halvings)


def _rates(combinations_closed: np.ndarray, close_rate: float, open_rate: float) -> np.ndarray:
    """Return the generator (C, C) [1/s] of the chain: one contact changes at an instant.

    A mode that no single change leads to or from (a list of modes with gaps) is reached at the smaller rate.
    """
    change = combinations_closed[None, :, :] - combinations_closed[:, None, :]  # (C, C, I)
    single = np.abs(change).sum(axis=2) == 1
    rates = np.where(single, np.where(change.sum(axis=2) > 0, close_rate, open_rate), 0.0)
    if len(rates) > 1 and not single.any(axis=1).all():
        rates = np.where(single, rates, min(close_rate, open_rate))
        np.fill_diagonal(rates, 0.0)
    return rates - np.diag(rates.sum(axis=1))


def _with_unknown(
    rates: np.ndarray, combinations_closed: np.ndarray, unknown: UnknownContactSettings, steady_rate: float
) -> np.ndarray:
    """Return the generator (C + 2, C + 2) [1/s] of a chain that ends with the unknown contact: changing, and steady."""
    touched = combinations_closed.any(axis=1)
    total = np.pad(rates, (0, 2))
    total[:-2, -2] = np.where(touched, unknown.rate_from_contact, unknown.rate_from_free)
    total[:-2, -1] = steady_rate
    total[-2:, :-2] = np.where(touched, unknown.rate_to_contact, unknown.rate_to_free)
    total[-2, -1] = total[-1, -2] = unknown.rate_to_steady
    np.fill_diagonal(total, 0.0)
    return total - np.diag(total.sum(axis=1))


def _with_steady_friction(rates: np.ndarray, free: int, change_rate: float) -> np.ndarray:
    """Return the generator (C + 1, C + 1) [1/s] of a chain that ends with free space of steady friction.

    What leads to the combination ``free`` leads to both with the same rate.

    Args:
        rates: generator (C, C) of the others [1/s].
        free: which of them is free space.
        change_rate: of a change between both [1/s].
    """
    total = np.pad(rates, (0, 1))
    total[-1, :-1] = rates[free]
    total[:-1, free] /= 2
    total[:-1, -1] = total[:-1, free]
    total[free, -1] = total[-1, free] = change_rate
    np.fill_diagonal(total, 0.0)
    return total - np.diag(total.sum(axis=1))


def build_mode_prediction(free: np.ndarray, contacts: int) -> ca.Function:
    """Return the function of the predicted mode probabilities and of the mixing weights.

    Inputs: probabilities (M,); transition (M, M) from row to column; pressed (I, M): per filter the probability that
    its contacts press. Outputs: predicted (M,); weights (M, M): column j the shares of the filters in the start of
    filter j; pressed_before (I, M).

    Args:
        free: (M,) whether a filter feels nothing. It starts from its likeliest source, unmixed: the spread of the means
            over a push would let its friction take the push.
        contacts: their number I.
    """
    count = len(free)
    s = symbols(probabilities=count, transition=(count, count), pressed=(contacts, count))
    joint = ca.repmat(s.probabilities, 1, count) * s.transition
    predicted = ca.sum1(joint)
    weights = joint / ca.repmat(predicted, count, 1)
    for j in np.flatnonzero(free):
        largest = joint[:, j] >= ca.mmax(joint[:, j])
        weights[:, j] = largest / ca.sum1(largest)
    outputs = {"predicted": predicted.T, "weights": weights, "pressed_before": s.pressed @ weights}
    return named_function("imm_mode_prediction", s, outputs)


def build_mode_update(count: int) -> ca.Function:
    """Return the function of Bayes' rule with likelihoods that stay finite.

    Inputs: predicted, log_likelihood (M,); least_probability. Output: probabilities (M,).
    """
    s = symbols(predicted=count, log_likelihood=count, least_probability=1)
    relative = ca.fmax(s.log_likelihood - ca.mmax(s.log_likelihood), _LEAST_LOG_LIKELIHOOD)
    weighted = s.predicted * ca.exp(relative)
    probabilities = ca.fmax(weighted / ca.sum1(weighted), s.least_probability)
    return named_function("imm_mode_update", s, {"probabilities": probabilities / ca.sum1(probabilities)})


def build_mixing(size: int, count: int) -> ca.Function:
    """Return the function of the start of one filter, moment-matched from ``count`` filters of ``size`` states.

    Inputs: X (N M), P (packed M), weights (M,). Outputs: x_mixed (N,), P_mixed (packed).
    """
    half = packed_size(size)
    s = symbols(ca.MX, X=size * count, P=half * count, weights=count)
    means = [s.X[size * i : size * (i + 1)] for i in range(count)]
    mean = sum(s.weights[i] * means[i] for i in range(count))
    difference = ca.SX.sym("difference", size)
    spread = ca.Function("spread", [difference], [packed_outer(difference, difference)])  # once in the generated code
    total = sum(s.weights[i] * (s.P[half * i : half * (i + 1)] + spread(means[i] - mean)) for i in range(count))
    return named_function("imm_mixing", s, {"x_mixed": mean, "P_mixed": total})
