"""PI force control: F_s = -F_d + k_p (F - F_d) + k_i int (F - F_d) dt per force axis (Siciliano et al. 2009, 9.4)."""

from __future__ import annotations

import numpy as np

from contact_estimation.control.controller import Observation
from contact_estimation.control.force_task import ForceTaskController
from contact_estimation.control.impedance import clip_norm
from contact_estimation.control.situation import Situation


class PiController(ForceTaskController):
    """Feedforward of the wanted force, proportional and integral feedback of the estimated one."""

    name = "pi"

    def _restart(self, observation: Observation) -> None:
        self._integral = np.zeros(3)

    def _push(self, now: Situation) -> np.ndarray:
        wanted, gains = np.array(self.settings.force), self.settings.pi
        error = np.where(self._axes, now.force - wanted, 0.0)
        step = 0.0 if now.rest is not None else gains.integral / self.settings.rate
        self._integral = clip_norm(self._integral + step * error, 0.5 * self._limit)  # anti-windup
        return np.asarray(-wanted + gains.proportional * error + self._integral)
