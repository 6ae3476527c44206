"""A force sensor whose offset jumps because somebody zeroed it, perhaps in a press, or because it is at fault.

Zeroing changes the reading s from one sample to the next by the whole of what it shows, to zero. An impact does not end
at zero, and where it does by chance, the sensorless force e follows. The sensor was zeroed where s has jumped to about
zero and, a moment later, s - e has changed by the jump. It is at fault where s - e has changed by more than
three standard deviations of what e errs by in that moment, and s has not ended at zero: by how much a contact
force has changed then nobody knows. An impact that joint friction hides from e altogether looks the same.
"""

from __future__ import annotations

from collections import deque

import numpy as np

#: [N] A step of the reading between two samples that is larger is looked into.
_JUMP = 6.0
#: [s] So long may the sensorless force take to follow an impact, or the sudden end of a contact.
FOLLOW_TIME = 0.4
#: [N] Standard deviation of what the error of the sensorless force changes by in that time.
_SHORT_ERROR = 3.0
#: A jump that the sensorless force lacks by so many of these standard deviations is a fault of the sensor.
_FAULT_GATE = 3.0
#: [s] Two readings are successive ones where they are not further apart; a force may change in a longer time.
_SUCCESSIVE = 0.012
#: s - e has changed by the jump where it differs from it by less than this share; so close to zero does the jump end.
_SHARE = 0.3
#: Share of a jump that s - e shows, above which e has not followed: half way between the two causes.
_HALF = 0.5
#: [s] s - e of now is the mean of so long.
_NOW = 0.02


class ZeroedSensor:
    """Watches the force of one sensor.

    Attributes:
        suspected: jump (3,) [N] that the sensorless force has not followed so far; zero where there is none.
        fault: jump (3,) [N] that it has not followed in time, and still does not; zero where there is none.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the readings."""
        self._last: tuple[float, np.ndarray] | None = None  # time [s] and force (3,) [N] of the last reading
        self._jump, self._since = np.zeros(3), 0.0  # jump (3,) [N] that is looked into, and its time [s]
        self._end = np.zeros(3)  # reading (3,) [N] that it ended at
        self._past: deque[tuple[float, np.ndarray]] = deque()  # time [s] and s - e (3,) [N] of the last moments
        self._before = np.zeros(3)  # s - e (3,) [N] before the jump of a fault
        self.suspected, self.fault = np.zeros((2, 3))

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
        if float(np.linalg.norm(step)) > _JUMP:
            self._since = self._since if self._jump.any() else t
            self._jump, self._end = self._jump + step, sensed  # of a spike nothing is left

    def jumped(self, t: float, sensed: np.ndarray, estimated: np.ndarray) -> np.ndarray | None:
        """Return by what (3,) [N] the offset has jumped, once, else None.

        Args:
            t: time of the sample [s].
            sensed: (3,) force [N] by the sensor.
            estimated: (3,) force [N] without it, in the same axes.
        """
        self._past.append((t, sensed - estimated))
        while not 0.0 <= t - self._past[0][0] <= 2.0 * FOLLOW_TIME:
            self._past.popleft()
        self.suspected = np.zeros(3)
        if not (self._jump.any() or self.fault.any()):
            return None
        now = np.mean([d for when, d in self._past if when > t - _NOW], axis=0)
        if not _lacks(now - self._before, self.fault):
            self.fault = np.zeros(3)
        before = [d for when, d in self._past if when < self._since]
        if not (self._jump.any() and before):
            self._jump = self._jump if t - self._since < FOLLOW_TIME else np.zeros(3)
            return None
        if t - self._since < FOLLOW_TIME:
            self.suspected = self._jump if _lacks(now - np.mean(before, axis=0), self._jump) else self.suspected
            return None
        return self._verdict(np.mean(before, axis=0))

    def _verdict(self, before: np.ndarray) -> np.ndarray | None:
        """Return the jump (3,) [N] of a sensor that was zeroed, else None; note that of a sensor at fault.

        Args:
            before: s - e (3,) [N] before the jump.
        """
        jump, self._jump = self._jump, np.zeros(3)
        size = float(np.linalg.norm(jump))
        if size <= _JUMP:  # a spike
            return None
        after = [d for when, d in self._past if when > self._since + 0.5 * FOLLOW_TIME]
        change = np.mean(after, axis=0) - before
        if float(np.linalg.norm(self._end)) < _SHARE * size:
            return jump if float(np.linalg.norm(change - jump)) < _SHARE * size else None
        if _lacks(change, jump) and float(change @ jump) > _FAULT_GATE * _SHORT_ERROR * size:
            self.fault, self._before = jump, before
        return None


def _lacks(change: np.ndarray, jump: np.ndarray) -> bool:
    """Return whether the sensorless force lacks a ``jump`` (3,) [N] of the sensor, by the ``change`` (3,) of s - e."""
    return bool(float(change @ jump) > _HALF * float(jump @ jump))
