"""A start posture from which an arm can press downwards."""

from __future__ import annotations

import numpy as np

from contact_estimation.robot.arm import Arm

#: Attempts from random postures; more changed the result's conditioning by less than a tenth on the shipped arms.
_ATTEMPTS = 24


def ready_posture(arm: Arm) -> np.ndarray:
    """Joint positions (n,) [rad] with the tool pointing down in front of the arm, far from singularities and limits.

    The robot's own (``ready`` of its YAML), else the best of some inverse kinematics solutions, the same at every
    call. The wanted place is at half of the arm's reach in front of the base and a fifth of it up.
    """
    if arm.settings.ready is not None:
        return np.array(arm.settings.ready, float)
    rng = np.random.default_rng(0)
    lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    drawn = rng.uniform(lower, upper, (200, arm.n))
    reach = float(np.linalg.norm(arm.tcp_poses(drawn)[0], axis=1).max())
    down = np.diag([1.0, -1.0, -1.0])  # the tool's z axis towards the floor
    best, score = np.array(0.5 * (lower + upper)), -np.inf
    for start in drawn[:_ATTEMPTS]:
        q = arm.solve_pose(np.array([0.5, 0.0, 0.2]) * reach, down, start, 1e-6, 100)
        position, rotation = arm.tcp_pose(q)
        margin = float(np.min(np.minimum(q - lower, upper - q)))
        reached = np.linalg.norm(position - np.array([0.5, 0.0, 0.2]) * reach) < 1e-4 and rotation[2, 2] < -0.999
        if not reached or margin < 0:  # arms of fewer than six joints: as they are drawn
            q, margin = start, 0.0
        jacobian = arm.tcp_jacobian(q) / np.array([[reach]] * 3 + [[1.0]] * 3)
        conditioning = float(np.linalg.svd(jacobian, compute_uv=False)[-1])
        value = min(conditioning, 0.3 * margin) + (10.0 if reached and margin > 0 else 0.0)
        if value > score:
            best, score = q, value
    return best
