"""Whether a known contact has been closed since the start: what decides it, and what must not.

A known contact may be closed at the first sample. Until it is decided whether one was, none closes: a newborn in its
place would lose its force. Two things would decide it by chance.

Where the arm is quieter than its noise settings, every block makes the filter that expects the least noise more likely,
and that is one of free space. So free space, unless it is nearly certain, gains on a known contact only where its
innovation is the smaller one: as if the scale of the noise, which both share, were unknown.

At rest neither a known contact nor an unknown one changes. The known one has fewer ways to change, and would win by the
noise that it expects. So it does not gain on the unknown one then.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.filters.imm.mode_chain import ModeChain
from contact_estimation.filters.imm.settings import ImmSettings

#: Probability of free space, beside a known contact, from which on that contact is given up by noise, too. While it is
#: kept no other closes, and it would take the force of one that does.
_NEARLY_CERTAIN = 0.9


class StartDecision:
    """Follows the probability of contacts closed since the start.

    Args:
        chain: modes and filters.
        settings: ``decision_time`` and ``decision_error``.
    """

    def __init__(self, chain: ModeChain, settings: ImmSettings) -> None:
        self._free, self._closed, self._felt = chain.free, chain.touched, chain.felt > 0
        self._time, self._error = settings.decision_time, settings.decision_error
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._left, self._free_share = self._time, 1.0
        self._contact_share: float | None = None

    @property
    def pending(self) -> bool:
        """Whether it is not decided."""
        return self._left >= 0.0

    def keep(self, probabilities: np.ndarray, normalised: np.ndarray, rests: bool) -> None:
        """Undo what the noise has decided in a block.

        Args:
            probabilities: (M,) of the filters, changed in place.
            normalised: (M, channels) their innovations over standard deviations.
            rests: the arm does.
        """
        best = [int(np.where(which, probabilities, -1.0).argmax()) for which in (self._closed, self._free)]
        contact, free = np.square(normalised[best]).sum(axis=1)
        limit = self._free_share if self._free_share < _NEARLY_CERTAIN and contact <= free else 1.0
        self._free_share = _limit_share(probabilities, self._free, self._closed, limit)
        if self._felt.any():
            held = self._contact_share if rests else None
            share = _limit_share(probabilities, self._closed, self._felt, 1.0 if held is None else held)
            self._contact_share = share if held is None else held

    def add(self, probabilities: np.ndarray, duration: float, moves: bool) -> bool:
        """Take a block of ``duration`` [s]; return whether it ends the decision.

        It lasts as long as a contact may still be closed since the start. Rest counts in free space only.

        Args:
            probabilities: (M,) of the filters.
            duration: [s].
            moves: the arm does.
        """
        if self._free[probabilities.argmax()] or moves:
            self._left -= duration
        if probabilities[self._closed].sum() > self._error:
            self._left = max(self._left, 0.0)
        return self._left < 0.0


def _limit_share(probabilities: np.ndarray, first: np.ndarray, second: np.ndarray, most: float) -> float:
    """Let the first filters have at most a share of the probability of the first and second, and return their share.

    Args:
        probabilities: (M,) of all filters, changed in place.
        first: mask (M,) of filters.
        second: mask (M,) of others.
        most: the share.
    """
    ours, others = probabilities[first].sum(), probabilities[second].sum()
    both = ours + others
    share = float(ours / both)
    if share <= most:
        return share
    probabilities[first] *= most * both / ours
    probabilities[second] *= (1.0 - most) * both / others
    return most
