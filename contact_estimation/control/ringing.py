"""Notices a limit cycle: a contact force that swings to and fro, whatever the reason of it.

A swing ends where the force has come back from its last extreme by the size ``ringing`` of the task. A surface that
moves, an edge or an impact make one or two swings; a loop that is not stable makes them without end. A tool that has
just arrived may bounce.
"""

from __future__ import annotations

import math
from collections import deque

#: So many swings within ``_WINDOW`` [s] are a limit cycle of at least 3 Hz.
_SWINGS, _WINDOW = 6, 1.0
#: [s] A hard surface may make the tool bounce for so long after its arrival, where a task begins.
_ARRIVAL = 0.2
#: [N] Smaller swings may be noise of the estimate.
_LEAST = 1.0


class RingingDetector:
    """Counts the swings of a contact force.

    Args:
        size: of a swing [N] that is more than a correction.
    """

    def __init__(self, size: float) -> None:
        self.size = max(size, _LEAST)
        self.restart()

    def restart(self) -> None:
        """Know of no swing."""
        self._low, self._high, self._rises = math.inf, -math.inf, 0  # 0: neither rose nor fell yet
        self._turned: deque[float] = deque(maxlen=_SWINGS)  # [s] when the last swings ended
        self._begun = math.inf  # [s]

    def check(self, t: float, force: float) -> str:
        """Return why the loop counts as unstable, or an empty string.

        Args:
            t: now [s].
            force: along the wanted one [N].
        """
        self._begun = min(self._begun, t)
        self._low, self._high = min(self._low, force), max(self._high, force)
        if self._rises >= 0 and force < self._high - self.size:
            self._turn(t, -1, force)
        elif self._rises <= 0 and force > self._low + self.size:
            self._turn(t, 1, force)
        if len(self._turned) == _SWINGS and t - self._turned[0] <= _WINDOW:
            swings = f"{_SWINGS} times by more than {self.size:.1f} N within {_WINDOW:g} s"
            return f"the contact force swings: {swings} (wrong stiffness, or estimates that lag?)"
        return ""

    def _turn(self, t: float, rises: int, force: float) -> None:
        if self._rises and t - self._begun > _ARRIVAL:  # the first one is an approach
            self._turned.append(t)
        self._rises, self._low, self._high = rises, force, force
