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
    """Combinations of closed contacts.

    Attributes:
        names: ``free``, ``contact_1``, ``contact_1+contact_2``, ... closed: (M, I) one where a mode has the contact closed.
        rates: (M, M) generator of the Markov chain [1/s]; only one contact changes at an instant.
    """

    def __init__(self, settings: BankSettings):
        names = [c.name for c in settings.contacts]
        chosen = settings.modes
        if chosen is None:
            chosen = [list(c) for k in range(len(names) + 1) for c in combinations(names, k)]
        self.names = ["+".join(mode) if mode else "free" for mode in chosen]
        self.closed = np.array([[float(name in mode) for name in names] for mode in chosen]).reshape(len(chosen), len(names))
        count = len(chosen)
        self.rates = np.zeros((count, count))
        for a in range(count):
            for b in range(count):
                change = self.closed[b] - self.closed[a]
                if np.abs(change).sum() == 1:
                    self.rates[a, b] = settings.close_rate if change.sum() > 0 else settings.open_rate
        if count > 1 and not (self.rates.sum(axis=1) > 0).all():
            # A mode no single change leads to or from (a list of modes with gaps) is reached by the shortest change there is.
            for a in range(count):
                for b in range(count):
                    if a != b and self.rates[a, b] == 0:
                        self.rates[a, b] = min(settings.close_rate, settings.open_rate)
        self.rates -= np.diag(self.rates.sum(axis=1))

    def transition(self, dt: float) -> np.ndarray:
        """(M, M) probability of going from mode a (row) to mode b in ``dt`` [s]."""
        return expm(self.rates * dt)


def build_mix(size: int, count: int) -> ca.Function:
    """Mixing of ``count`` filters of ``size`` states.

    Inputs: X (N M), P (packed M), weights (M, M): weights[i, j] the share of filter i in the start of filter j. Outputs: X_mixed, P_mixed.
    """
    half = packed_size(size)
    means, packed, weights = ca.SX.sym("X", size * count), ca.SX.sym("P", half * count), ca.SX.sym("weights", count, count)
    xs = [means[size * i:size * (i + 1)] for i in range(count)]
    ps = [packed[half * i:half * (i + 1)] for i in range(count)]
    mixed_means, mixed_packed = [], []
    for j in range(count):
        mean = sum(weights[i, j] * xs[i] for i in range(count))
        total = sum(weights[i, j] * ps[i] for i in range(count))
        for i in range(count):
            d = xs[i] - mean
            total = total + weights[i, j] * ca.vertcat(*[d[a] * d[b] for b in range(size) for a in range(b + 1)])
        mixed_means.append(mean)
        mixed_packed.append(total)
    return ca.Function("bank_mix", [means, packed, weights], [ca.vertcat(*mixed_means), ca.vertcat(*mixed_packed)],
                       ["X", "P", "weights"], ["X_mixed", "P_mixed"])
