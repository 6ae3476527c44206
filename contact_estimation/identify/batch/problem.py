"""The optimisation problem: cost, gradient and Gauss-Newton Hessian over trajectory and parameters.

    min over Q, P of  sum_i w_d |dynamics_i|^2 + sum_i |s^_i - s_i|_*  + prior(P)        (paper 3, section III)

with "dynamics" either tau^ - u (inverse) or a^ - a (forward). Every weight is 1/std^2, times the worth of the time's
cell, so the cost is a chi-square and the Hessian yields intervals.
"""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.batch import norms, rotations
from contact_estimation.identify.batch.channels import TORQUE, Channel, Measurement, columns, resample
from contact_estimation.identify.batch.engine import Engine
from contact_estimation.identify.batch.linearisation import Linearisation
from contact_estimation.identify.batch.scene import Scene
from contact_estimation.identify.batch.trajectory import Coordinates, Stencil, chain, motion

_PARAMETER_STEP = 1e-5


@dataclasses.dataclass
class _SensorBlock:
    """One channel on the grid: its columns, values, per-sample weight and the slice of residuals it fills."""

    channel: Channel
    columns: np.ndarray
    values: np.ndarray
    part: slice


@dataclasses.dataclass(frozen=True)
class _Rows:
    """Some times of a trajectory: their indices, motion, motor torques, and differences to the neighbours."""

    times: np.ndarray | slice
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    before: np.ndarray
    after: np.ndarray


