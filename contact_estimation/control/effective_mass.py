"""The mass that a sudden contact meets."""

from __future__ import annotations

import numpy as np

from contact_estimation.robot import Arm


def effective_mass(arm: Arm, q: np.ndarray, jacobian: np.ndarray, normal: np.ndarray) -> float:
    """Return 1 / (n^T J M^-1 J^T n) [kg]: what a sudden contact along n meets (Khatib 1995).

    Args:
        arm: the robot.
        q: (n,) [rad].
        jacobian: J (3, n) of the TCP's position there, base axes.
        normal: n (3,), base axes.
    """
    row = normal @ jacobian
    return 1.0 / max(float(row @ np.linalg.solve(arm.mass(q), row)), 1e-6)
