"""The compliant contact primitive: a spring along a normal between a point on the robot and a rest position.

Paper 2, eq. 4-6: F = K^T (x_rest - x), acting along n = K/||K|| at x = p(q) + R(q) x_tcp. The force is even in K: K and
-K are the same contact, so a sign has to be fixed wherever K is shown.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

#: [N/m] keeps the normal defined while an estimate passes through K = 0; far below any real stiffness.
_SOFTENING = 1e-3


def normal_force(stiffness: ca.SX, rest: ca.SX, point_base: ca.SX) -> ca.SX:
    """Scalar force [N] along the normal: K^T (x_rest - x), eq. 4."""
    return ca.dot(stiffness, rest - point_base)


def force_base(stiffness: ca.SX, rest: ca.SX, point_base: ca.SX) -> ca.SX:
    """Force (3,) [N] of the environment on the robot in base axes: n F with n = K/||K||."""
    norm = ca.sqrt(ca.dot(stiffness, stiffness) + _SOFTENING**2)
    return stiffness * (normal_force(stiffness, rest, point_base) / norm)


def same_sign(stiffness: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The one of K and -K that points to the side of ``reference``."""
    return -stiffness if float(np.dot(stiffness, reference)) < 0 else stiffness
