"""Residuals along a trajectory, with derivatives by trajectory and parameters, and by faults that are none of them.

The first nv columns are the dynamics, either tau^ - u (inverse) or a^ - a (forward); each channel's follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.batch.engine import Engine, contact_depths
from contact_estimation.identify.batch.grid_channel import Correction, GridChannel
from contact_estimation.identify.batch.scene import Scene
from contact_estimation.identify.batch.trajectory import Coordinates, Stencil, chain, motion

_PARAMETER_STEP = 1e-5  # difference of an optimiser's parameter
_EVERYWHERE, _NOTHING = slice(None), np.zeros((0, 0))
_KEPT = 2  # points: a line search, its correction and the next linearisation ask for the same ones


class Point(NamedTuple):
    """Some times of a trajectory at some parameters, with what the engine makes of them."""

    times: Indices | slice
    p: Array  # optimiser's parameters (c,)
    q: Array  # positions (k, nq)
    v: Array  # velocities (k, nv)
    a: Array  # accelerations (k, nv)
    tau: Array  # motor torques (k, nv)
    before: Array  # differences (k, nv) to the time before
    after: Array  # and to the time after
    residuals: Array = _NOTHING  # (k, size)
    sensors: Array = _NOTHING  # sensor data (k, ns)
    model: mujoco.MjModel | None = None  # of p; only read


class Residuals:
    """Model's residuals on a grid.

    Args:
        scene: model and parameters.
        engine: of the formulation.
        stencil: of the grid.
        sensors: channels that are predicted; their ``part`` is written here.
        torques: channels of the motors.

    Attributes:
        size: number of residuals per time.
        tau: motor torques (n, nv) as measured.
        remote_distance: distance [m] from which contacts act.
    """

    def __init__(
        self,
        scene: Scene,
        engine: Engine,
        stencil: Stencil,
        sensors: Sequence[GridChannel],
        torques: Sequence[GridChannel],
    ) -> None:
        self.scene, self.engine, self.stencil, self.sensors, self.torques = scene, engine, stencil, sensors, torques
        self.coordinates, self.remote_distance = Coordinates(scene.nominal), 0.0
        self.size = self.coordinates.nv
        for channel in sensors:
            channel.part = slice(self.size, self.size + channel.width)
            self.size += channel.width
        self.tau = np.zeros((len(stencil.vm), self.coordinates.nv))
        for channel in torques:
            self.tau[:, channel.columns] = channel.values
        self._kept: list[tuple[tuple[float, bytes, bytes], Point]] = []  # the last points of the whole grid

    def at(self, q: Array, p: Array, times: Indices | slice = _EVERYWHERE) -> Point:
        """Evaluate positions (n, nq) and parameters (c,) at some times; the arrays are read-only."""
        asked = self.remote_distance, q.tobytes(), p.tobytes()
        if times is not _EVERYWHERE:
            return self._evaluate(q, p, times)
        for key, point in self._kept:
            if key == asked:
                return point
        point = self._evaluate(q, p, times)
        self._kept = [*self._kept[1 - _KEPT :], (asked, point)]
        return point

    def _evaluate(self, q: Array, p: Array, times: Indices | slice) -> Point:
        differences, v, a = motion(self.coordinates, self.stencil, q)
        parts = [part[times] for part in (q, v, a, self._torque(p), differences[:-1], differences[1:])]
        return self._moved(Point(times, p, *parts), p)

    def _moved(self, point: Point, p: Array) -> Point:
        """Return the point with the model of other parameters; motor torques stay."""
        model = self._model(p)
        return self._with_model(point._replace(p=p, model=model), model)

    def _with_model(self, point: Point, model: mujoco.MjModel) -> Point:
        dynamics, sensors = self.engine.evaluate(model, point.q, point.v, point.a, point.tau)
        sensed = [
            channel.residual(sensors, point.times, self._correction(channel, point.p)) for channel in self.sensors
        ]
        residuals = np.concatenate([dynamics, *sensed], axis=1)
        residuals.flags.writeable = sensors.flags.writeable = False
        return point._replace(residuals=residuals, sensors=sensors)

    def _model(self, p: Array) -> mujoco.MjModel:
        return self.scene.build(p, self.remote_distance)

    def _correction(self, channel: GridChannel, p: Array) -> Correction:
        return channel.correction(self.scene.parameters, p)

    def _torque(self, p: Array) -> Array:
        """Motor torques (n, nv) from those measured."""
        tau: Array = self.tau.copy()
        for channel in self.torques:
            tau[:, channel.columns] = channel.true(self._correction(channel, p))
        return tau

    def by_trajectory(self, point: Point) -> Array:
        """Differentiate by the steps of q_i-1, q_i, q_i+1: (k, m, 3 nv)."""
        d = self.engine.differentiate(point.model, point.q, point.v, point.a, point.tau)
        by = [[d.dynamics_q], [d.dynamics_v], [d.dynamics_a]]
        for channel in self.sensors:
            correction = self._correction(channel, point.p)
            for rows, full in zip(by, (d.sensors_q, d.sensors_v, d.sensors_a)):
                rows.append(channel.chain(point.sensors, point.times, correction, full))
        stacked = (np.concatenate(rows, axis=1) for rows in by)
        return chain(self.coordinates, self.stencil.at(point.times), (point.before, point.after), *stacked)

    def by_parameters(self, point: Point) -> Array:
        """Differentiate by the optimiser's parameters: (k, m, c)."""
        p, parameters = point.p, self.scene.parameters
        out = np.zeros((*point.residuals.shape, len(p)))
        model_only = set(range(len(p)))
        for parameter, _, first in parameters.of_channels(p):
            model_only -= set(range(first, first + parameter.size))
            for channel in (*self.sensors, *self.torques):
                if channel.name in parameter.channels:
                    for k in range(parameter.size):
                        out[:, :, first + k] += self._by_channel(channel, parameter.kind, k, point) * parameter.scale[k]
        for k in model_only:
            step = _PARAMETER_STEP if p[k] + _PARAMETER_STEP <= parameters.upper[k] else -_PARAMETER_STEP
            moved = p.copy()
            moved[k] = np.clip(p[k] + step, parameters.lower[k], parameters.upper[k])
            out[:, :, k] = (self._moved(point, moved).residuals - point.residuals) / (moved[k] - p[k])
        return out

    def by_channels(self, point: Point) -> tuple[list[tuple[str, str]], Array]:
        """Differentiate by what channels may do to the truth, whether or not it is a parameter.

        Returns:
            (channel, kind) of each of e columns, and the columns (k, m, e), per s, per 1 and per unit.
        """
        names, columns = [], []
        for channel in (*self.sensors, *(self.torques if self.engine.formulation == "inverse" else ())):
            for kind in channel.kinds if channel.channel.weight > 0 else ():
                for k in range(channel.numbers(kind)):
                    names.append((channel.name, kind))
                    columns.append(self._by_channel(channel, kind, k, point))
        return names, np.stack(columns, axis=2)

    def by_powers(self, point: Point) -> tuple[list[str], Array]:
        """Differentiate by the power a of the depth in each contact's spring force, at a = 1.

        A force k d (d / d_0)^(a - 1) has the derivative by ln k, times ln(d / d_0) with the mean depth d_0.

        Returns:
            names of the e contact pairs that touch somewhere, and the columns (k, m, e).
        """
        model = self._model(point.p)
        depths = contact_depths(model, point.q)
        names, columns = [], []
        for k in np.flatnonzero(np.any(depths > 0.0, axis=0)).tolist():
            stiffness, touching = model.pair_solref[k, 0], depths[:, k] > 0.0
            model.pair_solref[k, 0] = (1.0 + _PARAMETER_STEP) * stiffness
            by_stiffness = (self._with_model(point, model).residuals - point.residuals) / _PARAMETER_STEP
            model.pair_solref[k, 0] = stiffness
            share = np.where(touching, depths[:, k], 1.0) / np.mean(depths[touching, k])
            names.append(model.pair(k).name)
            columns.append(by_stiffness * np.where(touching, np.log(share), 0.0)[:, None])
        return names, np.stack(columns, axis=2) if columns else np.zeros((*point.residuals.shape, 0))

    def _by_channel(self, channel: GridChannel, kind: str, k: int, point: Point) -> Array:
        """Differentiate by a delay, by a gain, or by number k of a bias of one channel: (k, m)."""
        out, correction = np.zeros_like(point.residuals), self._correction(channel, point.p)
        if channel.is_torque:
            column = channel.columns if kind != "bias" else channel.columns[k : k + 1]
            if kind == "delay":
                out[:, column] = -channel.slope(correction.delay)[point.times] / correction.gain
            else:
                out[:, column] = (point.tau[:, column] if kind == "gain" else 1.0) / correction.gain
        elif kind == "bias":
            out[:, channel.part.start + k] = 1.0
        elif kind == "gain":
            out[:, channel.part] = point.sensors[:, channel.columns]
        else:
            out[:, channel.part] = channel.by_delay(point.sensors, point.times, correction)
        return out
