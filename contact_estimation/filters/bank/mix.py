"""The modes of a bank and their interaction: the interacting multiple model (Blom and Bar-Shalom 1988)."""

from __future__ import annotations

from itertools import combinations

import casadi as ca
import numpy as np
from scipy.linalg import expm

from contact_estimation.filters.bank.settings import BankSettings
from contact_estimation.filters.kalman import packed_size

#: No mode's belief falls below this, so that none is lost for ever.
FLOOR = 1e-6


class Modes:
    """Combinations of closed contacts, and the filters that stand for them.

    A slow press adds little evidence per block. If the filter of a closed contact were restarted from the free one at
    every block, as a plain IMM does while the contact is improbable, its evidence could never add up. Every combination
    but ``free`` therefore has several filters, closed at different times; at any time only one of them, the entrance,
    takes what comes from other combinations.

    Attributes:
        names: ``free``, ``contact_1``, ``contact_1+contact_2``, ... (C combinations). rates: (C, C) generator of their
        Markov chain [1/s]; only one contact changes at an instant.
        combinations: (C, I) one where a combination has the contact closed. owner: (M,) combination of each filter.
        closed: (M, I) one where a filter has the contact closed.
    """

    def __init__(self, settings: BankSettings, hypotheses: int):
        names = [c.name for c in settings.contacts]
        chosen = settings.modes
        if chosen is None:
            chosen = [list(c) for k in range(len(names) + 1) for c in combinations(names, k)]
        self.names = ["+".join(mode) if mode else "free" for mode in chosen]
        combinations_closed = np.array([[float(name in mode) for name in names] for mode in chosen]).reshape(
            len(chosen), len(names)
        )
        count = len(chosen)
        self.owner = np.array(
            [c for c, mode in enumerate(chosen) for _ in range(hypotheses if mode and count > 1 else 1)]
        )
        self.combinations, self.closed = combinations_closed, combinations_closed[self.owner]
        self._first = np.array([int(np.argmax(self.owner == c)) for c in range(count)])
        self._entrance = self._first.copy()
        self.rates = np.zeros((count, count))
        for a in range(count):
            for b in range(count):
                change = combinations_closed[b] - combinations_closed[a]
                if np.abs(change).sum() == 1:
                    self.rates[a, b] = settings.close_rate if change.sum() > 0 else settings.open_rate
        if count > 1 and not (self.rates.sum(axis=1) > 0).all():
            # A mode no single change leads to or from (a list of modes with gaps) is reached by the shortest change
            # there is.
            for a in range(count):
                for b in range(count):
                    if a != b and self.rates[a, b] == 0:
                        self.rates[a, b] = min(settings.close_rate, settings.open_rate)
        self.rates -= np.diag(self.rates.sum(axis=1))

    def start(self, closed: float) -> np.ndarray:
        """(M,) beliefs of the filters before the first sample, ``closed`` of them on anything being touched; entrances
        as at first."""
        self._entrance = self._first.copy()
        free = ~self.closed.any(axis=1)
        if free.all() or not free.any():
            return np.full(len(free), 1.0 / len(free))
        return np.maximum(np.where(free, (1 - closed) / free.sum(), closed / (~free).sum()), FLOOR)

    def transition(self, dt: float) -> np.ndarray:
        """(M, M) probability of going from filter a (row) to filter b in ``dt`` [s]: staying within a combination keeps
        the filter, coming from another one leads to the entrance. For the present entrances."""
        chain = expm(self.rates * dt)
        enters = self._entrance[self.owner] == np.arange(len(self.owner))
        matrix = chain[np.ix_(self.owner, self.owner)] * enters
        same = self.owner[:, None] == self.owner
        return np.where(same, 0.0, matrix) + np.diag(np.diag(chain)[self.owner])

    def toggled(self, combination: int, contact: int) -> int | None:
        """The combination that differs in one contact only; None where the modes have none."""
        wanted = self.combinations[combination].copy()
        wanted[contact] = 1.0 - wanted[contact]
        found = np.flatnonzero((self.combinations == wanted).all(axis=1))
        return int(found[0]) if len(found) else None

    def move(self, beliefs: np.ndarray, start: int, end: int, share: float) -> int:
        """Combination ``start`` has just become ``end``: the ``share`` of its ``beliefs`` (M,), in place, goes to the
        entrance, whose filter has started from ``start`` with the last block as long as ``start`` was believed. Returns
        that filter."""
        rows = self.owner == start
        moved = share * beliefs[rows].sum()
        beliefs[rows] *= 1.0 - share
        beliefs[self._entrance[end]] += moved
        np.maximum(beliefs, FLOOR, out=beliefs)
        beliefs /= beliefs.sum()
        return int(self._entrance[end])

    def rotate(self, beliefs: np.ndarray) -> bool:
        """Make the least believed filter of every combination its entrance; its belief goes to the combination's most
        believed one.

        Changes ``beliefs`` (M,) in place. True where an entrance has changed: :meth:`transition` must then be asked
        again.
        """
        before = self._entrance.copy()
        for c in range(len(self.names)):
            members = np.flatnonzero(self.owner == c)
            if len(members) > 1:
                worst, best = members[np.argmin(beliefs[members])], members[np.argmax(beliefs[members])]
                self._entrance[c] = worst
                if worst != best:
                    beliefs[best] += beliefs[worst] - FLOOR
                    beliefs[worst] = FLOOR
        return bool((self._entrance != before).any())

    def of_combinations(self, beliefs: np.ndarray) -> np.ndarray:
        """(C,) beliefs of the combinations from those of the filters."""
        return np.bincount(self.owner, beliefs, len(self.names))


