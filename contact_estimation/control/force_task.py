"""Plain force controllers: one push along each force axis, the task's path along the others.

They have the force and path of the task, as the MPC has, and differ in the push.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pinocchio as pin

from contact_estimation.control.controller import Observation
from contact_estimation.control.path import path_share
from contact_estimation.control.situation import Plan, Situation
from contact_estimation.control.supervision import SupervisedController


class ForceTaskController(SupervisedController):
    """Base of the plain controllers."""

    @abstractmethod
    def _push(self, now: Situation) -> np.ndarray:
        """Return the force (3,) [N] of the impedance's spring, base axes; only force axes count."""

    def _restart(self, observation: Observation) -> None:
        """Nothing is kept from tick to tick but the equilibrium."""

    def _plan(self, now: Situation) -> Plan:
        s = self.settings
        share = float(path_share(np.array([now.elapsed / s.path_time]), s.path_back)[0])
        rotation = pin.exp3(share * np.array(s.turn)) @ self._rotation
        target = self._start + share * np.array(s.path)
        position = target - (now.disturbance + now.force) / self._stiffness  # compensate forces across the force axes
        pushed = now.x + self._push(now) / self._stiffness
        return Plan(np.where(self._axes, pushed, position), rotation)
