"""Ticks of the controller's loop: absolute deadlines on a monotonic clock, with a defined recovery after a delay.

A real controller runs its loop in hard real time. This one is an ordinary process and is sometimes delayed:

- Deadlines are multiples of the period from the start. A short delay moves none of them, so the rate is exact.
- Missed ticks follow one another at ``SPACING`` periods, not in a burst: a client that keeps the newest packet only
  (as ur_rtde does) sees each of them.
- After more than ``patience`` the missed ticks are dropped: the deadlines start again, the simulated clock has
  paused, and ``skipped`` counts the ticks.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: Least time between two ticks while catching up, in periods.
SPACING = 0.75


class Metronome:
    """Deadlines every ``period`` [s].

    Args:
        period: [s].
        patience: delay that is still caught up with [s].
        clock: replaceable for tests.
        sleep: replaceable for tests.

    Attributes:
        late: ticks that came more than half a period after their deadline.
        skipped: ticks given up.
    """

    def __init__(
        self,
        period: float,
        patience: float = 0.25,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._period, self._patience, self._clock, self._sleep = period, patience, clock, sleep
        self._due = clock() + period
        self._last = -float("inf")
        self.late, self.skipped = 0, 0

    def wait(self) -> float:
        """Sleep until the next tick; returns the time [s] it begins."""
        behind = self._clock() - self._due
        if behind > self._patience:
            missed = int(behind / self._period)
            self._due += missed * self._period
            self.skipped += missed
        pause = max(self._due, self._last + SPACING * self._period) - self._clock()
        if pause > 0:
            self._sleep(pause)
        now = self._clock()
        self.late += now > self._due + 0.5 * self._period
        self._due += self._period
        self._last = now
        return now
