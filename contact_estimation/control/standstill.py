"""Whether an arm that was left to stand was moved meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin


@dataclass(frozen=True)
class Standstill:
    """Where an arm was left to stand, when its equilibrium x_0 was put to where the tool was.

    The spring then relaxes. On a passive surface the tool gives way against its push, by x - x_0 at most. The attitude
    keeps its equilibrium R_0. Without the force the tool turns towards it, at most until it is there.

    Attributes:
        x: (3,) TCP position [m] then, base frame.
        relief: (3,) x - x_0 [m] before.
        rotation: (3, 3) TCP attitude R then, base frame.
        wanted: (3, 3) R_0.
    """

    x: np.ndarray
    relief: np.ndarray
    rotation: np.ndarray
    wanted: np.ndarray

    def moved(self, x: np.ndarray) -> float:
        """Return by how much [m] the tool has been moved, beyond what the relaxed spring explains.

        Args:
            x: (3,) TCP position [m] now, base frame.
        """
        return _beyond(x - self.x, self.relief)

    def turned(self, rotation: np.ndarray) -> float:
        """Return by how much [rad] the tool has been turned, beyond what the spring of the attitude explains.

        Args:
            rotation: (3, 3) TCP attitude now, base frame.
        """
        return _beyond(pin.log3(self.rotation.T @ rotation), pin.log3(self.rotation.T @ self.wanted))


def _beyond(way: np.ndarray, explained: np.ndarray) -> float:
    """Return the length of a way (3,) without its part along an explained one (3,), up to that one's length."""
    length = float(explained @ explained)
    share = np.clip((way @ explained) / length, 0.0, 1.0) if length > 0 else 0.0
    return float(np.linalg.norm(way - share * explained))
