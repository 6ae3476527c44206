"""What pulls at the TCP beside spring and contact: the disturbance d in spring + contact + d = D dx, at rest."""

from __future__ import annotations

import math

import numpy as np

from contact_estimation.control.mpc.settings import MpcSettings

#: [N] Joint friction and gravity error of an arm with torque sensors may be so large, however light the touch is.
_LEAST_UNEXPLAINED = 3.0


class ForceBalance:
    """Low-passes what the balance of forces at the TCP lacks.

    With contact modes, the limit of the push follows m dv/dt + D v - spring - contact within twice the estimate's age:
    a loop through a delay is well damped by a filter of twice that delay. It follows the mean of two ticks: a stiff
    contact that rings at half the controller's rate would be driven by the limit. Without modes it follows slowly: the
    observer keeps the force of a contact that is gone, which then shows as sinking.

    Args:
        settings: the task.
        normal: (3,) direction of the wanted force, base axes.

    Attributes:
        disturbance: d (3,) [N], base axes.
        extra: what is needed along the push beyond the contact's force [N].
    """

    def __init__(self, settings: MpcSettings, normal: np.ndarray) -> None:
        self._rate, self._normal = settings.rate, normal
        self._unexplained = max(settings.safety.unexplained * math.hypot(*settings.force), _LEAST_UNEXPLAINED)
        self._share = min(1.0 / (settings.rate * settings.disturbance_time), 1.0)
        self.restart()

    def restart(self) -> None:
        """Know of no disturbance."""
        self.disturbance, self.extra = np.zeros(3), 0.0
        self._last = -math.inf, 0.0, 0.0  # time [s], speed [m/s] and balance [N] along the push

    def update(self, t: float, missing: np.ndarray, dx: np.ndarray, mass: float, lag: float | None) -> None:
        """Take a sample.

        Args:
            t: its time [s].
            missing: (3,) D dx - spring - contact [N], base axes.
            dx: (3,) velocity of the TCP [m/s], base frame.
            mass: effective mass along the push [kg].
            lag: age of the estimate [s] where it has contact modes, None without.
        """
        self.disturbance = self.disturbance + self._share * (missing - self.disturbance)
        (last, speed_last, balance_last), speed = self._last, float(self._normal @ dx)
        step, share, inertia = t - last, self._share, 0.0
        if lag is not None and 1e-6 < step < math.inf:
            share = 1.0 / (1.0 + 2.0 * max(lag, 0.0) * self._rate)
            inertia = mass * (speed - speed_last) / step
        balance = float(self._normal @ missing) + inertia
        self.extra += share * (0.5 * (balance + balance_last) - self.extra)
        self._last = t, speed, balance

    def trusted(self, damping: float) -> float:
        """Return what the push may have beyond the contact's force [N].

        At rest the impedance's spring balances the contact. What it has beyond the estimated force is friction only up
        to ``unexplained``; more is a force that the estimate does not tell.

        Args:
            damping: force of the impedance's damper along the push [N].
        """
        return min(self.extra, self._unexplained + abs(damping))
