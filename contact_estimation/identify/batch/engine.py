"""MuJoCo as the engine: dynamics and sensors along a whole trajectory, with derivatives, on several threads.

Two formulations (paper 3, section III):

- inverse dynamics, (tau, s) = inv(q, v, a): the residual is the force that the model does not explain, tau - u;
- forward dynamics, (a^, s) = fwd(q, v, u): the residual is the acceleration error a^ - a.

Derivatives of the first are `mjd_inverseFD` (finite differences inside the engine, which skips the stages a
perturbation does not touch). Those of the second follow from the first by the implicit function theorem at the
predicted acceleration: da^/dq = -(dtau/da)^-1 dtau/dq. It is exact, and ten times cheaper than finite differences.
"""

from __future__ import annotations

import concurrent.futures
import os
from typing import NamedTuple

import mujoco
import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array, Indices

FORMULATIONS = ("inverse", "forward")
_EPSILON = 1e-6


class Derivatives(NamedTuple):
    """Derivatives along the trajectory of the dynamics residual (n, nv, nv) and of the sensor data (n, ns, nv).

    The suffix says by what: ``_q`` a position step, ``_v`` the velocity, ``_a`` the acceleration.
    """

    dynamics_q: Array
    dynamics_v: Array
    dynamics_a: Array
    sensors_q: Array
    sensors_v: Array
    sensors_a: Array


class Engine:
    """Evaluates one formulation along trajectories.

    Args:
        formulation: ``"inverse"`` or ``"forward"``.
        threads: threads of the derivative pass; None takes every core this process may use.
    """

    def __init__(self, formulation: str = "inverse", threads: int | None = None) -> None:
        if formulation not in FORMULATIONS:
            raise IdentificationError(f"formulation '{formulation}' is not known; use one of {', '.join(FORMULATIONS)}")
        self.formulation = formulation
        self.threads = threads or len(os.sched_getaffinity(0))
        self._pool = concurrent.futures.ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def evaluate(self, model: mujoco.MjModel, q: Array, v: Array, a: Array, tau: Array) -> tuple[Array, Array]:
        """Dynamics residual (n, nv) [N, Nm or m/s^2, rad/s^2] and sensor readings (n, nsensordata).

        Args:
            model: compiled scene.
            q: positions (n, nq).
            v: velocities (n, nv).
            a: accelerations (n, nv).
            tau: (n, nv) generalised forces applied by the motors, 0 for unactuated coordinates.
        """
        residual, sensors = np.empty((len(q), model.nv)), np.empty((len(q), model.nsensordata))
        data = mujoco.MjData(model)
        if self.formulation == "inverse":
            run, given, inputs, found, offset = mujoco.mj_inverse, data.qacc, a, data.qfrc_inverse, tau
        else:
            run, given, inputs, found, offset = mujoco.mj_forward, data.qfrc_applied, tau, data.qacc, a
        # The hot loop of a solution: it looks up nothing and computes nothing else.
        position, velocity, sensed = data.qpos, data.qvel, data.sensordata
        for q_i, v_i, given_i, residual_i, sensors_i in zip(q, v, inputs, residual, sensors):
            position[:], velocity[:], given[:] = q_i, v_i, given_i
            run(model, data)
            residual_i[:], sensors_i[:] = found, sensed
        residual -= offset
        return residual, sensors

    def differentiate(self, model: mujoco.MjModel, q: Array, v: Array, a: Array, tau: Array) -> Derivatives:
        """Differentiate :meth:`evaluate` by position step, velocity and acceleration; arguments as there."""
        n, nv, ns = len(q), model.nv, model.nsensordata
        forces, sensors = np.empty((3, n, nv, nv)), np.empty((3, n, nv, ns))

        def work(chunk: Indices) -> None:
            data = mujoco.MjData(model)
            for i in chunk:
                if self.formulation == "forward":
                    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q[i], v[i], tau[i]
                    mujoco.mj_forward(model, data)
                    data.qfrc_applied[:] = 0.0
                else:
                    data.qpos[:], data.qvel[:], data.qacc[:] = q[i], v[i], a[i]
                out = *(forces[k, i] for k in range(3)), *(sensors[k, i] for k in range(3))
                mujoco.mjd_inverseFD(model, data, _EPSILON, 0, *out, None)

        chunks = [chunk for chunk in np.array_split(np.arange(n), self.threads) if len(chunk)]
        list(map(work, chunks) if self._pool is None else self._pool.map(work, chunks))
        by = [forces[k].swapaxes(1, 2) for k in range(3)]  # the engine's outputs are transposed
        sensed = [sensors[k].swapaxes(1, 2) for k in range(3)]
        if self.formulation == "inverse":
            return Derivatives(*by, *sensed)
        inverse_mass = np.linalg.inv(by[2])
        predicted_q, predicted_v = -inverse_mass @ by[0], -inverse_mass @ by[1]
        minus_identity = np.broadcast_to(-np.eye(nv), (n, nv, nv))
        sensed_q, sensed_v = sensed[0] + sensed[2] @ predicted_q, sensed[1] + sensed[2] @ predicted_v
        return Derivatives(predicted_q, predicted_v, minus_identity, sensed_q, sensed_v, np.zeros_like(sensed[2]))


def contact_forces(model: mujoco.MjModel, q: Array, v: Array, a: Array, bodies: tuple[str, str] | None = None) -> Array:
    """Total contact force (n, 3) [N], world axes, along a trajectory.

    Args:
        model: compiled scene.
        q: positions (n, nq).
        v: velocities (n, nv).
        a: accelerations (n, nv).
        bodies: (on, by): only contacts between geoms of these two bodies, as force on the first; None sums every
            contact as force on the body of each pair that stands later in the model (never the world).
    """
    total = np.zeros((len(q), 3))
    data, local = mujoco.MjData(model), np.empty(6)
    wanted = None if bodies is None else [model.body(name).id for name in bodies]
    for i in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[i], v[i], a[i]
        mujoco.mj_inverse(model, data)
        for c in range(data.ncon):
            contact = data.contact[c]
            pair = [model.geom_bodyid[g] for g in contact.geom]
            if wanted is not None and sorted(pair) != sorted(wanted):
                continue
            mujoco.mj_contactForce(model, data, c, local)
            on_second = contact.frame.reshape(3, 3).T @ local[:3]  # the contact's x axis points from geom 1 to geom 2
            on = max(pair) if wanted is None else wanted[0]
            total[i] += on_second if pair[1] == on else -on_second  # MuJoCo orders the two geoms by their shapes
    return total


def contact_depths(model: mujoco.MjModel, q: Array) -> Array:
    """Depths (n, npair) [m] of the contact pairs along positions q (n, nq); 0 where they do not touch."""
    depths, data = np.zeros((len(q), model.npair)), mujoco.MjData(model)
    pairs = np.sort(np.stack([model.pair_geom1, model.pair_geom2]), axis=0)  # (2, npair)
    for i in range(len(q)):
        data.qpos[:] = q[i]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        for geoms, distance in zip(np.sort(data.contact.geom, axis=1), data.contact.dist):
            touching = np.all(pairs == geoms[:, None], axis=0)
            depths[i, touching] = np.maximum(depths[i, touching], -distance)
    return depths
