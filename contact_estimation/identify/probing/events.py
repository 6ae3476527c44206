"""Event triggering: when parameters may change and when forces are used (paper 4, section III-D, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass
class SlideEvents:
    """Bookkeeping of Algorithm 1, with |v_t| where the paper prints v_t.

    Attributes:
        step: sliding distance after which parameters may have changed [m], Delta s_tm.
        speed_min: speed from which it counts as sliding [m/s], v_tm.
        distance_min: [m], refines the paper's condition: after a stop or a reversal friction needs a presliding
            distance before it is Coulomb's, whatever the speed.
        travelled: sliding distance since the parameters last changed [m].
        since_stop: sliding distance since the last stop or reversal [m].
        heading: direction in which that slide began, or None at rest.
    """

    step: float
    speed_min: float
    distance_min: float
    travelled: float = 0.0
    since_stop: float = 0.0
    heading: np.ndarray | None = None

    def parameters_may_change(self) -> bool:
        """Return True once per ``step`` of sliding, and reset the travelled distance."""
        if self.travelled <= self.step:
            return False
        self.travelled = 0.0
        return True

    def record(self, velocity: np.ndarray, dt: float) -> bool:
        """Add a sample's slip; return whether forces may be used.

        Args:
            velocity: estimated slip velocity (1,) or (3,) [m/s].
            dt: time since the last sample [s].

        Returns:
            True when it slides, and has slid far enough since it stopped or turned by a right angle.
        """
        speed = math.sqrt(velocity @ velocity)
        self.travelled += speed * dt
        if speed <= self.speed_min:
            self.since_stop, self.heading = 0.0, None
            return False
        if self.heading is None or float(self.heading @ velocity) <= 0.0:
            self.since_stop, self.heading = 0.0, velocity / speed
        self.since_stop += speed * dt
        return self.since_stop > self.distance_min
