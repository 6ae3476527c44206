"""Parity check of two forces, of a wrist sensor and without it: where they contradict each other, neither is right.

The sensor without the offset that it had in free space, s - o, and the sensorless force e see the same contact. Their
difference r = s - o - e is the parity residual (Gertler, Fault Detection and Diagnosis in Engineering Systems, 1998).
It holds the drift of the sensor and the error of e: friction of the joints, which changes anew at each touch and each
reversal. Along the force, u, its variance is

    sigma^2 = max(u^T P u, c^2) + w^2 t + u^T P_o u

with the covariance P that the observer gives, which may not know all of the friction, the usual error c of the
sensorless force after a touch, its random walk w in the time t since then, and P_o of the offset. |r u| is beyond 3
sigma in 0.3 % of the touches, if the errors are normal. Two forces do not show which of them is wrong. Across the force
the errors of e are larger, and no controller presses there.
"""

from __future__ import annotations

import math

import numpy as np

from contact_estimation.filters.wrist_sensor.offset import CONTACT_ERROR
from contact_estimation.filters.wrist_sensor.zeroed import FOLLOW_TIME

#: Standard deviations beyond which the forces contradict each other.
_GATE = 3.0
#: [s] Time constant of the low-pass of their difference.
_TIME = 0.1
#: The contradiction ends below this share of its beginning, or a drift would switch the verdict on and off.
_ENDS = 0.5


class ForceParity:
    """Compares two forces of one contact.

    Attributes:
        residual: r (3,) [N], low-passed.
        along: residual along the force [N].
        std: its standard deviation [N].
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the difference."""
        self.residual = np.zeros(3)
        self._last: float | None = None
        self._since: float | None = None  # beyond the gate since [s]
        self.along, self.std = 0.0, 0.0

    def contradict(
        self,
        t: float,
        sensed: np.ndarray,
        estimated: np.ndarray,
        covariance: np.ndarray,
        variance: np.ndarray,
        walked: float,
    ) -> bool:
        """Return whether the forces have contradicted each other for longer than an impact takes.

        Args:
            t: time of the sample [s].
            sensed: (3,) [N] by the sensor, without its offset.
            estimated: (3,) [N] without the sensor, in the same axes.
            covariance: (3, 3) [N^2] of ``estimated``; NaN where an observer has none.
            variance: (3,) [N^2] of the offset.
            walked: variance [N^2] by which the error of ``estimated`` may have walked since the touch.
        """
        step = 0.0 if self._last is None else t - self._last
        self._last = t
        if not 0.0 <= step < FOLLOW_TIME:  # a gap, or a clock that was set back
            self.residual, self._since = sensed - estimated, None
        self.residual = self.residual + min(step / _TIME, 1.0) * (sensed - estimated - self.residual)
        larger = sensed if sensed @ sensed > estimated @ estimated else estimated
        u = larger / max(float(np.linalg.norm(larger)), 1e-9)
        of_estimate = float(u @ covariance @ u)
        of_estimate = of_estimate if math.isfinite(of_estimate) else 0.0
        self.std = math.sqrt(max(of_estimate, CONTACT_ERROR**2) + walked + float(u**2 @ variance))
        self.along = float(u @ self.residual)
        contradicted = self._since is not None and t - self._since > FOLLOW_TIME
        if abs(self.along) <= (_ENDS if contradicted else 1.0) * _GATE * self.std:
            self._since = None
        elif self._since is None:
            self._since = t
        return self._since is not None and t - self._since > FOLLOW_TIME
