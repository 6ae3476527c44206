"""A start for the trajectory, directly from sensors: encoders for joints, motion capture for free bodies."""

from __future__ import annotations

import mujoco
import numpy as np
import scipy.ndimage

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.channels import Channel
from contact_estimation.identify.batch.names import unknown
from contact_estimation.identify.batch.problem import Problem


def initial_trajectory(problem: Problem, p: Array, sources: dict[str, str], smooth: float = 0.01) -> Array:
    """Positions (n, nq) read off the sensors; coordinates without a source rest at the model's reference position.

    Args:
        problem: whose channels are read.
        p: optimiser's parameters (c,).
        sources: joint name -> channel name for a joint with an encoder; ``"position,orientation"`` channels for a
            free joint.
        smooth: standard deviation [s] of the Gaussian that takes the noise out before differences amplify it.

    Raises:
        IdentificationError: a joint or channel that does not exist.
    """
    model = problem.scene.build(p)
    q = np.tile(model.qpos0, (len(problem.grid), 1))
    known = {channel.name: channel for channel in problem.channels}
    for joint, source in sources.items():
        index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint)
        names = source.split(",")
        if index < 0:
            joints = [model.joint(k).name for k in range(model.njnt)]
            raise IdentificationError(f"key 'start': {unknown('joint', joint, joints)}")
        for name in names:
            if name not in known:
                raise IdentificationError(
                    f"key 'start', joint '{joint}': channel '{name}' does not exist or has no measurement; measured: "
                    f"{', '.join(known)}. Name one of these, or record '{name}'"
                )
        address = model.jnt_qposadr[index]
        if model.jnt_type[index] == mujoco.mjtJoint.mjJNT_FREE:
            q[:, address : address + 3] = _smoothed(problem.grid, problem.measured(names[0], p), smooth)
            turn = _smoothed(problem.grid, problem.measured(names[1], p), smooth)
            q[:, address + 3 : address + 7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
            continue
        column = _column(model, known[names[0]], index)
        q[:, address] = _smoothed(problem.grid, problem.measured(names[0], p)[:, column : column + 1], smooth)[:, 0]
    return q


def _column(model: mujoco.MjModel, channel: Channel, joint: int) -> int:
    for column, target in enumerate(channel.targets):
        sensor = model.sensor(target)
        if sensor.type[0] == mujoco.mjtSensor.mjSENS_JOINTPOS and sensor.objid[0] == joint:
            return column
    raise IdentificationError(
        f"channel '{channel.name}' has no joint-position sensor of joint '{model.joint(joint).name}'"
    )


def _smoothed(grid: Array, values: Array, width: float) -> Array:
    """Gaussian smoothing in time on a uniform fine grid, back on ``grid``."""
    step = float(np.min(np.diff(grid)))
    fine = np.arange(grid[0], grid[-1] + step, step)
    uniform = np.column_stack([np.interp(fine, grid, column) for column in values.T])
    if width > 0:
        uniform = scipy.ndimage.gaussian_filter1d(uniform, width / step, axis=0, mode="nearest")
    return np.column_stack([np.interp(grid, fine, column) for column in uniform.T])
