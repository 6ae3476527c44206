"""An arm that carries the probe: resolved-rate control of its kinematics within joint limits."""

from __future__ import annotations

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.probing.world_spatial import homogeneous
from contact_estimation.robot import Arm

#: Condition number of J J^T (metres and radians) beyond which joint rates for a given twist are out of proportion.
_MAX_CONDITION = 1e5


class ArmTool:
    """Moves the TCP of an arm by commanded twists.

    Args:
        arm: the robot.
        posture: joint positions (n,) [rad] at the start.
        pose: pose (4, 4) of the TCP in the world at the start; it says where the arm stands.
    """

    def __init__(self, arm: Arm, posture, pose: np.ndarray):
        self.arm, self.q = arm, np.array(posture, dtype=float)
        position, rotation = arm.tcp_pose(self.q)
        self._base = pose @ np.linalg.inv(homogeneous(rotation, position))

    @property
    def pose(self) -> np.ndarray:
        """Pose (4, 4) of the TCP in the world."""
        position, rotation = self.arm.tcp_pose(self.q)
        return self._base @ homogeneous(rotation, position)

    def move(self, twist: np.ndarray, dt: float) -> np.ndarray:
        """Move by ``twist`` (6,) [m/s, rad/s, world axes] for ``dt`` [s], slowed down where a joint would be too fast.

        Returns:
            the twist (6,) carried out.

        Raises:
            IdentificationError: a joint reached its limit, or the arm a singular posture.
        """
        turn = self._base[:3, :3]
        jacobian = self.arm.tcp_jacobian(self.q)
        jacobian = np.vstack([turn @ jacobian[:3], turn @ jacobian[3:]])
        gram = jacobian @ jacobian.T
        if np.linalg.cond(gram) > _MAX_CONDITION:
            raise IdentificationError("the arm came to a singular posture while probing; start from another posture")
        dq = jacobian.T @ np.linalg.solve(gram, twist)
        limit = np.where(self.arm.velocity_limit > 0.0, self.arm.velocity_limit, np.inf)
        dq /= max(1.0, np.max(np.abs(dq) / limit))
        self.q = self.q + dt * dq
        if np.any(self.q < self.arm.lower) or np.any(self.q > self.arm.upper):
            raise IdentificationError("a joint reached its limit while probing; start from another posture")
        return jacobian @ dq
