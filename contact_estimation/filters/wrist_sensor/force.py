"""Force of a wrist sensor for a controller: without its offset, and only while nothing speaks against the sensor.

One object holds the filter of the offset and every guard of the sensor, for a node and for a loop without ROS.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.wrist_sensor.frozen import FrozenSensor
from contact_estimation.filters.wrist_sensor.offset import FREE_ERROR, OffsetFilter
from contact_estimation.filters.wrist_sensor.parity import ForceParity
from contact_estimation.filters.wrist_sensor.zeroed import ZeroedSensor

#: What to do where the offset is no longer known.
_MEND = (
    "which of the two is wrong is not known. Lift the tool off, zero the sensor, check payload and joint friction, "
    "and configure again"
)
_FROZEN = (
    "repeats one reading although the arm moved, or its force changed: the sensor is frozen; "
    "start it or its driver again"
)

_NOT_FINITE = "cannot be used: its force or the sensorless one is not finite"


class WristReading(NamedTuple):
    """What one reading of the sensor says.

    Attributes:
        force: (3,) [N] on the robot without the offset, TCP axes.
        drift: of the sensorless force since the touch [N], standard deviation.
        problem: why it must not be used, else empty.
        note: what was found and followed, else empty.
    """

    force: np.ndarray
    drift: float
    problem: str = ""
    note: str = ""


class WristForce:
    """Filter and guards of one sensor."""

    def __init__(self) -> None:
        self._filter = OffsetFilter()
        self._zeroed, self._frozen = ZeroedSensor(), FrozenSensor()
        self._parity, self._faulty = ForceParity(), False

    @property
    def offset(self) -> np.ndarray:
        """Return what a driver's own law shall subtract from the readings: (3,) [N], TCP axes.

        It is the offset of the sensor. While the sensor has a problem, it also takes the slow difference to the
        sensorless force: a hold then neither follows a sensor that drifts on, nor moves away from a contact that only
        the sensor feels.
        """
        return self._filter.offset + (self._parity.residual if self._faulty else 0.0)

    @property
    def learnt(self) -> bool:
        """Whether the offset was learnt in free space: on a contact it is as uncertain as the friction."""
        return bool(self._filter.std.max() < FREE_ERROR)

    def reset(self) -> None:
        """Begin with an unknown offset."""
        self._filter.reset()
        self._frozen.reset()
        self.interrupt()

    def interrupt(self) -> None:
        """Take note that readings are missing or bad: a sensor that comes back jumps."""
        self._faulty = False
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
        if not (np.isfinite(sensed).all() and np.isfinite(felt).all()):  # NaN would stay in the filters
            return WristReading(sensed - self._filter.offset, 0.0, _NOT_FINITE)
        if self._frozen.repeats(read_at, wrench, estimate.q, felt):
            self._zeroed.reset()  # a sensor that comes back jumps
            force, note, problem = sensed - self._filter.offset, "", _FROZEN
            self._compare(t, force, estimate)  # the offset of a driver's law goes on with the difference
        else:
            note = self._follow_jump(read_at, sensed, felt)
            force = self._filter.force_tcp(t, sensed, estimate)
            problem = self._compare(t, force, estimate)
        self._faulty = bool(problem)
        drift = math.sqrt(self._filter.walked)
        return WristReading(force if problem else self._cautious(force), drift, problem, note)

    def _follow_jump(self, read_at: float, sensed: np.ndarray, felt: np.ndarray) -> str:
        """Take the jump of a sensor that was zeroed into its offset; return what happened."""
        jump = self._zeroed.jumped(read_at, sensed, felt)
        if jump is None:
            return ""
        self._filter.shift(jump)
        self._parity.reset()
        return (
            f"jumped by {np.linalg.norm(jump):.1f} N to zero where the joints felt nothing: the sensor was zeroed. "
            "Its offset follows; zero it in free space only"
        )

    def _compare(self, t: float, force: np.ndarray, estimate: Estimate) -> str:
        """Return how ``force`` (3,) [N] of the sensor contradicts the sensorless one, else an empty string."""
        variance = self._filter.std**2
        felt, covariance = estimate.force_tcp, estimate.force_covariance
        contradict = self._parity.contradict(t, force, felt, covariance, variance, self._filter.walked)
        if self._zeroed.fault.any():
            size = np.linalg.norm(self._zeroed.fault)
            return f"jumped by {size:.1f} N, which the sensorless force does not show: {_MEND}"
        if contradict:
            along, std = self._parity.along, self._parity.std
            return (
                f"differs from the sensorless force by {along:+.1f} N along the force, {abs(along) / std:.1f} standard "
                f"deviations: {_MEND}"
            )
        return ""

    def _cautious(self, force: np.ndarray) -> np.ndarray:
        """Return the larger one of the forces with and without a jump (3,) [N] whose cause is not yet known."""
        without = force - self._zeroed.suspected
        return without if without @ without > force @ force else force
