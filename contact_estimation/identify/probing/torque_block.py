"""Mean external joint torque of a block of samples from the momentum it gained, without differentiating a velocity
per sample.

Leaning the probe accelerates the arm, and M ddq is newtons at the tip: left in the torque it makes the estimate
confidently wrong. With p = M dq, dp/dt = tau + drift + tau_e (De Luca and Mattone 2005), so that over a block of length
T the mean of tau_e is (p_end - p_begin) / T - mean(tau + drift). Whether M holds the reflected rotors is a question of
where the torque is measured (:meth:`~contact_estimation.robot.arm.Arm.measured_at`).
"""

from __future__ import annotations

import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.filters.momentum import build_step
from contact_estimation.robot import Arm


class TorqueBlock:
    """Means of position, velocity and external torque since the last :meth:`take`.

    Args:
        arm: the robot, as its torque sensors see it.
    """

    def __init__(self, arm: Arm):
        self._terms = compile_function(build_step(arm))
        self._n = arm.n

    def reset(self) -> None:
        """Begin at rest."""
        self._momentum = self._begin = np.zeros(self._n)
        self._clear()

    def _clear(self):
        self.elapsed, self._sums = 0.0, np.zeros((3, self._n))

    def add(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take one sample: ``dt`` [s] since the last; positions [rad], velocities [rad/s], torque [Nm], (n,) each."""
        self._terms.inputs["q"][:], self._terms.inputs["dq"][:] = q, dq
        self._terms()
        out = self._terms.outputs
        self._momentum = out["p"].copy()
        self._sums += dt * np.array([q, dq, tau + out["drift"]])
        self.elapsed += dt

    def take(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means (n,) of position, velocity and external torque over the block [rad, rad/s, Nm], and begin the next."""
        q, dq, driven = self._sums / self.elapsed
        external = (self._momentum - self._begin) / self.elapsed - driven
        self._begin = self._momentum
        self._clear()
        return q, dq, external
