"""A force sensor whose offset jumps because somebody zeroed it, perhaps in a press.

Zeroing changes the reading s from one sample to the next by the whole of what it shows, to zero. An impact does not end
at zero, and where it does by chance, the sensorless force e follows. The sensor was zeroed where s has jumped to about
zero and, a moment later, s - e has changed by the jump.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from contact_estimation.filters.wrench_fusion import WrenchFusionSettings

#: [s] Two readings are successive ones where they are not further apart; a force may change in a longer time.
_SUCCESSIVE = 0.012
#: s - e has changed by the jump where it differs from it by less than this share; so close to zero does the jump end.
_SHARE = 0.3


class ZeroedSensor:
    """Watches the force of one sensor.

    Args:
        settings: size of a jump, and how long the sensorless force may take to follow an impact.
    """

    def __init__(self, settings: WrenchFusionSettings | None = None) -> None:
        self.settings = settings or WrenchFusionSettings()
        self.reset()

    def reset(self) -> None:
        """Forget the readings."""
        self._last: tuple[float, np.ndarray] | None = None  # time [s] and force (3,) [N] of the last reading
        self._jump, self._since = np.zeros(3), 0.0  # jump (3,) [N] that is looked into, and its time [s]
        self._end = np.zeros(3)  # reading (3,) [N] that it ended at
        self._past: deque[tuple[float, np.ndarray]] = deque()  # time [s] and s - e (3,) [N] of the last moments

    def add(self, t: float, sensed: np.ndarray) -> None:
        """Take every reading.

        Args:
            t: its time [s].
            sensed: (3,) force [N].
        """
        last, self._last = self._last, (t, sensed)
        if last is None or not 0.0 < t - last[0] <= _SUCCESSIVE:
            return
        step = sensed - last[1]
        if float(np.linalg.norm(step)) > self.settings.jump_force:
            self._since = self._since if self._jump.any() else t
            self._jump, self._end = self._jump + step, sensed  # of a spike nothing is left

    def jumped(self, t: float, sensed: np.ndarray, estimated: np.ndarray) -> np.ndarray | None:
        """Return by what (3,) [N] the offset has jumped, once, else None.

        Args:
            t: time of the sample [s].
            sensed: (3,) force [N] by the sensor.
            estimated: (3,) force [N] without it, in the same axes.
        """
        follow = self.settings.jump_time
        self._past.append((t, sensed - estimated))
        while not 0.0 <= t - self._past[0][0] <= 2.0 * follow:
            self._past.popleft()
        if not self._jump.any() or t - self._since < follow:
            return None
        jump, since, self._jump = self._jump, self._since, np.zeros(3)
        before = [d for when, d in self._past if when < since]
        after = [d for when, d in self._past if when > since + 0.5 * follow]
        size = float(np.linalg.norm(jump))
        zeroed = size > self.settings.jump_force and float(np.linalg.norm(self._end)) < _SHARE * size
        if not (before and after and zeroed):
            return None
        change = np.mean(after, axis=0) - np.mean(before, axis=0)
        return jump if float(np.linalg.norm(change - jump)) < _SHARE * size else None
