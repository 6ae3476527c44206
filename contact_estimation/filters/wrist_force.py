"""Force of a wrist sensor for a controller: without its offset, and only while nothing speaks against the sensor.

One object holds the filter of the offset and every guard of the sensor, for a node and for a loop without ROS.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.filters.force_parity import ForceParity
from contact_estimation.filters.frozen_sensor import FrozenSensor
from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.wrench_fusion import WrenchFusion, WrenchFusionSettings
from contact_estimation.filters.zeroed_sensor import ZeroedSensor

#: What to do where the offset is no longer known.
_MEND = (
    "which of the two is wrong is not known. Lift the tool off, zero the sensor, check payload and joint friction, "
    "and configure again"
)


class WristReading(NamedTuple):
    """What one reading of the sensor says.

    Attributes:
        force: (3,) [N] on the robot without the offset, TCP axes.
        problem: why it must not be used, else empty.
        note: what was found and followed, else empty.
    """

    force: np.ndarray
    problem: str = ""
    note: str = ""


class WristForce:
    """Filter and guards of one sensor.

    Args:
        settings: of all of them.
    """

    def __init__(self, settings: WrenchFusionSettings | None = None) -> None:
        self._fusion = WrenchFusion(settings)
        self._zeroed, self._frozen = ZeroedSensor(settings), FrozenSensor(settings)
        self._parity = ForceParity(settings)

    @property
    def offset(self) -> np.ndarray:
        """Offset (3,) [N] of the sensor, TCP axes."""
        return self._fusion.offset

    @property
    def learnt(self) -> bool:
        """Whether the offset was learnt in free space: on a contact it is as uncertain as the friction."""
        return bool(self._fusion.std.max() < self._fusion.settings.free_error)

    def reset(self) -> None:
        """Begin with an unknown offset."""
        self._fusion.reset()
        self._frozen.reset()
        self.interrupt()

    def interrupt(self) -> None:
        """Take note that readings are missing or bad: a sensor that comes back jumps."""
        self._zeroed.reset()
        self._parity.reset()

    def add(self, t: float, sensed: np.ndarray) -> None:
        """Take every reading, also those between two estimates.

        Args:
            t: its time [s].
            sensed: (3,) force [N], TCP axes.
        """
        self._zeroed.add(t, sensed)

    def update(self, t: float, read_at: float, wrench: np.ndarray, estimate: Estimate) -> WristReading:
        """Return the force of the sensor beside an estimate.

        Args:
            t: time of the estimate's sample [s].
            read_at: time of the reading [s].
            wrench: (6,) of the sensor [N, Nm], TCP axes.
            estimate: valid one of an observer.
        """
        sensed, felt = wrench[:3], estimate.force_tcp
        if self._frozen.repeats(read_at, wrench, estimate.q, felt):
            self.interrupt()
            return WristReading(
                sensed,
                "repeats one reading although the arm moved, or its force changed: the sensor is frozen; start it or "
                "its driver again",
            )
        note, jump = "", self._zeroed.jumped(read_at, sensed, felt)
        if jump is not None:
            self._fusion.shift(jump)
            self._parity.reset()
            note = (
                f"jumped by {np.linalg.norm(jump):.1f} N to zero where the joints felt nothing: the sensor was zeroed. "
                "Its offset follows; zero it in free space only"
            )
        force = self._fusion.force_tcp(t, sensed, estimate)
        contradict = self._parity.contradict(t, force, felt, estimate.force_covariance, self._fusion.std**2)
        if self._zeroed.fault.any():
            size = np.linalg.norm(self._zeroed.fault)
            problem = f"jumped by {size:.1f} N, which the sensorless force does not show: {_MEND}"
            return WristReading(force, problem, note)
        if contradict:
            along, std = self._parity.along, self._parity.std
            return WristReading(
                force,
                f"differs from the sensorless force by {along:+.1f} N along the force, {abs(along) / std:.1f} standard "
                f"deviations: {_MEND}",
                note,
            )
        return WristReading(self._cautious(force), "", note)

    def _cautious(self, force: np.ndarray) -> np.ndarray:
        """Return the larger one of the forces with and without a jump (3,) [N] whose cause is not yet known."""
        without = force - self._zeroed.suspected
        return without if without @ without > force @ force else force
