"""The states of free space of the last seconds: where filters start from, and what shows a push that grows slowly."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from contact_estimation.filters.imm.absorbed_push import AbsorbedPush
from contact_estimation.filters.imm.growing_push import GrowingPush
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.kalman import packed_places

#: How far back a free filter starts: before friction absorbed a push for a while, and before a push was felt.
REMEMBERED, RECENT = 30, 3
#: States that are kept, one every ``hypothesis_interval``: a push may take so long to grow.
_KEPT = 60
#: Free space is looked at for friction that has absorbed a push after so many of them: a push that pauses as it grows
#: looks like free space for less. A known contact is looked at after so many of them in free space before it.
_SETTLED, _BEFORE_TOUCH = 20, 3
#: Intervals of a push that end the stay: one that grows slowly may be named for a moment, and be absorbed again.
_NAMED = 5
#: A state that knows Coulomb friction with so many times the present standard deviation is not kept: a start from it
#: would take the torque of a hand that moves the arm for friction that is not there.
_LEARNT = 2.0


class FreeState(NamedTuple):
    """A state of free space.

    Attributes:
        x: mean (N,).
        p: its packed covariance.
        time: of it, by the history's clock [s].
        moved: for so long the arm had moved until then [s].
    """

    x: np.ndarray
    p: np.ndarray
    time: float
    moved: float


class FreeSpaceHistory:
    """States of free space, and how long the present stay in it lasts.

    Args:
        layout: parts of the filters' state.
        signals: buffers by name, as of :class:`AbsorbedPush`.
    """

    def __init__(self, layout: StateLayout, signals: Mapping[str, np.ndarray]) -> None:
        self._growing = GrowingPush(layout) if layout.m and layout.has_external else None
        # Behind the gears friction is too small to hide a push.
        self._absorbed = AbsorbedPush(layout, signals) if layout.has_external and not layout.link_side else None
        self._stiffness = layout.parts["joint_stiffness"]
        coulomb = layout.parts["coulomb"]
        self._coulomb = np.diagonal(packed_places(layout.size)[coulomb, coulomb])  # of its variances, in a packed one
        self._states: deque[FreeState] = deque(maxlen=_KEPT)  # the latest last
        self._past: list[FreeState] = []  # of before a gap: they show the end of a push only
        self._time = self._moved = 0.0  # the clock, and how long the arm has moved until now [s]
        self._traces: deque[np.ndarray] = deque(maxlen=_KEPT)  # of those states, since free space began
        self._stay = 0  # number of states of the present stay in free space
        self._since = 0  # for so long something has touched the arm since the last of these states
        self._pushed = 0  # for so long of that a push was named
        self._grown = False  # the first state is of before a push, and free space has not settled since

    def __bool__(self) -> bool:
        return bool(self._states)

    def advance(self, duration: float, moves: bool) -> None:
        """Take that ``duration`` [s] has passed, in which the arm moves or not."""
        self._time += duration
        self._moved += duration * moves

    def present(self, x: np.ndarray, p: np.ndarray) -> FreeState:
        """Return a copy of the present state of free space, mean (N,) and packed covariance."""
        return FreeState(x.copy(), p.copy(), self._time, self._moved)

    def append(self, x: np.ndarray, p: np.ndarray) -> None:
        """Keep a state of free space, mean (N,) and packed covariance."""
        self._append(x, p, self._traces_of(x, p))

    def keep_only(self, state: FreeState) -> None:
        """Keep one state, of before this stay."""
        self.reset()
        self._states.append(state)
        self._grown = True

    def past(self) -> list[FreeState]:
        """Return the states that :meth:`recall` takes behind a gap."""
        return list(self._states) or self._past

    def recall(self, past: list[FreeState], unseen: float) -> None:
        """Take the states of before a gap of ``unseen`` [s]: a push that began in it may return to them."""
        self._past = past
        self.advance(unseen, moves=True)

    def reset(self) -> None:
        """Keep no state."""
        self._past = []
        self._states.clear()
        self._end_stay()
        self._since, self._grown = 0, False
        for test in (self._growing, self._absorbed):
            if test is not None:
                test.reset()

    def _end_stay(self) -> None:
        self._traces.clear()
        self._stay = self._pushed = 0

    def ago(self, count: int) -> FreeState:
        """Return the state of ``count`` intervals ago, or the earliest."""
        return self._states[-min(count, len(self._states))]

    def follow_free(self, x: np.ndarray, p: np.ndarray, undecided: bool = False) -> FreeState | None:
        """Take a state of free space: keep it, or return the one from which on a push has grown.

        Args:
            x: mean (N,).
            p: its packed covariance.
            undecided: something may have pushed since the start: from such a state no push grows.
        """
        if undecided:
            self.append(x, p)
            self._end_stay()
            return None
        if self._pushed >= _NAMED:
            self._end_stay()
        elif self._pushed:  # free space settles anew
            self._stay = self._pushed = 0
        traces = self._traces_of(x, p)
        grown = self._before_growth(x, traces)
        if grown is None:
            self._append(x, p, traces)
        return grown

    def follow_touch(self, x: np.ndarray, p: np.ndarray) -> FreeState | None:
        """Take a state of a known contact; return that of free space from which on a push has grown, None for none.

        The contact may have taken the push over, with what free space had absorbed of it.

        Args:
            x: mean (N,).
            p: its packed covariance.
        """
        if self._since >= _KEPT or not (self._grown or len(self._traces) >= _BEFORE_TOUCH):
            self._end_stay()
            return None
        self._since += 1
        return self._before_growth(x, self._traces_of(x, p))

    def follow_push(self) -> None:
        """Take an interval of a push: after some of them free space begins anew."""
        self._pushed += 1
        self._since += 1

    def _traces_of(self, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return what a push changes in a state, nothing where no joint is elastic."""
        return np.zeros((3, 0)) if self._growing is None else self._growing.traces(x, p)

    def _append(self, x: np.ndarray, p: np.ndarray, traces: np.ndarray) -> None:
        while self._states and (self._states[0].p[self._coulomb] > _LEARNT**2 * p[self._coulomb]).any():
            self._states.popleft()
        while len(self._traces) > len(self._states):
            self._traces.popleft()
        self._states.append(self.present(x, p))
        self._since = 0
        self._stay += 1
        self._grown &= self._stay < _SETTLED
        if self._stay > 1 or self._traces:  # free space may begin before a push has faded
            self._traces.append(traces)

    def _before_growth(self, x: np.ndarray, traces: np.ndarray) -> FreeState | None:
        """Return the state of this stay from which on a push has grown up to ``x`` (N,), None where none has."""
        kept, states = len(self._traces), [*self._past, *self._states]
        if self._growing is not None:
            stiffness = np.exp(x[self._stiffness])
            since = self._growing.since(traces, self._traces, stiffness)
            if since is not None:
                earlier = [self._traces_of(before.x, before.p) for before in states[: since - kept]]
                if not self._growing.returns(traces, self._traces[since], earlier, stiffness):
                    return states[since - kept]
        if self._absorbed is None or not (self._grown or kept >= (_BEFORE_TOUCH if self._since else _SETTLED)):
            return None
        means, times = np.array([s.x for s in states]), np.array([s.time for s in states])
        moved, stay = np.array([s.moved for s in states]), len(self._states) if self._grown else kept
        since = self._absorbed.since(x, means, self._time - times, self._moved - moved, stay)
        return None if since is None else states[since]
