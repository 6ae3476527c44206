"""Starts of free filters that follow a contact: the friction that the contact has left is one of three.

The friction of a contact contains the part of the push that it absorbed before the mode changed, and the force contains
a part of the friction. The starts are the contact without its force, after an unknown one if that is within its
uncertainty, and two free states of before. The joint stiffness is kept. What a contact has left of the gears'
deflection is an error of their offsets.

A start is uncertain, and so less likely in its first block than a push, whatever comes after. A filter that is made
anew in every block never shows that it fits better. So after a push it is kept where it is more probable than the start
would be, by the likelihoods that both had last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.filters.imm.free_space_history import RECENT, REMEMBERED, FreeSpaceHistory
from contact_estimation.filters.imm.friction_drift import FrictionDrift
from contact_estimation.filters.imm.mode_chain import ModeChain
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.imm.unknown import PushEnd
from contact_estimation.filters.kalman import packed_places

#: Starts of a free filter, in turn.
_STARTS = 3
#: Blocks for which a start from a push is kept: longer, a filter's friction would follow the push. Where nothing else
#: shows a push, only if it has probably ended, and for less.
_KEPT, _TRIAL = 20, 5


class FilterBuffers(NamedTuple):
    """Buffers of M filters of N entries.

    Attributes:
        x: (M, N) means.
        p: (M, N (N + 1) / 2) packed covariances.
        x_mixed: (M, N) those that the next update starts from.
        p_mixed: (M, N (N + 1) / 2) their packed covariances.
        probabilities: (M,).
        transition: (M, M) probabilities from filter a (row) to filter b in a block.
        weights: (M, M) row j: shares of the filters in the start of filter j.
        log_likelihood: (M,) of the last measurement.
    """

    x: np.ndarray
    p: np.ndarray
    x_mixed: np.ndarray
    p_mixed: np.ndarray
    probabilities: np.ndarray
    transition: np.ndarray
    weights: np.ndarray
    log_likelihood: np.ndarray


class FreeStarts:
    """Chooses the starts, and compares how they fit.

    Args:
        layout: parts of the filters' state.
        chain: modes and filters.
        filters: their buffers.
        history: states of free space.
        drift: what has changed since the arm was last free.

    The arguments are attributes, too: :class:`.restarts.Restarts` writes the same parts.
    """

    def __init__(
        self,
        layout: StateLayout,
        chain: ModeChain,
        filters: FilterBuffers,
        history: FreeSpaceHistory,
        drift: FrictionDrift,
    ) -> None:
        self.layout, self.chain, self.filters, self.history, self.drift = layout, chain, filters, history, drift
        count, parts = len(chain.owner), layout.parts
        self._turn, self._trial = 0, np.zeros(count, int)
        self._free = np.flatnonzero(chain.free).tolist()
        # Likelihoods over the largest one: of the last block, and of starts after a push when they were last made.
        self._fit, self._fit_of_start = np.ones(count), np.ones((_STARTS, count))
        self._started: list[int] = []  # free filters that started from a push in the last block
        self._push_end = PushEnd(
            layout.size, parts["external"], parts["disturbance"], parts["offset"], layout.end_significance
        )
        places = packed_places(layout.size)
        self._offset_variance = np.diagonal(places[parts["offset"], parts["offset"]]).copy()

    def reset(self) -> None:
        """Begin anew."""
        self._turn, self._fit[:], self._trial[:] = 0, 1.0, 0
        self.forget_fit()

    def forget_fit(self) -> None:
        """Begin anew with how starts fit."""
        self._fit_of_start[:] = 1.0

    def choose(self) -> None:
        """Write the next starts into the mixed states, or keep the filters."""
        self._turn = (self._turn + 1) % _STARTS
        chain, filters, slack = self.chain, self.filters, self.drift.slack()
        self._started.clear()
        for j in self._free:
            source = int(filters.weights[j].argmax())
            felt = bool(chain.felt[source])
            if not (felt or chain.touched[source]):
                continue
            x, p = filters.x_mixed[j], filters.p_mixed[j]
            if felt and self._keeps(j, source):
                x[:], p[:] = filters.x[j], filters.p[j]
                continue
            if felt:
                self._started.append(j)
                self._trial[j] = _KEPT * self.layout.friction_shown
            if self._turn > 0 and self.history:
                self._remember(x, p, slack)
            elif not felt:
                self._push_end.loosen(p, slack)
            elif self._turn == 0:
                probably = self._push_end.apply(x, p, self.drift.slid(), slack)
                self._trial[j] = max(self._trial[j], _TRIAL * probably)

    def compare(self) -> None:
        """Note how likely the last measurement was in each filter, and in the starts that were made for it."""
        log_likelihood = self.filters.log_likelihood
        self._fit[:] = np.exp(log_likelihood - log_likelihood.max())
        self._fit_of_start[self._turn, self._started] = self._fit[self._started]

    def _keeps(self, j: int, source: int) -> bool:
        """Return whether a free filter that follows a push is kept, not made anew from the filter ``source``.

        Where friction changes, or nothing but the torque shows a push, a filter that is kept would follow the push.
        """
        self._trial[j] -= 1
        if self._trial[j] >= 0 and self.layout.friction_shown:
            probabilities, transition = self.filters.probabilities, self.filters.transition
            kept = probabilities[j] * transition[j, j] * self._fit[j]
            start = probabilities[source] * transition[source, j] * self._fit_of_start[self._turn, j]
            return bool(self.chain.steady_friction[j] and kept > start)
        return bool(self._trial[j] >= 0)

    def _remember(self, x: np.ndarray, p: np.ndarray, slack: np.ndarray) -> None:
        """Write a free state of before into a filter's state, but for the joint stiffness."""
        stiffness = self.layout.parts["joint_stiffness"]
        kept = x[stiffness].copy()
        x[:], p[:], *_ = self.history.ago(RECENT if self._turn == 1 else REMEMBERED)
        x[stiffness] = kept
        p[self._offset_variance] += slack**2
