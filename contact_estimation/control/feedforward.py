"""Feedforward of the wanted force: the spring pushes with -F_d - d, d the low-passed balance of forces."""

from __future__ import annotations

import numpy as np

from contact_estimation.control.force_task import ForceTaskController
from contact_estimation.control.situation import Situation


class FeedforwardController(ForceTaskController):
    """Wanted force and disturbance, without feedback of the force error."""

    name = "feedforward"

    def _push(self, now: Situation) -> np.ndarray:
        return np.asarray(-np.array(self.settings.force) - now.disturbance)
