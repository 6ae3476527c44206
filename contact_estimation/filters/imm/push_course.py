"""How the force of an unknown contact goes against its mean over the last moments: it ends, or it reverses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

#: A push ends below this share of its mean, and reverses where it goes against that by this share of its own size.
_ENDING, _REVERSED = 0.3, 0.1
#: Blocks in a row with an innovation beyond the gate, to the same side, from which on the torque jumps. Errors that
#: last some blocks, as of friction, are often beyond it three or four times.
JUMPED = 5
#: The same from which on no friction lasts as long, where it is in the torque: 0.2 s.
CONTRADICTS = 20
#: [s] Memory of the mean.
_MEMORY = 0.2


class PushCourse(NamedTuple):
    """How the force of an unknown contact goes against its mean over the last moments.

    Attributes:
        ends: it is a small share of that mean. No other contact closes in its place.
        reverses: it goes against the mean, and no contact pulls. What is left is an error of friction or hysteresis.
    """

    ends: bool = False
    reverses: bool = False

    @classmethod
    def of(cls, force: np.ndarray, mean: np.ndarray) -> PushCourse:
        """Return the course of a force (3,) [N] with a mean (3,) [N]."""
        along = float(force @ mean)
        return cls(along < _ENDING * float(mean @ mean), along < -_REVERSED * float(force @ force))


class OutliersInARow:
    """Counts measurements in a row that are beyond the gate, to the same side.

    One may be an outlier, and moves a filter little. Of several none is: the filter does not follow (a strong tracking
    filter: Zhou and Frank, 1996). Under a push the torque jumps then: another one joins it, or it changes at once.

    Args:
        channels: number of them.
        gate: standard deviations of an innovation (one buffer).
        most: as many show it.
    """

    def __init__(self, channels: int, gate: np.ndarray, most: int = JUMPED) -> None:
        self._gate, self._count, self._most = gate, np.zeros(channels), most

    def reset(self) -> None:
        """Begin anew."""
        self._count[:] = 0.0

    def follow(self, normalised: np.ndarray) -> bool:
        """Take normalised innovations (channels,) of a block, and return whether one has as many outliers in a row."""
        beyond = np.where(np.abs(normalised) > self._gate, np.sign(normalised), 0.0)
        self._count[:] = np.where(beyond * self._count > 0, self._count + beyond, beyond)
        return bool((np.abs(self._count) >= self._most).any())

    @property
    def worst(self) -> int:
        """Channel with most of them."""
        return int(np.abs(self._count).argmax())


class PushTracker:
    """Follows the force of an unknown contact. Motion does not let a contact pull.

    Args:
        signals: buffers by name: ``push_regression`` (3, n) [1/m] of the force on the torque.

    Attributes:
        course: of the force.
        held: (1,) zero where it reverses: then motion does not change it.
    """

    def __init__(self, signals: Mapping[str, np.ndarray]) -> None:
        self._signals, self._mean, self.held = signals, np.zeros(3), np.ones(1)
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._mean[:], self.course, self.held[0] = 0.0, PushCourse(), 1.0

    def set_interval(self, duration: float) -> None:
        """Prepare for a torque every ``duration`` [s]."""
        self._share = min(duration / _MEMORY, 1.0)

    def follow(self, torque: np.ndarray) -> None:
        """Take the torque (n,) [Nm] of the unknown contact after a block."""
        force = self._signals["push_regression"].reshape(3, -1, order="F") @ torque
        self._mean += self._share * (force - self._mean)
        self.course = PushCourse.of(force, self._mean)
        self.held[0] = not self.course.reverses
