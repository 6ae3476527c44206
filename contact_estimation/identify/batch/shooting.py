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

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.trajectory import motion

#: [s] Longest step of the simulation: a tenth of a radian of an oscillation at 80 Hz, as on a stiff contact.
_STEP = 2e-4
#: [kg, kg m^2] Rotor inertia with which coordinates keep their acceleration, whatever acts on them.
_HEAVY = 1e6


def shoot(problem: Problem, measured: Collection[str], q: Array, p: Array) -> Array:
    """Simulate the joints that no sensor gives.

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
    data, out = mujoco.MjData(model), q.copy()
    widths = np.diff(np.append(model.jnt_qposadr, model.nq))
    given_q, given_v = np.repeat(given, widths), given[model.dof_jntid]
    model.dof_armature[given_v] += _HEAVY
    _, v, a = motion(problem.coordinates, problem.stencil, q)
    push = problem.tau + _HEAVY * np.where(given_v, a, 0.0)
    durations = np.diff(problem.grid)
    for begin, end in np.flatnonzero(~problem.stencil.interior).reshape(-1, 2).tolist():  # recordings
        data.qpos[:], data.qvel[:] = q[begin], v[begin]
        for i in range(begin, end):
            data.qpos[given_q], data.qvel[given_v] = q[i, given_q], v[i, given_v]
            data.qfrc_applied[:] = push[i]
            steps = int(np.ceil(durations[i] / _STEP))
            model.opt.timestep = durations[i] / steps
            mujoco.mj_step(model, data, steps)
            out[i + 1, ~given_q] = data.qpos[~given_q]
    return out if np.all(np.isfinite(out)) else q
