"""Force of a wrist sensor without its offset, which the sensorless estimate shows: a Kalman filter of offset and error.

Sensor s = f + o + noise, with an offset o that walks; estimate e = f + b. The filter measures s - e = o - b. In free
space b is short noise, and the offset is learnt within a second. On a contact b is the friction of the joints. It is
unknown anew at every touch and then walks faster than any offset, so that it takes what the offset did not show in
free space. Something is touched also where s - e is beyond the gate: the observer has not named a contact yet, or was
restarted on one. A soft contact begins long before either: a touch therefore takes back what was learnt just before.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from contact_estimation.filters.observer import FREE, Estimate

#: [N] Standard deviation of the offset at the start.
_OFFSET_STD = 20.0
#: [N/s^0.5] Change of the offset in one second; larger follows drift sooner.
_OFFSET_RANDOM_WALK = 0.02
#: [N] Difference of sensor and sensorless force in free space, and how long it lasts [s].
FREE_ERROR, _FREE_TIME = 1.0, 0.1
#: [s] What was learnt so shortly before a touch is taken back.
TOUCH_TIME = 1.0
#: [N] Error of the sensorless force after a touch, from joint friction.
CONTACT_ERROR = 6.0
#: [N/s^0.5] Change of that error in one second of the contact; smaller takes more of it for offset.
_CONTACT_RANDOM_WALK = 0.5
#: Innovation, in standard deviations in free space, beyond which something is touched.
_GATE = 4.0


class OffsetFilter:
    """Removes the offset of a force sensor.

    Attributes:
        offset: (3,) [N] of the sensor, in its axes.
        std: (3,) [N] standard deviation of the offset.
        walked: variance [N^2] by which the error of the sensorless force may have walked since the touch.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the offset."""
        self.offset, self._error = np.zeros((2, 3))
        #: Variance of the offset, covariance with the error, variance of the error, per axis [N^2].
        self._offset_variance = np.full(3, _OFFSET_STD**2)
        self._covariance, self._error_variance = np.zeros((2, 3))
        self.walked = 0.0
        self._last: float | None = None
        #: Time [s], offset [N] and its variance [N^2] before each of the last samples in free space.
        self._past: deque[tuple[float, np.ndarray, np.ndarray]] = deque()

    @property
    def std(self) -> np.ndarray:
        """Return the standard deviation (3,) [N] of the offset."""
        return np.asarray(np.sqrt(self._offset_variance))

    def force_tcp(self, t: float, sensed: np.ndarray, estimate: Estimate) -> np.ndarray:
        """Return the force (3,) [N] on the robot, TCP axes, from sensor and sensorless estimate of one sample.

        Args:
            t: time of the sample [s].
            sensed: (3,) [N] by the sensor, TCP axes.
            estimate: of an observer.
        """
        free = estimate.modes.get("free", 1.0 if estimate.mode == "free" else 0.0)
        return self.update(t, sensed, estimate.force_tcp, in_contact=free <= FREE)

    def update(self, t: float, sensed: np.ndarray, estimated: np.ndarray, in_contact: bool) -> np.ndarray:
        """Return the force (3,) [N] without the offset.

        Args:
            t: time of the sample [s].
            sensed: (3,) [N] by the sensor.
            estimated: (3,) [N] without it, in the same axes.
            in_contact: whether the estimate names a contact.
        """
        step = 0.0 if self._last is None else t - self._last
        self._last = t
        if step < 0.0:  # the clock was set back: what was remembered has no age any more
            self._past.clear()
        if step > 0.0:
            difference = sensed - estimated
            self._offset_variance = self._offset_variance + step * _OFFSET_RANDOM_WALK**2
            beyond = (difference - self.offset) ** 2 > _GATE**2 * (self._offset_variance + FREE_ERROR**2)
            if in_contact or bool(beyond.any()):
                self._predict_error(step)
            else:
                self._remember(t)
            self._correct(difference, FREE_ERROR**2 * max(_FREE_TIME / step, 1.0))
        return np.asarray(sensed - self.offset)

    def shift(self, jump: np.ndarray) -> None:
        """Let the offset jump by ``jump`` (3,) [N], which a difference of two readings has shown."""
        self.offset = self.offset + jump
        self._offset_variance = self._offset_variance + FREE_ERROR**2
        self._past.clear()

    def _remember(self, t: float) -> None:
        """Keep the offset of ``t`` [s] in free space, where the sensorless force has no lasting error."""
        self._error, self._covariance, self._error_variance = np.zeros((3, 3))
        self.walked = 0.0
        self._past.append((t, self.offset, self._offset_variance))
        while t - self._past[0][0] > TOUCH_TIME:
            self._past.popleft()

    def _predict_error(self, step: float) -> None:
        """Let the error of the sensorless force walk for ``step`` [s]; it begins with the touch."""
        if self._past:
            _, self.offset, self._offset_variance = self._past[0]
            self._past.clear()
        begun = self._error_variance > 0.0
        change = step * _CONTACT_RANDOM_WALK**2
        self._error_variance = np.where(begun, self._error_variance + change, CONTACT_ERROR**2)
        self.walked += change

    def _correct(self, difference: np.ndarray, noise: float) -> None:
        """Take ``difference`` (3,) [N] of sensor and sensorless force, of variance ``noise`` [N^2]."""
        # Covariances of offset and error with the difference, which measures offset - error.
        of_offset, of_error = self._offset_variance - self._covariance, self._covariance - self._error_variance
        weight = 1.0 / (of_offset - of_error + noise)
        innovation = weight * (difference - self.offset + self._error)
        self.offset, self._error = self.offset + of_offset * innovation, self._error + of_error * innovation
        self._offset_variance = self._offset_variance - weight * of_offset**2
        self._error_variance = self._error_variance - weight * of_error**2
        self._covariance = self._covariance - weight * of_offset * of_error
