"""Force admittance: the equilibrium moves with the force error, dx_0/dt = (F - F_d) / D per force axis.

The damping follows the estimated stiffness, D = T K K_imp / (K + K_imp): the force error then decays with the time
constant T on every surface (Villani and De Schutter 2016, 9.3.2).
"""

from __future__ import annotations

import numpy as np

from contact_estimation.control.force_task import ForceTaskController
from contact_estimation.control.situation import Situation


class ForceAdmittanceController(ForceTaskController):
    """Integrates the force error into the equilibrium."""

    name = "admittance"

    def _push(self, now: Situation) -> np.ndarray:
        series = now.stiffness * self._stiffness / (now.stiffness + self._stiffness)  # (3,) [N/m]
        error = np.where(self._axes, now.force - np.array(self.settings.force), 0.0)
        reference = self._position + error / (series * self.settings.admittance.time * self.settings.rate)
        return np.asarray(self._stiffness * (reference - now.x))
