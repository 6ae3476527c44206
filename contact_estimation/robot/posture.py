"""A start posture from which an arm can press downwards."""

from __future__ import annotations

import warnings

import numpy as np
import pinocchio as pin

from contact_estimation.robot.arm import Arm

#: Attempts from random postures; more changed the result's conditioning by less than a tenth on the shipped arms.
_ATTEMPTS = 24
#: [rad] Turns of the tool about the vertical, the next where one leads to no posture clear of singularities.
_YAWS = (0.0, 0.5 * np.pi, np.pi, -0.5 * np.pi)
#: Score of a posture in which the tool points down, and what it is more where singularities and limits are far.
_FOUND, _CLEAR = 10.0, 0.02


def ready_posture(arm: Arm) -> np.ndarray:
    """Joint positions (n,) [rad] with the tool pointing down in front of the arm, far from singularities and limits.

    The robot's own (``ready`` of its YAML), else the best of some inverse kinematics solutions, the same at every
    call. The wanted place is at half of the arm's reach in front of the base and a fifth of it up. Where none is found
    a warning tells so, and the posture is the best conditioned one of those drawn.
    """
    if arm.settings.ready is not None:
        return np.array(arm.settings.ready, float)
    rng = np.random.default_rng(0)
    lower, upper = arm.one_turn
    drawn = rng.uniform(lower, upper, (200, arm.n))
    reach = float(np.linalg.norm(arm.tcp_poses(drawn)[0], axis=1).max())
    best, score = np.array(0.5 * (lower + upper)), -np.inf
    for yaw in _YAWS:
        for start in drawn[:_ATTEMPTS]:
            q, value = _pointing_down(arm, reach, yaw, start)
            if value > score:
                best, score = q, value
        if score > _FOUND + _CLEAR:
            break
    if score < _FOUND and arm.n >= 6:
        warnings.warn(
            f"robot '{arm.name}': no posture was found in which the z axis of '{arm.tcp_frame}' points down "
            f"{reach / 2:.2f} m in front of the base; tasks begin elsewhere and may fail. Give 'ready' in its "
            "robot.yaml, or a 'tcp_frame' whose z axis leads out of the flange",
            stacklevel=2,
        )
    return best


def _pointing_down(arm: Arm, reach: float, yaw: float, start: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the posture (n,) [rad] that inverse kinematics finds from ``start`` and its score.

    The score is the distance to singularities and limits, and :data:`_FOUND` more where the tool points down at the
    wanted place. Where it does not, the posture is ``start``: arms of fewer than six joints begin as they are drawn.
    """
    lower, upper = arm.one_turn
    place = np.array([0.5, 0.0, 0.2]) * reach
    down = np.diag([1.0, -1.0, -1.0]) @ pin.exp3(np.array([0.0, 0.0, yaw]))  # the tool's z axis towards the floor
    q = arm.solve_pose(place, down, start, 1e-6, 100)
    q = np.where(arm.body.prismatic, q, lower + np.mod(q - lower, 2.0 * np.pi))
    position, rotation = arm.tcp_pose(q)
    margin = float(np.min(np.minimum(q - lower, upper - q)))
    found = margin > 0.0 and np.linalg.norm(position - place) < 1e-4 and rotation[2, 2] < -0.999
    if not found:
        q, margin = start, 0.0
    jacobian = arm.tcp_jacobian(q) / np.array([[reach]] * 3 + [[1.0]] * 3)
    conditioning = float(np.linalg.svd(jacobian, compute_uv=False)[-1])
    return q, min(conditioning, 0.3 * margin) + (_FOUND if found else 0.0)
