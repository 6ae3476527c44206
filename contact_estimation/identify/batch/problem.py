"""The optimisation problem: what the residuals on a trajectory cost, and their linearisation.

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
from contact_estimation.identify.arrays import Array, Flags, Indices
from contact_estimation.identify.batch import norms
from contact_estimation.identify.batch.channels import TORQUE, Channel, Measurement, columns
from contact_estimation.identify.batch.engine import Engine
from contact_estimation.identify.batch.grid_channel import GridChannel
from contact_estimation.identify.batch.linearisation import Linearisation
from contact_estimation.identify.batch.parameters import ChannelParameter
from contact_estimation.identify.batch.residuals import Residuals
from contact_estimation.identify.batch.scene import Scene
from contact_estimation.identify.batch.trajectory import Coordinates, Stencil

#: Residual [standard deviations] from which its cost grows linearly: outliers, and cells in which a contact begins.
_OUTLIER = 4.0


class Setup(NamedTuple):
    """How a problem is posed."""

    formulation: str = "inverse"  # or "forward"
    scheme: str = "central"  # velocity differences, or "backward" (the paper's)
    reference_step: float = 0.005  # cell length for which the dynamics' std is meant [s]
    threads: int | None = None  # of the derivative pass; None takes every core


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
        self.scene, self.grid, self._softening = scene, np.concatenate(parts, dtype=float), 1.0
        self._breaks = np.cumsum([len(part) for part in parts])[:-1].tolist()
        self.stencil = Stencil.of(self.grid, setup.scheme, self._breaks)
        self.channels = [channel for channel in channels if channel.name in measurements]
        if not self.channels:
            raise IdentificationError(
                f"none of the channels {[c.name for c in channels]} has a measurement; measured: "
                f"{', '.join(sorted(measurements)) or 'nothing'}"
            )
        on_grid = [self._on_grid(channel, measurements[channel.name]) for channel in self.channels]
        sensors, torques = ([each for each in on_grid if each.is_torque == flag] for flag in (False, True))
        self._residuals = Residuals(scene, Engine(setup.formulation, setup.threads), self.stencil, sensors, torques)
        spacing = np.concatenate([np.gradient(part) for part in parts])
        self._weigh_dynamics(spacing / setup.reference_step * self.stencil.interior, dynamics_std)
        self._leave_out_unknown_torques(channels, setup)
        for each in sensors:
            self._weigh(each)
        self.worth *= self.weights > 0.0  # what has no weight is not used
        for parameter, _, _ in scene.parameters.of_channels(scene.parameters.nominal):
            self._check(parameter)

    def _on_grid(self, channel: Channel, measurement: Measurement) -> GridChannel:
        """Put a channel on the grid; a cell counts only if it holds samples at no delay and at both bounds of one."""
        index, needs_motion = columns(self.scene.nominal, channel)
        if measurement.values.shape[1] != len(index):
            raise IdentificationError(
                f"channel '{channel.name}' has {measurement.values.shape[1]} measured numbers, its "
                f"targets {', '.join(channel.targets)} have {len(index)}"
            )
        each = GridChannel(channel, index, measurement, self.grid, self._breaks)
        if np.size(channel.std) not in (1, each.width):
            raise IdentificationError(
                f"channel '{channel.name}' has {np.size(channel.std)} numbers in std, expected one, or one each "
                f"for its {each.width} residuals"
            )
        for parameter, _, _ in self.scene.parameters.of_channels(self.scene.parameters.nominal):
            if parameter.kind == "delay" and channel.name in parameter.channels:
                for delay in (*parameter.min_value, *parameter.max_value):
                    each.worth *= each.worth_at(delay) > 0
        if needs_motion and not each.is_torque:
            each.worth *= self.stencil.interior
        return each

    def _weigh_dynamics(self, cell: Array, dynamics_std: Array | float) -> None:
        """Give the dynamics their columns; ``cell`` (n,) are lengths in reference steps, 0 where there are none."""
        nv = self.coordinates.nv
        if np.size(dynamics_std) not in (1, nv):
            raise IdentificationError(
                f"dynamics_std has {np.size(dynamics_std)} numbers, expected one, or one each for the scene's {nv} dofs"
            )
        std = np.broadcast_to(np.asarray(dynamics_std, float), (nv,))
        self.weights = np.outer(cell, 1.0 / std**2)  # (n, m), grows by every channel
        self.worth = np.repeat(self.stencil.interior[:, None].astype(float), nv, axis=1)  # (n, m), numbers behind each
        self.scales = np.full(nv, np.inf)  # of the barriers (m,)
        self.limits = np.full(nv, np.inf)  # of Huber's norm (m,)

    def _leave_out_unknown_torques(self, channels: Sequence[Channel], setup: Setup) -> None:
        """Take the weight off the dynamics of joints whose torque is not measured."""
        for each in self._residuals.torques:
            self.weights[:, each.columns] *= each.channel.weight * (each.worth > 0)[:, None]
        for channel in channels:
            if channel.model == TORQUE and (channel not in self.channels or channel.weight == 0):
                if setup.formulation == "forward":
                    raise IdentificationError(
                        f"forward dynamics need the torque of channel '{channel.name}'; measure "
                        f"and weight it, or use the inverse formulation"
                    )
                self.weights[:, columns(self.scene.nominal, channel)[0]] = 0.0

    def _weigh(self, each: GridChannel) -> None:
        """Give a sensor's channel its columns."""
        channel, width = each.channel, each.width
        std = np.broadcast_to(np.asarray(channel.std, float), (width,))
        used = np.repeat(np.minimum(each.worth, 1.0)[:, None], width, axis=1)
        self.weights = np.hstack([self.weights, np.outer(each.worth, channel.weight / std**2)])
        self.worth = np.hstack([self.worth, used])
        self.scales = np.append(self.scales, np.full(width, np.inf if channel.barrier is None else channel.barrier))
        self.limits = np.append(self.limits, _OUTLIER * std)

    def _check(self, parameter: ChannelParameter) -> None:
        """Refuse a channel's parameter that has no channel, or not a number for each of its columns."""
        on_grid = {each.name: each for each in self.grid_channels}
        for name in parameter.channels:
            if name not in on_grid:
                raise IdentificationError(
                    f"parameter '{parameter.name}' belongs to channel '{name}', which has no measurement; measured: "
                    f"{', '.join(on_grid)}"
                )
            each = on_grid[name]
            if each.is_torque and self.engine.formulation == "forward":
                raise IdentificationError(
                    f"parameter '{parameter.name}' belongs to the torque channel '{name}', which the forward "
                    "formulation takes as it is; use the inverse formulation"
                )
            wanted = each.numbers(parameter.kind)
            if parameter.size != wanted or parameter.kind not in each.kinds:
                raise IdentificationError(
                    f"parameter '{parameter.name}': a {parameter.kind} of channel '{name}' is "
                    f"{'not supported for an orientation' if each.turns else f'{wanted} numbers'}, "
                    f"given {parameter.size}"
                )

    @property
    def engine(self) -> Engine:
        """MuJoCo in the problem's formulation."""
        return self._residuals.engine

    @property
    def coordinates(self) -> Coordinates:
        """Coordinates of the scene."""
        return self._residuals.coordinates

    @property
    def tau(self) -> Array:
        """Measured motor torques (n, nv)."""
        return self._residuals.tau

    @property
    def size(self) -> tuple[int, int]:
        """(trajectory unknowns n nv, parameters c)."""
        return len(self.grid) * self.coordinates.nv, len(self.scene.parameters)

    def every_second(self) -> tuple[Problem, Indices]:
        """Return the problem on a grid without every second time, and the indices (m,) of the times it keeps."""
        parts = [part[::2] for part in np.split(np.arange(len(self.grid)), self._breaks)]
        return Problem(self.scene, [self.grid[part] for part in parts], *self._made_of), np.concatenate(parts)

    def ease(self, remote_distance: float = 0.0, softening: float = 1.0) -> None:
        """Make the problem easier, as continuation does.

        Args:
            remote_distance: at which contacts begin to act [m].
            softening: factor on the standard deviation of the dynamics.
        """
        self.weights[:, : self.coordinates.nv] *= (self._softening / softening) ** 2
        self._residuals.remote_distance, self._softening = remote_distance, softening

    def residuals(self, q: Array, p: Array) -> Array:
        """Return residuals (n, m) in SI units: the dynamics' nv columns, then each channel's (see :meth:`parts`).

        Args:
            q: (n, nq) positions on the grid.
            p: (c,) optimiser's parameters.
        """
        return self._residuals.at(q, p).residuals

    def parts(self) -> dict[str, slice]:
        """Name -> columns of the residual matrix."""
        return {"dynamics": slice(0, self.coordinates.nv)} | {each.name: each.part for each in self._residuals.sensors}

    @property
    def grid_channels(self) -> list[GridChannel]:
        """Channels on the grid: sensors, then torques."""
        return [*self._residuals.sensors, *self._residuals.torques]

    def holds_samples(self, name: str) -> Flags:
        """Return in which cells (n,) a channel has samples, whether or not the estimate uses them."""
        return np.asarray(self._channel(name).worth > 0.0)

    def _channel(self, name: str) -> GridChannel:
        return next(each for each in self.grid_channels if each.name == name)

    def measured(self, name: str, p: Array | None = None) -> Array:
        """Return a channel's values on the grid (n, m), with ``p`` those that its delay, gain and bias leave.

        Args:
            name: of the channel.
            p: (c,) optimiser's parameters, or None.
        """
        each = self._channel(name)
        return each.values if p is None else each.true(each.correction(self.scene.parameters, p))

    def predicted(self, q: Array, p: Array, name: str) -> Array:
        """Return what the model predicts for a channel (n, m), gain and bias aside; a quaternion for an orientation.

        Args:
            q: (n, nq) positions on the grid.
            p: (c,) optimiser's parameters.
            name: of the channel.
        """
        return self._residuals.at(q, p).sensors[:, self._channel(name).columns]

    def cost(self, q: Array, p: Array) -> float:
        """Return the total cost (a chi-square where norms are quadratic).

        Args:
            q: (n, nq) positions on the grid.
            p: (c,) optimiser's parameters.
        """
        return self.cost_of(self.residuals(q, p), p)

    def cost_of(self, residuals: Array, p: Array) -> float:
        """Return the cost of residuals that are already there, plus the prior.

        Args:
            residuals: (n, m), as of :meth:`residuals`.
            p: (c,) optimiser's parameters.
        """
        return float(
            np.sum(self.weights * norms.evaluate(residuals, self.scales, self.limits)[0])
            + np.sum(self.prior(p)[0] ** 2)
        )

    def costs(self, residuals: Array) -> dict[str, float]:
        """Return the cost of each part by name.

        Args:
            residuals: (n, m), as of :meth:`residuals`.
        """
        values = self.weights * norms.evaluate(residuals, self.scales, self.limits)[0]
        return {name: float(values[:, part].sum()) for name, part in self.parts().items()}

    def prior(self, p: Array) -> tuple[Array, Array]:
        """Return the parameters' residuals against their prior, and the derivative's diagonal, each (c,).

        Args:
            p: (c,) optimiser's parameters.
        """
        inverse = 1.0 / self.scene.parameters.prior_std
        return (p - self.scene.parameters.nominal) * inverse, inverse

    def linearise(self, q: Array, p: Array, free_q: bool = True, free_p: bool = True) -> Linearisation:
        """Return residuals with their derivatives; what is not free gets no columns.

        Args:
            q: (n, nq) positions on the grid.
            p: (c,) optimiser's parameters.
            free_q: whether the trajectory is free.
            free_p: whether the parameters are.
        """
        here = self._residuals.at(q, p)
        by_q = self._residuals.by_trajectory(here) if free_q else None
        by_p = self._residuals.by_parameters(here) if free_p else None
        return Linearisation(self, p, here.residuals, by_q, by_p)

    def renew(self, linearisation: Linearisation, q: Array, p: Array, times: Indices, residuals: Array) -> None:
        """Move a linearisation with a free trajectory and differentiate anew at some times only.

        Args:
            linearisation: what moves.
            q: new positions (n, nq).
            p: new parameters (c,).
            times: indices that are differentiated.
            residuals: at the new point (n, m).
        """
        here = self._residuals.at(q, p, times)
        by_p = self._residuals.by_parameters(here) if linearisation.free_p else None
        linearisation.move(p, residuals, times, self._residuals.by_trajectory(here), by_p)

    def by_faults(self, q: Array, p: Array) -> tuple[list[tuple[str, str]], Array]:
        """Differentiate the residuals by what scene and channels do not have, to first order.

        Args:
            q: positions (n, nq).
            p: optimiser's parameters (c,).

        Returns:
            (channel, "delay", "gain" or "bias") or (contact, "power") of each of e columns, and the columns (n, m, e).
        """
        here = self._residuals.at(q, p)
        channels, first = self._residuals.by_channels(here)
        contacts, more = self._residuals.by_powers(here)
        return [*channels, *((name, "power") for name in contacts)], np.concatenate([first, more], axis=2)


def acceleration_std(model: mujoco.MjModel, force_std: Array) -> Array:
    """Turn an allowance for forces (nv,) into one for acceleration errors (nv,), by the mass matrix at rest.

    An infinite allowance leaves every acceleration open that the force moves: those of the dof's own kinematic tree.
    """
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mass = np.empty((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass)
    moves = np.linalg.inv(mass) ** 2  # (nv, nv)
    variance = np.multiply(moves, force_std**2, where=moves > 0.0, out=np.zeros_like(moves))
    return np.asarray(np.sqrt(np.sum(variance, axis=1)))
