"""MuJoCo as the engine: dynamics and sensors along a whole trajectory, with derivatives, on several threads.

Two formulations (paper 3, section III):

- inverse dynamics, (tau, s) = inv(q, v, a): the residual is the force the model cannot explain, tau - u;
- forward dynamics, (a^, s) = fwd(q, v, u): the residual is the acceleration error a^ - a.

Derivatives of the first are `mjd_inverseFD` (finite differences inside the engine, which skips the stages a
perturbation does not touch). Those of the second follow from the first by the implicit function theorem at the
predicted acceleration, da^/dq = -(dtau/da)^-1 dtau/dq, exact and ten times cheaper than differencing forward dynamics.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os

import mujoco
import numpy as np

from contact_estimation.exceptions import IdentificationError

FORMULATIONS = ("inverse", "forward")
_EPSILON = 1e-6


@dataclasses.dataclass
class Derivatives:
    """Derivatives along the trajectory, (n, outputs, nv): of the dynamics residual and of the sensors."""

    dynamics_q: np.ndarray
    dynamics_v: np.ndarray
    dynamics_a: np.ndarray
    sensors_q: np.ndarray
    sensors_v: np.ndarray
    sensors_a: np.ndarray


class Engine:
    """Evaluates one formulation along trajectories.

    Args:
        formulation: ``"inverse"`` or ``"forward"``.
        threads: threads of the derivative pass; None takes every core this process may use.
    """

    def __init__(self, formulation: str = "inverse", threads: int | None = None):
        if formulation not in FORMULATIONS:
            raise IdentificationError(f"formulation '{formulation}' is not known; use one of {', '.join(FORMULATIONS)}")
        self.formulation = formulation
        self.threads = threads or len(os.sched_getaffinity(0))
        self._pool = concurrent.futures.ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def evaluate(self, model: mujoco.MjModel, q, v, a, tau):
        """Dynamics residual (n, nv) [N, Nm or m/s^2, rad/s^2] and sensor readings (n, nsensordata).

        Args:
            q, v, a: (n, nq), (n, nv), (n, nv) along the trajectory.
            tau: (n, nv) generalised forces applied by the motors, 0 for unactuated coordinates.
        """
        residual, sensors = np.empty((len(q), model.nv)), np.empty((len(q), model.nsensordata))
        step = self._inverse if self.formulation == "inverse" else self._forward
        data = mujoco.MjData(model)
        for i in range(len(q)):
            step(model, data, q[i], v[i], a[i], tau[i], residual[i])
            sensors[i] = data.sensordata
        return residual, sensors

    def differentiate(self, model: mujoco.MjModel, q, v, a, tau) -> Derivatives:
        """Derivatives of :meth:`evaluate` by position step, velocity and acceleration."""
        n, nv, ns = len(q), model.nv, model.nsensordata
        forces, sensors = np.empty((3, n, nv, nv)), np.empty((3, n, nv, ns))
        chunks = np.array_split(np.arange(n), self.threads)
        work = [(model, q, v, a, tau, forces, sensors, chunk) for chunk in chunks if len(chunk)]
        if self._pool is None:
            self._differentiate_chunk(*work[0])
        else:
            list(self._pool.map(lambda args: self._differentiate_chunk(*args), work))
        by = [forces[k].swapaxes(1, 2) for k in range(3)]  # the engine's outputs are transposed
        sensed = [sensors[k].swapaxes(1, 2) for k in range(3)]
        if self.formulation == "inverse":
            return Derivatives(*by, *sensed)
        inverse_mass = np.linalg.inv(by[2])
        predicted_q, predicted_v = -inverse_mass @ by[0], -inverse_mass @ by[1]
        minus_identity = np.broadcast_to(-np.eye(nv), (n, nv, nv))
        return Derivatives(predicted_q, predicted_v, minus_identity, sensed[0] + sensed[2] @ predicted_q,
                           sensed[1] + sensed[2] @ predicted_v, np.zeros_like(sensed[2]))

    def _differentiate_chunk(self, model, q, v, a, tau, forces, sensors, chunk):
        data, scratch = mujoco.MjData(model), np.empty(model.nv)
        forward = self.formulation == "forward"
        for i in chunk:
            if forward:
                self._forward(model, data, q[i], v[i], a[i], tau[i], scratch)
                data.qfrc_applied[:] = 0.0
            else:
                data.qpos[:], data.qvel[:], data.qacc[:] = q[i], v[i], a[i]
            mujoco.mjd_inverseFD(model, data, _EPSILON, 0, forces[0, i], forces[1, i], forces[2, i],
                                 sensors[0, i], sensors[1, i], sensors[2, i], None)

    @staticmethod
    def _inverse(model, data, q, v, a, tau, out):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(model, data)
        np.subtract(data.qfrc_inverse, tau, out=out)

    @staticmethod
    def _forward(model, data, q, v, a, tau, out):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
        mujoco.mj_forward(model, data)
        np.subtract(data.qacc, a, out=out)


def contact_forces(model: mujoco.MjModel, q, v, a, bodies: tuple[str, str] | None = None) -> np.ndarray:
    """Total contact force (n, 3) [N], world axes, along a trajectory.

    Args:
        bodies: (on, by): only contacts between geoms of these two bodies, as force on the first; None sums every
            contact as force on the later body of each pair.
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
            total[i] += on_second if wanted is None or pair[1] == wanted[0] else -on_second
    return total
