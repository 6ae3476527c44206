"""Multiple shooting: a warm start of the coordinates that no sensor gives, such as the spring of a tip.

A softened stage leaves them on a trajectory that breaks the dynamics, with contact events at wrong times. Here each
interval of the grid is a segment of a simulation. It begins with the measured coordinates as the estimate has them, and
with the others where the segment before left them. The measured coordinates keep their acceleration; the others follow
the forward dynamics.
"""

from __future__ import annotations

from collections.abc import Collection

import mujoco
import numpy as np

from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.trajectory import motion

#: [s] Longest step of the simulation: a tenth of a radian of an oscillation at 80 Hz, as on a stiff contact.
_STEP = 2e-4


def shoot(problem: Problem, measured: Collection[str], q: Array, p: Array) -> Array:
    """Simulate the joints that no sensor gives.

    With u for their coordinates and r(a) for the inverse dynamics less the motors' torque, their accelerations are
    a_u = -M_uu^-1 r_u(a), where a has the measured accelerations, and 0 for u.

    Args:
        problem: scene, grid and motor torques.
        measured: names of the joints that sensors give.
        q: positions (n, nq); of joints without a sensor only the start of each recording counts.
        p: optimiser's parameters (c,).

    Returns:
        positions (n, nq); ``q`` where every joint has a sensor, or the simulation does not stay finite.
    """
    model = problem.scene.build(p)
    given = np.array([model.joint(k).name in measured for k in range(model.njnt)], bool)
    if given.all():
        return q
    given_q = np.repeat(given, np.diff(np.append(model.jnt_qposadr, model.nq)))
    free = np.flatnonzero(~given[model.dof_jntid])
    _, v, a = motion(problem.coordinates, problem.stencil, q)
    a[:, free] = 0.0
    out: Array = q.copy()
    data, durations = mujoco.MjData(model), np.diff(problem.grid)
    for begin, end in np.flatnonzero(~problem.stencil.interior).reshape(-1, 2).tolist():  # recordings
        rates = v[begin, free]
        for i in range(begin, end):
            data.qpos[:], data.qvel[:] = out[i], v[i]
            data.qvel[free] = rates
            if not _advance(model, data, free, a[i], problem.tau[i], float(durations[i])):
                return q
            out[i + 1, ~given_q], rates = data.qpos[~given_q], data.qvel[free]
    return out


def _advance(model: mujoco.MjModel, data: mujoco.MjData, free: Indices, a: Array, tau: Array, duration: float) -> bool:
    """Simulate one segment with accelerations ``a`` (nv,), those ``free`` aside; return whether it stays finite."""
    steps = int(np.ceil(duration / _STEP))
    step, mass = duration / steps, np.zeros((model.nv, model.nv))
    for k in range(steps):
        data.qacc[:] = a
        mujoco.mj_inverse(model, data)
        if k == 0:
            mujoco.mj_fullM(model, data, mass)
            compliance = np.linalg.inv(mass[np.ix_(free, free)])
        data.qvel += step * a
        data.qvel[free] += step * (compliance @ (tau - data.qfrc_inverse)[free])
        mujoco.mj_integratePos(model, data.qpos, data.qvel, step)
    return bool(np.all(np.isfinite(data.qpos)))
