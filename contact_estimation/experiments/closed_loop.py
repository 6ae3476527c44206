"""Paper 2, section 6.3: the MPC in closed loop, the real estimator between simulated sensors and controller.

The controller sees estimates only. Ground truth is recorded beside them and scored, never fed back. The solver's wall
time is measured; in simulated time a result takes effect one sample after the estimate it was planned from, whatever
machine it runs on.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from contact_estimation.control.mpc.controller import Command, MpcController, MpcState, Observation
from contact_estimation.control.mpc.settings import MpcSettings, load_mpc_settings
from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.registry import load_observer_settings, make_observer
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot import load_arm
from contact_estimation.settings import find_config, from_yaml, key, non_negative, positive, replace, to_mapping
from contact_estimation.simulation.scenarios import load_scenario
from contact_estimation.simulation.sensors.settings import load_imperfections, scaled
from contact_estimation.simulation.session import Simulation


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """One closed-loop experiment: which scenario, controller and estimator, and how contact is made before the MPC
    starts."""

    scenario: str = key(doc="scenario of config/tasks that is simulated")
    robot: str = key(doc="robot")
    mpc: str = key(doc="MPC task of config/tasks")
    observer: str = key(doc="observer of config/observers")
    sensors: str = key(doc="sensor set of config/sensors")
    friction_scale: float = key(
        1.0, doc="share of the simulated joints' friction that the robot's own compensation leaves", check=non_negative
    )
    error_axes: list[float] = key(
        [0.0, 0.0, 1.0], doc="the surface is off by the height error times this, base axes", length=3
    )
    height_error: float = key(0.02, doc="the surface is off by this where nothing else is asked for", unit="m")
    approach_speed: float = key(
        0.04,
        doc="speed of the guarded approach along the wanted force; 0: contact is there already",
        unit="m/s",
        check=non_negative,
    )
    approach_force: float = key(3.0, doc="estimated force that ends the approach", unit="N", check=positive)
    settle: float = key(0.5, doc="time for the estimator before the approach", unit="s", check=non_negative)
    duration: float = key(8.0, doc="time under MPC", unit="s", check=positive)


def load_loop_settings(task: str, robot: str) -> LoopSettings:
    """Settings of the experiment ``task`` (plane, pivot, press) on ``robot``; raises ConfigError for an unknown one."""
    return from_yaml(LoopSettings, find_config("tasks", f"loop_{task}_{robot}"))


@dataclass
class LoopRecord:
    """What happened, one row per sample from the start of the MPC at t = 0.

    ``t`` [s]; ``force``, ``force_estimate`` (N, 3) [N, ON the robot, base axes], true and estimated; ``force_wanted``
    (3,); ``axes`` which of them the cost controls; ``x``, ``x0`` (N, 3) [m] true TCP and commanded equilibrium;
    ``rest`` (N, 3), ``rest_estimate`` (N, I, 3) [m] of the MPC's contacts;
    ``spring`` (N,) [N] the unclipped impedance force; ``state`` (N,) names; ``reasons`` of every tick that was not
    ACTIVE.
    ``solve_ms``, ``cost`` per tick.
    """

    t: np.ndarray
    force: np.ndarray
    force_estimate: np.ndarray
    force_wanted: np.ndarray
    axes: np.ndarray
    x: np.ndarray
    x0: np.ndarray
    rest: np.ndarray
    rest_estimate: np.ndarray
    spring: np.ndarray
    state: np.ndarray
    reasons: list[str]
    solve_ms: np.ndarray
    cost: np.ndarray
    force_limit: float

    def force_rmse(self, after: float = 1.0) -> float:
        """RMS of the norm of the force error over the controlled axes [N], later than ``after`` [s]."""
        error = (self.force - self.force_wanted)[self.t > after][:, self.axes]
        return float(np.sqrt(np.mean(np.sum(error**2, axis=1))))

    def steady_error(self, seconds: float = 2.0) -> np.ndarray:
        """Mean force error (3,) [N] over the last ``seconds``."""
        return (self.force - self.force_wanted)[self.t > self.t[-1] - seconds].mean(axis=0)

    @property
    def max_spring(self) -> float:
        """Largest unclipped impedance force [N]."""
        return float(self.spring.max())


class ClosedLoop:
    """One run.

    Args:
        settings: the experiment. seed: of everything random. height_error: [m], default the settings'. solver:
        ``rti``, ``ipopt``.
        adapt: contacts from the estimator; without it the MPC believes the nominal place of the surface.
        force: [N] norm of the wanted force, instead of the MPC task's. overrides: keys of the MPC's settings replaced.
    """

    def __init__(
        self,
        settings: LoopSettings,
        seed: int = 0,
        height_error: float | None = None,
        solver: str | None = None,
        adapt: bool = True,
        force: float | None = None,
        overrides: dict | None = None,
    ):
        self.settings = settings
        arm = load_arm(settings.robot)
        mpc = load_mpc_settings(settings.mpc)
        overrides = dict(overrides or {})
        if force is not None:
            overrides["force"] = (force * np.array(mpc.force) / np.linalg.norm(mpc.force)).tolist()
        if overrides:
            mpc = replace(mpc, f"overrides of {settings.mpc}", **overrides)
        height_error = settings.height_error if height_error is None else height_error
        scenario = replace(
            load_scenario(settings.scenario),
            settings.scenario,
            impedance=to_mapping(mpc.impedance),
            placement_error=(height_error * np.array(settings.error_axes)).tolist(),
            controller={settings.robot: "impedance"},
        )
        imperfections = scaled(load_imperfections(arm.name), friction=settings.friction_scale)
        self.simulation = Simulation(scenario, arm, imperfections, seed)
        self.mpc_settings = _believing(mpc, self.simulation.rest)
        observer = load_observer_settings(settings.observer)
        observer = _believing(observer, self.simulation.rest)
        self.stream = SampleStream(make_observer(arm, observer), arm, load_sensor_settings(settings.sensors))
        self.controller = MpcController(arm, self.mpc_settings, solver, adapt=adapt, deadline=math.inf)
        ratio = self.simulation.scenario.rate / self.mpc_settings.rate
        if ratio < 1 or abs(ratio - round(ratio)) > 1e-9:
            raise ConfigError(
                f"{settings.mpc}: rate {self.mpc_settings.rate:g} Hz must divide the sample rate "
                f"{self.simulation.scenario.rate:g} Hz"
            )
        self._every = round(ratio)
        self._names = {contact.name for contact in self.mpc_settings.contacts}

    def run(
        self,
        duration: float | None = None,
        disturb: Callable[[float, Simulation], None] | None = None,
        estimator_alive: Callable[[float], bool] = lambda t: True,
    ) -> LoopRecord:
        """Settle, approach until the estimator feels contact, then let the MPC act for ``duration`` [s].

        Args:
            disturb: called before every sample with the time [s] since the MPC started, may change the simulation's
            surfaces.
            estimator_alive: whether the estimator gets the sample of a time [s].

        Raises:
            ConfigError: the approach found no contact.
        """
        sim, controller = self.simulation, self.controller
        self._settle_and_approach()
        begin = sim.time
        command = controller.activate(Observation.of(self.stream.estimate()))
        pending, rows, ticks = command, [], []
        count = round((duration or self.settings.duration) * sim.scenario.rate)
        last = begin
        for k in range(count):
            sim.command(pending.position, pending.rotation)
            t = sim.time - begin
            if disturb is not None:
                disturb(t, sim)
            sample = sim.step()
            t = sample.stamp_ns * 1e-9 - begin
            if estimator_alive(t):
                self.stream.push_fast(sample.stamp_ns, sample.q, sample.dq, sample.tau)
                last = sim.time
            estimate = self.stream.estimate()
            rows.append(self._row(t, sample, estimate, pending))
            if k % self._every == 0:
                pending = controller.update(t, Observation.of(estimate, sim.time - last))
                ticks.append(pending)
        return self._record(rows, ticks)

    def _settle_and_approach(self) -> None:
        sim, settings = self.simulation, self.settings
        position, rotation = sim.equilibrium
        for _ in range(round(settings.settle * sim.scenario.rate)):
            self._observe(sim.step())
        if settings.approach_speed == 0:
            return
        wanted = np.array(self.mpc_settings.force)
        direction = wanted / np.linalg.norm(wanted)
        reach = 2.0 * self.mpc_settings.safety.max_travel
        for k in range(round(reach / settings.approach_speed * sim.scenario.rate)):
            estimate = self.stream.estimate()
            if estimate.valid and float(direction @ estimate.force_base) > settings.approach_force:
                return
            sim.command(position - direction * settings.approach_speed * sim.period * k, rotation)
            self._observe(sim.step())
        raise ConfigError(f"the approach of {settings.scenario} found no contact within {reach:g} m")

    def _observe(self, sample) -> None:
        self.stream.push_fast(sample.stamp_ns, sample.q, sample.dq, sample.tau)

    def _row(self, t, sample, estimate, command: Command):
        plant = self.simulation.plant
        x = plant.position.copy()
        spring = np.array(self.mpc_settings.impedance.stiffness) * (command.position - x)
        return (
            t,
            plant.rotation @ plant.wrench_tcp[:3],
            estimate.force_base,
            x,
            command.position.copy(),
            sample.truth["rest"],
            np.array([contact.rest for contact in estimate.contacts if contact.name in self._names]),
            float(np.linalg.norm(spring)),
            command.state.value,
        )

    def _record(self, rows, ticks: list[Command]) -> LoopRecord:
        columns = [np.array(column) for column in zip(*rows)]
        t, force, estimate, x, x0, rest, rest_estimate, spring, state = columns
        solutions = [tick.solution for tick in ticks if tick.solution is not None]
        return LoopRecord(
            t=t,
            force=force,
            force_estimate=estimate,
            force_wanted=np.array(self.mpc_settings.force),
            axes=np.array(self.mpc_settings.weights.force) > 0,
            x=x,
            x0=x0,
            rest=rest,
            rest_estimate=rest_estimate,
            spring=spring,
            state=state,
            reasons=[tick.reason for tick in ticks if tick.state is not MpcState.ACTIVE],
            solve_ms=np.array([1e3 * s.seconds for s in solutions]),
            cost=np.array([s.cost for s in solutions]),
            force_limit=self.mpc_settings.impedance.max_force,
        )


def _believing(settings, rest: np.ndarray):
    """``settings`` with every contact's rest at ``rest`` (3,) [m] where they leave it open: what the task supposes."""
    contacts = [dataclasses.replace(c, rest=rest.tolist()) if c.rest == "start" else c for c in settings.contacts]
    return dataclasses.replace(settings, contacts=contacts)


def force_limit_ok(record: LoopRecord, tolerance: float = 0.01) -> bool:
    """Whether the impedance force stayed within its limit, unclipped, up to ``tolerance``."""
    return record.max_spring <= (1.0 + tolerance) * record.force_limit


__all__ = ["ClosedLoop", "LoopRecord", "LoopSettings", "MpcSettings", "force_limit_ok", "load_loop_settings"]
