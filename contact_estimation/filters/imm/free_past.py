"""States of free space that are kept: where filters start from, and what a push that grows slowly is told by."""

from __future__ import annotations

from collections import deque

import numpy as np

from contact_estimation.filters.imm.growing_push import GrowingPush
from contact_estimation.filters.imm.state import FilterState

#: States that are kept, one every ``hypothesis_interval``: a push may take so long to grow.
_KEPT = 60
#: A known contact is looked at for a growing push after so many of them in free space. A push that pauses as it grows
#: looks like free space for less.
_SETTLED = 20
#: Intervals for which a push that ended the stay may show what friction had absorbed of it: it is small at first.
_NAMED = 5

FreeState = tuple[np.ndarray, np.ndarray]


class FreePast:
    """Means (N,) and packed covariances of free space, the latest last.

    Args:
        state: the filters' state.
    """

    def __init__(self, state: FilterState) -> None:
        self._growing = GrowingPush(state) if state.m and state.has_external else None
        self._states: deque[FreeState] = deque(maxlen=_KEPT)
        self._traces: deque[np.ndarray] = deque(maxlen=_KEPT)  # of those states, since free space began
        self._stay = 0  # number of states of the present stay in free space
        self._touched = 0  # for so long a known contact has followed the free space of these traces
        self._pushed = 0  # for so long a push has ended the stay

    def __bool__(self) -> bool:
        return bool(self._states)

    def append(self, x: np.ndarray, p: np.ndarray) -> None:
        """Keep a state of free space, mean (N,) and packed covariance."""
        self._states.append((x.copy(), p.copy()))
        self._touched = 0
        self._stay += 1
        if self._growing is not None:
            self._traces.append(self._growing.traces(x, p))

    def keep_only(self, x: np.ndarray, p: np.ndarray) -> None:
        """Keep one state, of before this stay."""
        kept = x.copy(), p.copy()
        self.clear()
        self._states.append(kept)

    def clear(self) -> None:
        """Keep no state."""
        self._states.clear()
        self.end_stay()

    def end_stay(self) -> None:
        """End the stay in free space."""
        self._traces.clear()
        self._stay = self._pushed = 0

    def resume(self) -> None:
        """Take note of free space: a stay that a push has ended does not go on."""
        if self._pushed:
            self.end_stay()

    def follow_push(self) -> None:
        """Take note of one more interval of a push, which ends the stay."""
        self._pushed += 1
        if self._pushed >= _NAMED:
            self.end_stay()

    def follow_touch(self) -> bool:
        """Return whether the stay still counts for a known contact that follows it, one more interval."""
        if len(self._traces) < _SETTLED or self._touched >= _KEPT:
            return False
        self._touched += 1
        return True

    def ago(self, count: int) -> FreeState:
        """Return the state of ``count`` intervals ago, or the earliest."""
        return self._states[-min(count, len(self._states))]

    def before_growth(self, x: np.ndarray, p: np.ndarray, stiffness: np.ndarray) -> FreeState | None:
        """Return the state from which on a push has grown, None where none has.

        Args:
            x: mean (N,) of free space now, or of a known contact that followed it.
            p: its packed covariance.
            stiffness: of the elastic joints (m,) [Nm/rad].
        """
        if self._growing is None:
            return None
        since = self._growing.since(self._growing.traces(x, p), self._traces, stiffness)
        return None if since is None else self._states[since - len(self._traces)]

    def before_push(self, x: np.ndarray, interval: float) -> FreeState | None:
        """Return the state of when free space was settled, None where friction has absorbed nothing of a push since.

        Args:
            x: mean (N,) of the push that has just been named.
            interval: between two kept states [s].
        """
        kept = min(len(self._traces), self._stay - _SETTLED)
        if self._growing is None or kept <= 0:
            return None
        before = self._states[-kept]
        passed = interval * (kept + self._pushed)
        return before if self._growing.absorbed(before[0], x, passed) else None