class Problem:
    """A scene, a time grid and measurements on it.

    Args:
        scene: model and parameters.
        grid: (n,) times [s].
        channels: how each measurement enters; a channel whose measurement is missing is left out. Where a torque
            channel is missing or has weight 0, nothing is asked of its joints' dynamics.
        measurements: raw samples by channel name.
        dynamics_std: per dof name or single number: standard deviation of the unexplained force [N, Nm] (inverse) or
            of the acceleration error [m/s^2, rad/s^2] (forward), for a cell of ``reference_step``. inf switches a
            dof's term off.
        reference_step: [s], cell length for which ``dynamics_std`` is meant.
        formulation: ``inverse`` or ``forward``.
        scheme: velocity differences, ``central`` or ``backward`` (the paper's).

    Raises:
        IdentificationError: no measurement matches a channel; wrong names or shapes; forward dynamics without torque.
    """

    def __init__(self, scene: Scene, grid: np.ndarray, channels: list[Channel], measurements: dict[str, Measurement],
                 dynamics_std: np.ndarray | float, reference_step: float = 0.005, formulation: str = "inverse",
                 scheme: str = "central", threads: int | None = None):
        self.scene, self.grid, self.engine = scene, np.asarray(grid, float), Engine(formulation, threads)
        model = scene.nominal
        self.coordinates, self.stencil = Coordinates(model), Stencil.of(self.grid, scheme)
        self.remote_distance, self._softening = 0.0, 1.0
        n, nv = len(self.grid), model.nv
        self.tau = np.zeros((n, nv))
        cell = np.gradient(self.grid)
        dynamics_std = np.broadcast_to(np.asarray(dynamics_std, float), (nv,))
        weights = [np.outer(cell / reference_step * self.stencil.interior, 1.0 / dynamics_std**2)]
        worths = [np.outer(self.stencil.interior, np.isfinite(dynamics_std))]
        scales, self._blocks, start = [np.full(nv, np.inf)], [], nv
        self.channels = [channel for channel in channels if channel.name in measurements]
        if not self.channels:
            raise IdentificationError(f"none of the channels {[c.name for c in channels]} has a measurement; measured: "
                                      f"{', '.join(sorted(measurements)) or 'nothing'}")
        for channel in channels:
            if channel.model == TORQUE and (channel.name not in measurements or channel.weight == 0):
                if formulation == "forward":
                    raise IdentificationError(f"forward dynamics need the torque of channel '{channel.name}'; measure "
                                              f"and weight it, or use the inverse formulation")
                weights[0][:, columns(model, channel)[0]] = 0.0
        for channel in self.channels:
            index, needs_motion = columns(model, channel)
            measurement = measurements[channel.name]
            if measurement.values.shape[1] != len(index):
                raise IdentificationError(
                    f"channel '{channel.name}' has {measurement.values.shape[1]} measured numbers, its "
                    f"targets {', '.join(channel.targets)} have {len(index)}"
                )
            values, worth = resample(measurement, self.grid, channel.model == "orientation")
            if channel.model == TORQUE:
                self.tau[:, index] = values
                weights[0][:, index] *= channel.weight * (worth > 0)[:, None]
                continue
            width = 3 if channel.model == "orientation" else len(index)
            if needs_motion:
                worth = worth * self.stencil.interior
            std = np.broadcast_to(np.asarray(channel.std, float), (width,))
            weights.append(np.outer(worth, channel.weight / std**2))
            worths.append(np.repeat(np.minimum(worth, 1.0)[:, None], width, axis=1) * (channel.weight > 0))
            scales.append(np.full(width, np.inf if channel.barrier is None else channel.barrier))
            self._blocks.append(_SensorBlock(channel, index, values, slice(start, start + width)))
            start += width
        self.weights, self.scales = np.concatenate(weights, axis=1), np.concatenate(scales)
        self.worth = np.concatenate(worths, axis=1)

    @property
    def size(self) -> tuple[int, int]:
        """(trajectory unknowns n nv, parameters c)."""
        return len(self.grid) * self.coordinates.nv, len(self.scene.parameters)

    def ease(self, remote_distance: float = 0.0, softening: float = 1.0) -> None:
        """Make the problem easier: contacts act from a distance [m] and the dynamics' std grows by a factor."""
        self.weights[:, :self.coordinates.nv] *= (self._softening / softening)**2
        self.remote_distance, self._softening = remote_distance, softening

    def residuals(self, q: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Residuals (n, m) in SI units: the dynamics' nv columns, then each channel's (see :meth:`parts`)."""
        model = self.scene.build(p, self.remote_distance)
        _, v, a = motion(self.coordinates, self.stencil, q)
        dynamics, sensors = self.engine.evaluate(model, q, v, a, self.tau)
        return np.concatenate([dynamics] + [self._sensed(block, sensors) for block in self._blocks], axis=1)

    def parts(self) -> dict[str, slice]:
        """Name -> columns of the residual matrix."""
        return {"dynamics": slice(0, self.coordinates.nv)} | {b.channel.name: b.part for b in self._blocks}

    def measured(self, name: str) -> np.ndarray:
        """A channel's values on the grid (n, m)."""
        return next(block.values for block in self._blocks if block.channel.name == name)

    def predicted(self, q: np.ndarray, p: np.ndarray, name: str) -> np.ndarray:
        """What the model predicts for a channel (n, m); for an orientation the quaternion."""
        block = next(block for block in self._blocks if block.channel.name == name)
        _, v, a = motion(self.coordinates, self.stencil, q)
        model = self.scene.build(p, self.remote_distance)
        return self.engine.evaluate(model, q, v, a, self.tau)[1][:, block.columns]

    def cost(self, q: np.ndarray, p: np.ndarray) -> float:
        """Total cost (a chi-square where norms are quadratic)."""
        return self.cost_of(self.residuals(q, p), p)

    def cost_of(self, residuals: np.ndarray, p: np.ndarray) -> float:
        """Cost of residuals that are already there, plus the prior."""
        return float(np.sum(self.weights * norms.evaluate(residuals, self.scales)[0]) + np.sum(self.prior(p)[0]**2))

    def costs(self, residuals: np.ndarray) -> dict[str, float]:
        """Cost of each part by name."""
        values = self.weights * norms.evaluate(residuals, self.scales)[0]
        return {name: float(values[:, part].sum()) for name, part in self.parts().items()}

    def linearise(self, q: np.ndarray, p: np.ndarray, free_q: bool = True, free_p: bool = True) -> Linearisation:
        """Residuals with their derivatives at (q, p); what is not free gets no columns."""
        everywhere = slice(None)
        residuals, by_q, by_p = self._differentiate(q, p, free_q, free_p, everywhere)
        return Linearisation(self, p, residuals, by_q, by_p, free_q, free_p)

    def renew(self, linearisation: Linearisation, q: np.ndarray, p: np.ndarray, times: np.ndarray, residuals) -> None:
        """Move a linearisation with a free trajectory to (q, p), whose ``residuals`` are given, and differentiate anew
        at some ``times`` (indices) only."""
        _, by_q, by_p = self._differentiate(q, p, True, linearisation.free_p, times)
        linearisation.move(p, residuals, times, by_q, by_p)

    def _differentiate(self, q, p, free_q, free_p, times):
        """Residuals and derivatives by trajectory and parameters, at ``times`` (an index or slice)."""
        model = self.scene.build(p, self.remote_distance)
        differences, v, a = motion(self.coordinates, self.stencil, q)
        here = _Rows(times, q[times], v[times], a[times], self.tau[times], differences[:-1][times],
                     differences[1:][times])
        residuals, sensors = self._at(model, here)
        shape = (*residuals.shape, 3 * self.coordinates.nv)
        by_q = self._by_trajectory(model, here, sensors) if free_q else np.zeros(shape)
        return residuals, by_q, self._by_parameters(here, p, residuals, free_p)

    def _at(self, model, here):
        dynamics, sensors = self.engine.evaluate(model, here.q, here.v, here.a, here.tau)
        sensed = [self._sensed(block, sensors, here.times) for block in self._blocks]
        return np.concatenate([dynamics] + sensed, axis=1), sensors

    def prior(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The parameters' residuals against their prior, and the derivative's diagonal, each (c,)."""
        inverse = 1.0 / self.scene.parameters.prior_std
        return (p - self.scene.parameters.nominal) * inverse, inverse

    def _sensed(self, block, sensors, times=slice(None)):
        predicted = sensors[:, block.columns]
        if block.channel.model == "orientation":
            return rotations.log(rotations.multiply(rotations.conjugate(block.values[times]), predicted))
        return predicted - block.values[times]

    def _by_trajectory(self, model, here, sensors):
        d = self.engine.differentiate(model, here.q, here.v, here.a, here.tau)
        by = [[d.dynamics_q], [d.dynamics_v], [d.dynamics_a]]
        for block in self._blocks:
            for rows, full in zip(by, (d.sensors_q, d.sensors_v, d.sensors_a)):
                part = full[:, block.columns]
                if block.channel.model == "orientation":
                    part = self._orientation_jacobian(block, sensors, here.times) @ part
                rows.append(part)
        return chain(self.coordinates, self.stencil.at(here.times), here.before, here.after,
                     *(np.concatenate(rows, axis=1) for rows in by))

    @staticmethod
    def _orientation_jacobian(block, sensors, times):
        inverse = rotations.conjugate(block.values[times])
        error = rotations.multiply(inverse, sensors[:, block.columns])
        product = np.stack(
            [rotations.multiply(inverse, np.broadcast_to(unit, inverse.shape)) for unit in np.eye(4)], axis=-1
        )
        return rotations.log_jacobian(error) @ product

    def _by_parameters(self, here, p, residuals, free):
        n, m = residuals.shape
        if not free:
            return np.zeros((n, m, 0))
        out = np.empty((n, m, len(p)))
        lower, upper = self.scene.parameters.lower, self.scene.parameters.upper
        for k in range(len(p)):
            step = _PARAMETER_STEP if p[k] + _PARAMETER_STEP <= upper[k] else -_PARAMETER_STEP
            moved = p.copy()
            moved[k] = np.clip(p[k] + step, lower[k], upper[k])
            model = self.scene.build(moved, self.remote_distance)
            out[:, :, k] = (self._at(model, here)[0] - residuals) / (moved[k] - p[k])
        return out


def acceleration_std(model: mujoco.MjModel, force_std: np.ndarray) -> np.ndarray:
    """Allowance for acceleration errors (nv,) that means the same as one for forces, by the mass matrix at rest."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mass = np.empty((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass)
    return np.sqrt(np.linalg.inv(mass)**2 @ force_std**2)
