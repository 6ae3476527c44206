"""Whether elastic joints bend as their stiffness says: a regression of the measured deflection on the torque.

With the torque u = tau_e - G that the motors show beside the expected friction, the deflection is y = o + u / k. Over a
memory of some seconds the slope of y over u, times the expected k, is b = 1. Its variance is that of k, plus those of
the friction disturbance and of the gears' hysteresis h, should they follow the torque:

    var b = var(ln k) + (w var(friction) + (h k)^2) / var u,    w = 1 - 2 (T - 1 + e^-T) / T^2.

w is the share of the disturbance's variance (Gauss-Markov) that is change within the memory, of length T in its time
constants. A velocity of the joints instead of the motors shows no deflection: b = 0.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.filters.chi_square import chi_square_quantile
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import ActuatorSettings

#: [s] Memory of the regression.
_MEMORY = 10.0
#: Keeps the share of what changes defined at the start.
_LEAST_TIME = 1e-3
#: [Nm^2] Keeps the slope defined while the torque has not changed.
_LEAST_VARIANCE = 1e-6


class DeflectionTest:
    """Regression of deflections on torques, with a memory.

    Args:
        arm: the robot.
        actuators: joint friction and elasticity.
        significance: of the chi-square tests of b = 1, of all joints together.

    Attributes:
        slope: (m,) b.
    """

    def __init__(self, arm: Arm, actuators: ActuatorSettings, significance: float) -> None:
        elastic, friction = actuators.elastic, actuators.friction
        self._arm, self._joints = arm, list(elastic.joints)
        self._stiffness, self._spread = np.array(elastic.stiffness), elastic.stiffness_spread
        self._coulomb = np.array(friction.coulomb)[self._joints]
        self._friction = np.hypot(friction.coulomb_std, actuators.disturbance_std)[self._joints] ** 2  # (m,) [Nm^2]
        self._friction_time = actuators.disturbance_time
        self._loop = (elastic.hysteresis * self._stiffness) ** 2  # (m,) [Nm^2]
        self._largest = chi_square_quantile(1, significance / max(len(self._joints), 1))
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        count = len(self._joints)
        self._time, self._mean = 0.0, np.zeros((2, count))
        self._variance, self._covariance, self.slope = np.zeros(count), np.zeros(count), np.ones(count)

    def add(self, duration: float, q: np.ndarray, presliding: np.ndarray, torque: np.ndarray, y: np.ndarray) -> None:
        """Take a block.

        Args:
            duration: since the last one [s].
            q: positions (n,) [rad].
            presliding: states of the friction (n,).
            torque: measured, tau_e - friction (n,) [Nm].
            y: deflections (m,) [rad].
        """
        joints = self._joints
        u = (torque - self._arm.gravity(q))[joints] + self._coulomb * presliding[joints]
        self._time += duration
        share = max(duration / _MEMORY, duration / self._time)
        change = np.array([u, y]) - self._mean
        self._mean += share * change
        self._variance += share * ((1 - share) * change[0] ** 2 - self._variance)
        self._covariance += share * ((1 - share) * change[0] * change[1] - self._covariance)
        self.slope = self._stiffness * self._covariance / (self._variance + _LEAST_VARIANCE)

    def worst(self) -> int | None:
        """Return which elastic joint bends least as it should, None where all may."""
        times = min(self._time, _MEMORY) / self._friction_time + _LEAST_TIME
        changing = 1 - 2 * (times - 1 + np.exp(-times)) / times**2  # share of a Gauss-Markov process
        unknown = changing * self._friction + self._loop
        variance = self._spread**2 + unknown / (self._variance + _LEAST_VARIANCE)
        square = (self.slope - 1) ** 2 / variance
        return int(square.argmax()) if (square > self._largest).any() else None
