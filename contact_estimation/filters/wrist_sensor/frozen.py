"""A wrist sensor that repeats one reading, bit by bit, although the arm has changed.

The noise of a sensor that works changes its last digits with every sample. A repeated reading alone proves nothing: a
simulated sensor without noise is still on a still arm, and reads exactly zero in free space. It is frozen where,
meanwhile, the joints have moved or the sensorless force has changed, and it has not followed for a while.
"""

from __future__ import annotations

import numpy as np

#: [rad] A joint that moved so far must have changed a reading that is not zero.
_WAY = 0.002
#: [N] A sensorless force that changed by so much must have changed the reading.
_FORCE = 5.0
#: [s] A sensor that has not followed such a change after this time is frozen.
_TIME = 0.1


class FrozenSensor:
    """Watches the readings of one sensor."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the readings."""
        self._reading: np.ndarray | None = None
        self._q, self._force = np.zeros(0), np.zeros(3)  # when the reading was new
        self._changed: float | None = None  # when the arm had changed by so much that the reading had to follow [s]

    def repeats(self, t: float, reading: np.ndarray, q: np.ndarray, force: np.ndarray) -> bool:
        """Return whether the sensor is frozen.

        Args:
            t: time of the reading, by the sensor's own stamp [s]: one reading that is looked at twice repeats nothing.
            reading: (6,) wrench of the sensor [N, Nm].
            q: (n,) joint positions [rad].
            force: (3,) sensorless force [N], TCP axes.
        """
        if self._reading is None or not np.array_equal(reading, self._reading):
            self._reading, self._q, self._force, self._changed = reading.copy(), q.copy(), force.copy(), None
            return False
        moved = bool(reading.any()) and float(np.abs(q - self._q).max()) > _WAY
        if not moved and float(np.abs(force - self._force).max()) <= _FORCE:
            self._changed = None
            return False
        self._changed = t if self._changed is None else min(self._changed, t)
        return t - self._changed > _TIME
