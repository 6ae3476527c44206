"""The task's path: there and back, minimum jerk at both ends (Flash and Hogan 1985)."""

from __future__ import annotations

import numpy as np


def path_share(passes: np.ndarray) -> np.ndarray:
    """Return the share (0 to 1) of the way after ``passes`` passages, there and back."""
    s = np.abs((np.asarray(passes) + 1.0) % 2.0 - 1.0)
    return np.asarray(s**3 * (10.0 - 15.0 * s + 6.0 * s * s))