def build_predict(count: int, contacts: int) -> ca.Function:
    """Beliefs before the measurement, and who each filter starts from.

    Inputs: beliefs (M,), transition (M, M) from row to column, pressed (I, M) per filter the probability that its
    contacts press.
    Outputs: predicted (M,), weights (M, M): column j the shares of the filters in the start of filter j, pressed_before
    (I, M).
    """
    beliefs, transition = ca.SX.sym("beliefs", count), ca.SX.sym("transition", count, count)
    pressed = ca.SX.sym("pressed", contacts, count)
    joint = ca.repmat(beliefs, 1, count) * transition
    predicted = ca.sum1(joint)
    weights = joint / ca.repmat(predicted, count, 1)
    return ca.Function(
        "bank_predict",
        [beliefs, transition, pressed],
        [predicted.T, weights, pressed @ weights],
        ["beliefs", "transition", "pressed"],
        ["predicted", "weights", "pressed_before"],
    )


def build_believe(count: int) -> ca.Function:
    """Bayes' rule with likelihoods that stay finite. Inputs: predicted, log_likelihood (M,). Output: beliefs (M,)."""
    predicted, log_likelihood = ca.SX.sym("predicted", count), ca.SX.sym("log_likelihood", count)
    weighted = predicted * ca.exp(ca.fmax(log_likelihood - ca.mmax(log_likelihood), -60.0))
    beliefs = ca.fmax(weighted / ca.sum1(weighted), FLOOR)
    return ca.Function(
        "bank_believe",
        [predicted, log_likelihood],
        [beliefs / ca.sum1(beliefs)],
        ["predicted", "log_likelihood"],
        ["beliefs"],
    )


def build_mix(size: int, count: int) -> ca.Function:
    """The start of one filter, moment-matched from ``count`` filters of ``size`` states.

    Inputs: X (N M), P (packed M), weights (M,). Outputs: X_mixed (N,), P_mixed (packed).
    """
    half = packed_size(size)
    means, packed, weights = ca.SX.sym("X", size * count), ca.SX.sym("P", half * count), ca.SX.sym("weights", count)
    xs = [means[size * i : size * (i + 1)] for i in range(count)]
    mean = sum(weights[i] * xs[i] for i in range(count))
    total = sum(weights[i] * packed[half * i : half * (i + 1)] for i in range(count))
    for i in range(count):
        d = xs[i] - mean
        total += weights[i] * ca.vertcat(*[d[a] * d[b] for b in range(size) for a in range(b + 1)])
    return ca.Function(
        "bank_mix", [means, packed, weights], [mean, total], ["X", "P", "weights"], ["X_mixed", "P_mixed"]
    )
