"""Force of a wrist sensor whose offset the sensorless estimate tells: a Kalman filter of the offset.

Sensor s = f + o + noise, with an offset o that walks; estimate e = f + error. The innovation is s - e - o. In free
space the sensorless force is nearly exact, and the offset is learnt within a second. On a contact the estimate carries
the friction of the joints, an error that lasts: there the offset follows slowly. It also does where the innovation is
beyond the gate: the observer has not named a contact yet, or was restarted on one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.filters.observer import Estimate
from contact_estimation.settings import key, positive

#: Probability of free space above which nothing is touched.
_FREE = 0.5


@dataclass(frozen=True, kw_only=True)
class WrenchFusionSettings:
    """Noise of the offset's filter. An error that lasts for a time T counts as white noise of T / dt its variance."""

    offset_std: float = key(20.0, doc="initial uncertainty of the sensor's offset", unit="N", check=positive)
    offset_random_walk: float = key(
        0.05, doc="change of the offset in one second; larger follows drift sooner", unit="N/s^0.5", check=positive
    )
    free_error: float = key(
        1.0, doc="difference of sensor and sensorless force in free space", unit="N", check=positive
    )
    free_time: float = key(0.1, doc="how long that difference lasts", unit="s", check=positive)
    contact_error: float = key(
        3.0, doc="error of the sensorless force on a contact, from joint friction", unit="N", check=positive
    )
    contact_time: float = key(20.0, doc="how long that error lasts", unit="s", check=positive)
    gate: float = key(
        4.0, doc="innovation, in standard deviations in free space, beyond which something is touched", check=positive
    )


class WrenchFusion:
    """Removes the offset of a force sensor.

    Args:
        settings: of the filter.

    Attributes:
        offset: (3,) [N] of the sensor, in its axes. std: (3,) [N] of the offset.
    """

    def __init__(self, settings: WrenchFusionSettings | None = None) -> None:
        self.settings = settings or WrenchFusionSettings()
        self.reset()

    def reset(self) -> None:
        """Forget the offset."""
        self.offset, self._variance = np.zeros(3), np.full(3, self.settings.offset_std**2)
        self._last: float | None = None

    @property
    def std(self) -> np.ndarray:
        """Return the standard deviation (3,) [N] of the offset."""
        return np.asarray(np.sqrt(self._variance))

    def force_tcp(self, t: float, sensed: np.ndarray, estimate: Estimate) -> np.ndarray:
        """Return the force (3,) [N] on the robot, TCP axes, from sensor and sensorless estimate of one sample.

        Args:
            t: time of the sample [s].
            sensed: (3,) [N] by the sensor, TCP axes.
            estimate: of an observer.
        """
        free = estimate.modes.get("free", 1.0 if estimate.mode == "free" else 0.0)
        return self.update(t, sensed, estimate.force_tcp, in_contact=free <= _FREE)

    def update(self, t: float, sensed: np.ndarray, estimated: np.ndarray, in_contact: bool) -> np.ndarray:
        """Return the force (3,) [N] without the offset.

        Args:
            t: time of the sample [s].
            sensed: (3,) [N] by the sensor.
            estimated: (3,) [N] without it, in the same axes.
            in_contact: whether the estimate names a contact.
        """
        s, step = self.settings, 0.0 if self._last is None else max(t - self._last, 0.0)
        self._last = t
        if step > 0.0:
            innovation = sensed - estimated - self.offset
            touched = in_contact or bool((innovation**2 > s.gate**2 * (self._variance + s.free_error**2)).any())
            error, lasts = (s.contact_error, s.contact_time) if touched else (s.free_error, s.free_time)
            self._variance = self._variance + step * s.offset_random_walk**2
            gain = self._variance / (self._variance + error**2 * max(lasts / step, 1.0))
            self.offset = self.offset + gain * innovation
            self._variance = (1.0 - gain) * self._variance
        return np.asarray(sensed - self.offset)
