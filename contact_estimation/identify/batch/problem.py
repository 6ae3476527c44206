"""The optimisation problem: cost, gradient and Gauss-Newton Hessian over trajectory and parameters.

    min over Q, P of  sum_i w_d |dynamics_i|^2 + sum_i |s^_i - s_i|_*  + prior(P)        (paper 3, section III)

with "dynamics" either tau^ - u (inverse) or a^ - a (forward). Every weight is 1/std^2 times the number of samples in
the time's window bin. The cost is therefore a chi-square, and the Hessian yields intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.batch import norms, rotations
from contact_estimation.identify.batch.channels import TORQUE, Channel, Measurement, columns, resample
from contact_estimation.identify.batch.engine import Engine, contact_depths
from contact_estimation.identify.batch.linearisation import Linearisation
from contact_estimation.identify.batch.parameters import CHANNEL_KINDS, ChannelParameter
from contact_estimation.identify.batch.scene import Scene
from contact_estimation.identify.batch.trajectory import Coordinates, Stencil, chain, motion

_PARAMETER_STEP = 1e-5  # difference of an optimiser's parameter
#: Residual [standard deviations] from which its cost grows linearly: outliers, and cells in which a contact begins.
_OUTLIER = 4.0
#: Standard deviation [s] of the Gaussian that smooths a channel for its slope. Noise in the slope would look like
#: information on the delay, because the trajectory follows every smooth slope.
_SMOOTHING = 5e-3
_ASIDE = (1e-5, -1e-5)  # delays [s] that are differenced
_EVERYWHERE = slice(None)
Times = Indices | slice


class Setup(NamedTuple):
    """How a problem is posed."""

    formulation: str = "inverse"  # or "forward"
    scheme: str = "central"  # velocity differences, or "backward" (the paper's)
    reference_step: float = 0.005  # cell length for which the dynamics' std is meant [s]
    threads: int | None = None  # of the derivative pass; None takes every core


class _SensorBlock(NamedTuple):
    """One channel on the grid."""

    channel: Channel
    columns: Indices  # of the sensor data, or of the degrees of freedom for a torque
    raw: Measurement
    values: Array  # (n, m)
    part: slice  # of the residuals it fills; empty for a torque


class _Correction(NamedTuple):
    """What a channel does to the truth: measured(t) = gain true(t - delay) + bias."""

    delay: float = 0.0
    gain: float = 1.0
    bias: Array | float = 0.0


class _Rows(NamedTuple):
    """Some times of a trajectory."""

    times: Times
    q: Array
    v: Array
    a: Array
    tau: Array  # motor torques
    before: Array  # differences to the neighbours
    after: Array


class Problem:
    """A scene, a time grid and measurements on it.

    Args:
        scene: model and parameters.
        grid: (n,) times [s]; of several recordings a sequence of them, on one time axis and with gaps between.
        channels: how each measurement enters; a channel whose measurement is missing is left out. Where a torque
            channel is missing or has weight 0, nothing is asked of its joints' dynamics.
        measurements: raw samples by channel name.
        dynamics_std: per dof (nv,) or single number: standard deviation of the unexplained force [N, Nm] (inverse) or
            of the acceleration error [m/s^2, rad/s^2] (forward), for a cell of the reference step. inf switches a
            dof's term off.
        setup: formulation and differences.

    Raises:
        IdentificationError: no measurement matches a channel; wrong names or shapes; forward dynamics without torque.
    """

    def __init__(
        self,
        scene: Scene,
        grid: Array | Sequence[Array],
        channels: Sequence[Channel],
        measurements: Mapping[str, Measurement],
        dynamics_std: Array | float,
        setup: Setup | None = None,
    ) -> None:
        setup = setup or Setup()
        self._made_of = channels, measurements, dynamics_std, setup
        parts = [grid] if isinstance(grid, np.ndarray) else list(grid)
        self.scene, self.grid = scene, np.concatenate(parts, dtype=float)
        self._breaks = np.cumsum([len(part) for part in parts])[:-1].tolist()
        self.engine = Engine(setup.formulation, setup.threads)
        self.coordinates = Coordinates(scene.nominal)
        self.stencil = Stencil.of(self.grid, setup.scheme, self._breaks)
        self.remote_distance, self._softening = 0.0, 1.0
        n, nv = len(self.grid), self.coordinates.nv
        self.tau = np.zeros((n, nv))
        std = np.broadcast_to(np.asarray(dynamics_std, float), (nv,))
        spacing = np.concatenate([np.gradient(part) for part in parts])
        cell = spacing / setup.reference_step * self.stencil.interior
        self._blocks: list[_SensorBlock] = []
        self._torques: list[_SensorBlock] = []
        self._shifted: dict[tuple[str, int], tuple[Array, Array]] = {}
        self.weights = np.outer(cell, 1.0 / std**2)  # (n, m), grows by every channel
        self.worth = np.outer(self.stencil.interior, np.isfinite(std)).astype(float)  # (n, m)
        self.scales = np.full(nv, np.inf)  # of the barriers (m,)
        self.limits = np.full(nv, np.inf)  # of Huber's norm (m,)
        self.channels = [channel for channel in channels if channel.name in measurements]
        if not self.channels:
            raise IdentificationError(
                f"none of the channels {[c.name for c in channels]} has a measurement; measured: "
                f"{', '.join(sorted(measurements)) or 'nothing'}"
            )
        for channel in channels:
            if channel.model == TORQUE and (channel.name not in measurements or channel.weight == 0):
                if setup.formulation == "forward":
                    raise IdentificationError(
                        f"forward dynamics need the torque of channel '{channel.name}'; measure "
                        f"and weight it, or use the inverse formulation"
                    )
                self.weights[:, columns(scene.nominal, channel)[0]] = 0.0
        for channel in self.channels:
            self._add(channel, measurements[channel.name])
        for parameter, _, _ in scene.parameters.of_channels(scene.parameters.nominal):
            self._check(parameter)

    def _check(self, parameter: ChannelParameter) -> None:
        """Refuse a channel's parameter that has no channel, or not a number for each of its columns."""
        blocks = {block.channel.name: block for block in (*self._blocks, *self._torques)}
        for name in parameter.channels:
            if name not in blocks:
                raise IdentificationError(
                    f"parameter '{parameter.name}' belongs to channel '{name}', which has no measurement; measured: "
                    f"{', '.join(blocks)}"
                )
            turns = blocks[name].channel.model == "orientation"
            if blocks[name].channel.model == TORQUE and self.engine.formulation == "forward":
                raise IdentificationError(
                    f"parameter '{parameter.name}' belongs to the torque channel '{name}', which the forward "
                    "formulation takes as it is; use the inverse formulation"
                )
            wanted = len(blocks[name].columns) if parameter.kind == "bias" else 1
            if parameter.size != wanted or (turns and parameter.kind != "delay"):
                raise IdentificationError(
                    f"parameter '{parameter.name}': a {parameter.kind} of channel '{name}' is "
                    f"{'not supported for an orientation' if turns else f'{wanted} numbers'}, given {parameter.size}"
                )

    def _add(self, channel: Channel, measurement: Measurement) -> None:
        """Put a channel on the grid and into the cost."""
        index, needs_motion = columns(self.scene.nominal, channel)
        if measurement.values.shape[1] != len(index):
            raise IdentificationError(
                f"channel '{channel.name}' has {measurement.values.shape[1]} measured numbers, its "
                f"targets {', '.join(channel.targets)} have {len(index)}"
            )
        values, worth = self._resample(channel, measurement)
        if channel.model == TORQUE:
            self.tau[:, index] = values
            self._torques.append(_SensorBlock(channel, index, measurement, values, slice(0, 0)))
            self.weights[:, index] *= channel.weight * (worth > 0)[:, None]
            return
        width = 3 if channel.model == "orientation" else len(index)
        if needs_motion:
            worth = worth * self.stencil.interior
        std = np.broadcast_to(np.asarray(channel.std, float), (width,))
        used = np.repeat(np.minimum(worth, 1.0)[:, None], width, axis=1) * (channel.weight > 0)
        start = len(self.scales)
        self.weights = np.hstack([self.weights, np.outer(worth, channel.weight / std**2)])
        self.worth = np.hstack([self.worth, used])
        self.scales = np.append(self.scales, np.full(width, np.inf if channel.barrier is None else channel.barrier))
        self.limits = np.append(self.limits, _OUTLIER * std)
        self._blocks.append(_SensorBlock(channel, index, measurement, values, slice(start, start + width)))

    def _resample(self, channel: Channel, measurement: Measurement) -> tuple[Array, Array]:
        """Values and multiplicity; a cell counts only if it holds samples however much the channel may be delayed."""
        turns = channel.model == "orientation"
        values, worth = resample(measurement, self.grid, turns, self._breaks)
        for parameter, _, _ in self.scene.parameters.of_channels(self.scene.parameters.nominal):
            if parameter.kind == "delay" and channel.name in parameter.channels:
                for delay in (*parameter.min_value, *parameter.max_value):
                    late = resample(measurement.earlier(delay), self.grid, turns, self._breaks)
                    worth = worth * (late[1] > 0)
        return values, worth

    @property
    def size(self) -> tuple[int, int]:
        """(trajectory unknowns n nv, parameters c)."""
        return len(self.grid) * self.coordinates.nv, len(self.scene.parameters)

    def every_second(self) -> tuple[Problem, Indices]:
        """Return the problem on a grid without every second time, and the indices (m,) of the times it keeps."""
        parts = [part[::2] for part in np.split(np.arange(len(self.grid)), self._breaks)]
        return Problem(self.scene, [self.grid[part] for part in parts], *self._made_of), np.concatenate(parts)

    def ease(self, remote_distance: float = 0.0, softening: float = 1.0) -> None:
        """Make the problem easier: contacts act from a distance [m] and the dynamics' std grows by a factor."""
        self.weights[:, : self.coordinates.nv] *= (self._softening / softening) ** 2
        self.remote_distance, self._softening = remote_distance, softening

    def residuals(self, q: Array, p: Array) -> Array:
        """Residuals (n, m) in SI units: the dynamics' nv columns, then each channel's (see :meth:`parts`)."""
        return self._at(self._model(p), self._rows(q, p), p)[0]

    def parts(self) -> dict[str, slice]:
        """Name -> columns of the residual matrix."""
        return {"dynamics": slice(0, self.coordinates.nv)} | {b.channel.name: b.part for b in self._blocks}

    def _block(self, name: str) -> _SensorBlock:
        return next(block for block in self._blocks if block.channel.name == name)

    def measured(self, name: str, p: Array | None = None) -> Array:
        """Return a channel's values on the grid (n, m), with ``p`` those that its delay, gain and bias leave."""
        block = self._block(name)
        if p is None:
            return block.values
        correction = self._correction(block, p)
        return np.asarray((self._delayed(block, correction.delay) - correction.bias) / correction.gain)

    def predicted(self, q: Array, p: Array, name: str) -> Array:
        """Return what the model predicts for a channel (n, m), gain and bias aside; a quaternion for an orientation."""
        return self._at(self._model(p), self._rows(q, p), p)[1][:, self._block(name).columns]

    def cost(self, q: Array, p: Array) -> float:
        """Total cost (a chi-square where norms are quadratic)."""
        return self.cost_of(self.residuals(q, p), p)

    def cost_of(self, residuals: Array, p: Array) -> float:
        """Cost of residuals that are already there, plus the prior."""
        return float(
            np.sum(self.weights * norms.evaluate(residuals, self.scales, self.limits)[0])
            + np.sum(self.prior(p)[0] ** 2)
        )

    def costs(self, residuals: Array) -> dict[str, float]:
        """Cost of each part by name."""
        values = self.weights * norms.evaluate(residuals, self.scales, self.limits)[0]
        return {name: float(values[:, part].sum()) for name, part in self.parts().items()}

    def prior(self, p: Array) -> tuple[Array, Array]:
        """Return the parameters' residuals against their prior, and the derivative's diagonal, each (c,)."""
        inverse = 1.0 / self.scene.parameters.prior_std
        return (p - self.scene.parameters.nominal) * inverse, inverse

    def linearise(self, q: Array, p: Array, free_q: bool = True, free_p: bool = True) -> Linearisation:
        """Residuals with their derivatives at (q, p); what is not free gets no columns."""
        here, model = self._rows(q, p), self._model(p)
        residuals, sensors = self._at(model, here, p)
        by_q = self._by_trajectory(model, here, sensors, p) if free_q else None
        by_p = self._by_parameters(here, p, residuals, sensors) if free_p else None
        return Linearisation(self, p, residuals, by_q, by_p)

    def renew(self, linearisation: Linearisation, q: Array, p: Array, times: Indices, residuals: Array) -> None:
        """Move a linearisation with a free trajectory and differentiate anew at some times only.

        Args:
            linearisation: what moves.
            q: new positions (n, nq).
            p: new parameters (c,).
            times: indices that are differentiated.
            residuals: at the new point (n, m).
        """
        here, model = self._rows(q, p, times), self._model(p)
        some, sensors = self._at(model, here, p)
        by_p = self._by_parameters(here, p, some, sensors) if linearisation.free_p else None
        linearisation.move(p, residuals, times, self._by_trajectory(model, here, sensors, p), by_p)

    def _model(self, p: Array) -> mujoco.MjModel:
        return self.scene.build(p, self.remote_distance)

    def _rows(self, q: Array, p: Array, times: Times = _EVERYWHERE) -> _Rows:
        differences, v, a = motion(self.coordinates, self.stencil, q)
        parts = (part[times] for part in (q, v, a, self._torque(p), differences[:-1], differences[1:]))
        return _Rows(times, *parts)

    def _torque(self, p: Array) -> Array:
        """Motor torques (n, nv) from those measured."""
        tau: Array = self.tau.copy()
        for block in self._torques:
            correction = self._correction(block, p)
            tau[:, block.columns] = (self._delayed(block, correction.delay) - correction.bias) / correction.gain
        return tau

    def _correction(self, block: _SensorBlock, p: Array) -> _Correction:
        found = {
            parameter.kind: value
            for parameter, value, _ in self.scene.parameters.of_channels(p)
            if block.channel.name in parameter.channels
        }
        delay, gain = (
            float(found[kind][0]) if kind in found else start for kind, start in (("delay", 0.0), ("gain", 1.0))
        )
        return _Correction(delay, gain, found.get("bias", 0.0))

    def _delayed(self, block: _SensorBlock, delay: float, beyond: float = 0.0) -> Array:
        """Values (n, m), on the grid, of a channel whose clock is late by ``delay + beyond`` [s].

        The samples move by whole periods and along their slope for the rest. Interpolation by a part of a period
        would average the noise, and the cost would prefer it.
        """
        period = 1.0 / block.raw.rate
        whole = round(delay / period)
        rest = delay - whole * period + beyond
        if whole == 0 and rest == 0.0:
            return block.values
        key = block.channel.name, whole
        if key not in self._shifted:
            if len(self._shifted) > 32:  # an optimum is surrounded by few periods
                self._shifted.clear()
            turns = block.channel.model == "orientation"
            moved = block.raw.earlier(whole * period)
            slope = moved.slope(max(_SMOOTHING, 2.0 * period), turns)
            at, rising = (
                resample(each, self.grid, quaternion, self._breaks)[0]
                for each, quaternion in ((moved, turns), (slope, False))
            )
            self._shifted[key] = at, rising
        at, rising = self._shifted[key]
        values = at + rest * rising
        turns = block.channel.model == "orientation"
        return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True) if turns else values)

    def _at(self, model: mujoco.MjModel, here: _Rows, p: Array) -> tuple[Array, Array]:
        """Residuals and sensor readings."""
        dynamics, sensors = self.engine.evaluate(model, here.q, here.v, here.a, here.tau)
        sensed = [self._sensed(block, sensors, here.times, self._correction(block, p)) for block in self._blocks]
        return np.concatenate([dynamics, *sensed], axis=1), sensors

    def _sensed(
        self, block: _SensorBlock, sensors: Array, times: Times, correction: _Correction, beyond: float = 0.0
    ) -> Array:
        predicted, measured = sensors[:, block.columns], self._delayed(block, correction.delay, beyond)[times]
        if block.channel.model == "orientation":
            return rotations.log(rotations.multiply(rotations.conjugate(measured), predicted))
        return correction.gain * predicted + correction.bias - measured

    def _by_trajectory(self, model: mujoco.MjModel, here: _Rows, sensors: Array, p: Array) -> Array:
        d = self.engine.differentiate(model, here.q, here.v, here.a, here.tau)
        by = [[d.dynamics_q], [d.dynamics_v], [d.dynamics_a]]
        for block in self._blocks:
            turns, correction = block.channel.model == "orientation", self._correction(block, p)
            measured = self._delayed(block, correction.delay)[here.times]
            factor = self._orientation_jacobian(measured, sensors[:, block.columns]) if turns else None
            for rows, full in zip(by, (d.sensors_q, d.sensors_v, d.sensors_a)):
                part = full[:, block.columns]
                rows.append(correction.gain * part if factor is None else factor @ part)
        stacked = (np.concatenate(rows, axis=1) for rows in by)
        return chain(self.coordinates, self.stencil.at(here.times), (here.before, here.after), *stacked)

    @staticmethod
    def _orientation_jacobian(measured: Array, predicted: Array) -> Array:
        """Find the derivative (n, 3, 4) of the error's rotation vector by the predicted quaternion."""
        inverse = rotations.conjugate(measured)
        error = rotations.multiply(inverse, predicted)
        units = [rotations.multiply(inverse, np.broadcast_to(unit, inverse.shape)) for unit in np.eye(4)]
        return rotations.log_jacobian(error) @ np.stack(units, axis=-1)

    def _by_parameters(self, here: _Rows, p: Array, residuals: Array, sensors: Array) -> Array:
        out = np.zeros((*residuals.shape, len(p)))
        lower, upper = self.scene.parameters.lower, self.scene.parameters.upper
        of_sensors = set()
        for parameter, _, first in self.scene.parameters.of_channels(p):
            for k in range(parameter.size):
                of_sensors.add(first + k)
                for block in (*self._blocks, *self._torques):
                    if block.channel.name in parameter.channels:
                        column = self._by_sensor(block, parameter.kind, k, here, sensors, self._correction(block, p))
                        out[:, :, first + k] += column * parameter.scale[k]
        for k in set(range(len(p))) - of_sensors:
            step = _PARAMETER_STEP if p[k] + _PARAMETER_STEP <= upper[k] else -_PARAMETER_STEP
            moved = p.copy()
            moved[k] = np.clip(p[k] + step, lower[k], upper[k])
            out[:, :, k] = (self._at(self._model(moved), here, p)[0] - residuals) / (moved[k] - p[k])
        return out

    def by_sensors(self, q: Array, p: Array) -> tuple[list[tuple[str, str, int]], Array]:
        """Differentiate the residuals by what channels may do to the truth, whether or not it is a parameter.

        Args:
            q: positions (n, nq).
            p: optimiser's parameters (c,).

        Returns:
            (channel, kind, number) of each of e columns, and the columns (n, m, e), per s, per 1 and per unit.
        """
        here, model = self._rows(q, p), self._model(p)
        sensors = self._at(model, here, p)[1]
        inverse = self.engine.formulation == "inverse"
        names, columns = [], []
        for block in (*self._blocks, *(self._torques if inverse else ())):
            kinds = ["delay"] if block.channel.model == "orientation" else list(CHANNEL_KINDS)
            for kind in kinds if block.channel.weight > 0 else []:
                for k in range(len(block.columns) if kind == "bias" else 1):
                    names.append((block.channel.name, kind, k))
                    columns.append(self._by_sensor(block, kind, k, here, sensors, self._correction(block, p)))
        return names, np.stack(columns, axis=2)

    def by_powers(self, q: Array, p: Array) -> tuple[list[str], Array]:
        """Differentiate the residuals by the power a of the depth in each contact's spring force, at a = 1.

        A force k d (d / d_0)^(a - 1) has the derivative by ln k, times ln(d / d_0) with the mean depth d_0.

        Args:
            q: positions (n, nq).
            p: optimiser's parameters (c,).

        Returns:
            names of the e contact pairs that touch somewhere, and the columns (n, m, e).
        """
        here, model = self._rows(q, p), self._model(p)
        residuals, depths = self._at(model, here, p)[0], contact_depths(model, here.q)
        names, columns = [], []
        for k in np.flatnonzero(np.any(depths > 0.0, axis=0)).tolist():
            stiffness, touching = model.pair_solref[k, 0], depths[:, k] > 0.0
            model.pair_solref[k, 0] = (1.0 + _PARAMETER_STEP) * stiffness
            by_stiffness = (self._at(model, here, p)[0] - residuals) / _PARAMETER_STEP
            model.pair_solref[k, 0] = stiffness
            share = np.where(touching, depths[:, k], 1.0) / np.mean(depths[touching, k])
            names.append(model.pair(k).name)
            columns.append(by_stiffness * np.where(touching, np.log(share), 0.0)[:, None])
        return names, np.stack(columns, axis=2) if columns else np.zeros((*residuals.shape, 0))

    def _by_sensor(
        self, block: _SensorBlock, kind: str, k: int, here: _Rows, sensors: Array, correction: _Correction
    ) -> Array:
        """Differentiate the residuals by a delay, by a gain, or by number k of a bias of one channel: (n, m)."""
        out = np.zeros((len(here.q), self.weights.shape[1]))
        if block.channel.model == TORQUE:
            column = block.columns if kind != "bias" else block.columns[k : k + 1]
            ends = (self._delayed(block, correction.delay, step) for step in _ASIDE)
            slope = np.subtract(*ends) / np.subtract(*_ASIDE)
            by = {"delay": slope[here.times], "gain": -here.tau[:, column], "bias": np.float64(-1.0)}[kind]
            out[:, column] = -by / correction.gain
            return out
        if kind == "bias":
            out[:, block.part.start + k] = 1.0
        elif kind == "gain":
            out[:, block.part] = sensors[:, block.columns]
        else:
            ends = (self._sensed(block, sensors, here.times, correction, step) for step in _ASIDE)
            out[:, block.part] = np.subtract(*ends) / np.subtract(*_ASIDE)
        return out


def acceleration_std(model: mujoco.MjModel, force_std: Array) -> Array:
    """Turn an allowance for forces (nv,) into one for acceleration errors (nv,), by the mass matrix at rest."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mass = np.empty((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass)
    return np.sqrt(np.linalg.inv(mass) ** 2 @ force_std**2)
