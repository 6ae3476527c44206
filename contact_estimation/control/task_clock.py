"""Time of a contact task on a computer whose clock may be set: it never goes back, and never jumps ahead.

Path, patience and the search for a lost contact follow the time of a task. A clock that is set back by NTP, or a log
that loops, would turn a retreat into a push. One that is set ahead would skip a part of the path.
"""

from __future__ import annotations


class TaskClock:
    """Adds up the steps of a clock.

    Args:
        longest: [s] no step counts for more.

    Attributes:
        now: [s] since the first call of :meth:`advance`.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._last: float | None = None
        self.now = 0.0

    def advance(self, t: float) -> float:
        """Return the time of the task [s] where the clock is at ``t`` [s]."""
        step = 0.0 if self._last is None else t - self._last
        self._last, self.now = t, self.now + min(max(step, 0.0), self._longest)
        return self.now
