"""Whether an arm that was left to stand was moved meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Standstill:
    """Where an arm was left to stand, when its equilibrium x_0 was put to where the tool was.

    The spring then relaxes. On a passive surface the tool gives way against its push, by x - x_0 at most.

    Attributes:
        x: (3,) TCP position [m] then, base frame.
        relief: (3,) x - x_0 [m] before.
    """

    x: np.ndarray
    relief: np.ndarray

    def moved(self, x: np.ndarray) -> float:
        """Return by how much [m] the tool has been moved, beyond what the relaxed spring explains.

        Args:
            x: (3,) TCP position [m] now, base frame.
        """
        way, length = x - self.x, float(self.relief @ self.relief)
        share = np.clip((way @ self.relief) / length, 0.0, 1.0) if length > 0 else 0.0
        return float(np.linalg.norm(way - share * self.relief))
