"""Paper 2, section 6.3: the MPC in closed loop, the real estimator between simulated sensors and controller.

The controller sees estimates only. Ground truth is recorded and scored, never fed back. The solver's wall time is
measured. In simulated time a result takes effect one sample after its estimate, on every machine.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from contact_estimation.control.controller import Command, ContactController, ControllerState, Observation
from contact_estimation.control.mpc.settings import MpcSettings, load_mpc_settings
from contact_estimation.control.registry import make_controller
from contact_estimation.control.sequence import SequenceController, load_sequence
from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.registry import load_observer_settings, make_observer
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot import load_arm
from contact_estimation.robot.sample import Sample
from contact_estimation.settings import config_for_robot, from_yaml, key, non_negative, positive, replace, to_mapping
from contact_estimation.simulation.scenarios import load_scenario
from contact_estimation.simulation.scenarios.settings import ScenarioSettings
from contact_estimation.simulation.sensors.settings import load_imperfections, scaled
from contact_estimation.simulation.session import Simulation


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """One closed-loop experiment: scenario, controller, estimator, and how contact is made before the MPC starts."""

    scenario: str = key(doc="scenario of config/tasks that is simulated")
    robot: str = key(doc="robot")
    mpc: str = key(doc="MPC task in tasks/ of a robot")
    sequence: str = key("", doc="sequence in tasks/ of a robot that runs instead; it makes contact itself")
    observer: str = key(doc="observer of config/observers")
    sensors: str = key(doc="sensor set of config/sensors")
    friction_scale: float = key(
        1.0, doc="share of the simulated joints' friction that the robot's own compensation leaves", check=non_negative
    )
    error_axes: list[float] = key(
        [0.0, 0.0, 1.0], doc="the surface is off by the height error times this, base axes", length=3
    )
    height_error: float = key(0.02, doc="default error of the surface's height", unit="m")
    approach_speed: float = key(
        0.04, doc="speed of the guarded approach along the target force, or of the lead", unit="m/s", check=positive
    )
    lead: float = key(
        0.0,
        doc="distance past a hinge, to both sides, on which the tool is led before the hinge closes around it; 0: "
        "no hinge, a guarded approach",
        unit="m",
        check=non_negative,
    )
    stiffness: float = key(
        1e4,
        doc="stiffness of the surface that a contact IMM filter expects, in the middle of what is possible; a hinge "
        "keeps the observer's",
        unit="N/m",
        check=positive,
    )
    stiffness_factor: float = key(
        10.0,
        doc="one standard deviation of that stiffness is this factor up or down; with a smaller one the slow growth of "
        "force on a surface softer than expected is taken for joint friction",
        check=positive,
    )
    stiffness_depth_walk: float = key(
        1.5,
        doc="relative change of that stiffness over one metre of depth; without it a filter that has learnt a soft "
        "surface too early takes the force of further sinking for joint friction",
        unit="1/m^0.5",
        check=non_negative,
    )
    friction_std: float = key(
        0.3,
        doc="usual friction coefficient that a contact IMM filter expects where the tool touches; less where it does "
        "not slide, or the torque sensors are in front of the gears",
        check=non_negative,
    )
    friction_time: float = key(
        2.0,
        doc="how long that friction keeps its direction; longer for a tool that is led along a path",
        unit="s",
        check=positive,
    )
    approach_force: float = key(3.0, doc="estimated force that ends the approach", unit="N", check=positive)
    settle: float = key(0.5, doc="time for the estimator before the approach", unit="s", check=non_negative)
    duration: float = key(8.0, doc="time under MPC", unit="s", check=positive)


def load_loop_settings(task: str, robot: str) -> LoopSettings:
    """Load the settings of a task (plane, pivot, press) on ``robot``; raises ConfigError for an unknown one."""
    return from_yaml(LoopSettings, config_for_robot("tasks", f"loop_{task}", robot))


@dataclass
class LoopRecord:
    """What happened, one row per sample from the start of the MPC at t = 0.

    Attributes:
        t: (N,) [s].
        force: true force (N, 3) ON the robot, base axes [N].
        force_estimate: the same, estimated.
        force_wanted: (3,) [N].
        axes: which of them (3,) the cost controls.
        x: true TCP position (N, 3) [m].
        x0: commanded equilibrium (N, 3) [m].
        rest: true rest position (N, 3) [m].
        rest_estimate: estimated rest positions (N, I, 3) of the MPC's contacts [m].
        spring: unclipped impedance force (N,) [N].
        state: name of the MPC's state (N,).
        reasons: of every tick that was not ACTIVE.
        solve_ms: time of every solve [ms].
        cost: of every solution, where its last iteration began.
        force_limit: limit of the impedance force [N].
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
        """Return the RMS of the norm of the force error over the controlled axes [N], later than ``after`` [s]."""
        error = (self.force - self.force_wanted)[self.t > after][:, self.axes]
        return float(np.sqrt(np.mean(np.sum(error**2, axis=1))))

    def steady_error(self, seconds: float = 2.0) -> np.ndarray:
        """Return the mean force error (3,) [N] over the last ``seconds``."""
        return np.asarray((self.force - self.force_wanted)[self.t > self.t[-1] - seconds].mean(axis=0))

    @property
    def max_spring(self) -> float:
        """Largest unclipped impedance force [N]."""
        return float(self.spring.max())


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """What one run changes of its experiment.

    Attributes:
        seed: of everything random.
        height_error: how far the surface is off [m], default the experiment's.
        controller: one of :data:`contact_estimation.control.registry.CONTROLLERS`.
        solver: of the MPC, ``rti`` or ``sqp``, default the task's.
        adapt: contacts from the estimator; without it the controller uses the nominal place of the surface.
        force: norm of the wanted force [N], default the task's.
        stiffness: of the simulated surfaces [N/m], default the scenario's.
        observer: configuration of the estimator, default the experiment's.
        tool: what the simulated arm carries, and estimator and controller know; empty: the robot's own.
        delay: age of the estimates that the controller sees [s].
        true_force: the estimates carry the true force, which shows what the controller alone does.
        task: keys of the task's settings that are replaced.
        scenario: keys of the scenario that are replaced.
        imperfections: keys of the simulated arm's imperfections that are replaced.
    """

    seed: int = 0
    height_error: float | None = None
    controller: str = "mpc"
    solver: str | None = None
    adapt: bool = True
    force: float | None = None
    stiffness: float | None = None
    observer: str | None = None
    tool: str = ""
    delay: float = 0.0
    true_force: bool = False
    task: dict[str, Any] = field(default_factory=dict)
    scenario: dict[str, Any] = field(default_factory=dict)
    imperfections: dict[str, Any] = field(default_factory=dict)


class ClosedLoop:
    """One run of an experiment with what ``options`` change of it."""

    def __init__(self, settings: LoopSettings, options: LoopOptions | None = None) -> None:
        self.settings = settings
        options = options or LoopOptions()
        arm = load_arm(settings.robot, options.tool)
        task = _task(settings, options)
        imperfections = scaled(load_imperfections(arm.name), friction=settings.friction_scale)
        imperfections = replace(imperfections, f"imperfections of {arm.name}", **options.imperfections)
        self.simulation = Simulation(_scenario(settings, options, task), arm, imperfections, options.seed)
        self.mpc_settings = _with_rest(task, self.simulation.rest)
        observer = load_observer_settings(options.observer or settings.observer, arm.settings.folder)
        if not getattr(observer, "contacts", None):
            raise ConfigError(
                f"observer '{options.observer or settings.observer}' estimates no contacts, so that no controller can "
                "press by it; use one with contacts: --observer contact_imm"
            )
        observer = _with_rest(_with_tool(observer, task, settings), self.simulation.rest)
        self._place = np.array(self.simulation.scenario.placement_error)
        sensors = load_sensor_settings(settings.sensors, arm.settings.folder)
        self.stream = SampleStream(make_observer(arm, observer, sensors=sensors), arm, sensors)
        self.controller: ContactController
        if settings.sequence:
            steps = load_sequence(settings.sequence)
            self.controller = SequenceController(arm, steps, self.mpc_settings, options.solver, math.inf)
        else:
            self.controller = make_controller(
                options.controller, arm, self.mpc_settings, options.solver, options.adapt, math.inf
            )
        self._true_force = options.true_force
        self._late = round(options.delay * self.simulation.scenario.rate)
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
            duration: time under MPC [s], default the settings'; a sequence may end sooner.
            disturb: called before every sample with the time [s] since the MPC started; may change the surfaces.
            estimator_alive: whether the estimator gets the sample of a time [s].

        Returns:
            what happened.

        Raises:
            ConfigError: the duration is no time, or the approach found no contact.
        """
        if duration is not None and not 0.0 < duration < math.inf:
            raise ConfigError(f"duration must be greater than 0 s and finite, found {duration:g}")
        sim, controller = self.simulation, self.controller
        self._settle_and_approach()
        begin = sim.time
        seen = deque([(begin, self._estimate())], self._late + 1)
        command = controller.activate(Observation.of(seen[0][1]), sim.equilibrium[0])
        pending, ticks = command, list[Command]()
        rows: list[tuple[Any, ...]] = []
        count = max(round((duration or self.settings.duration) * sim.scenario.rate), 1)
        for k in range(count):
            sim.command(pending.position, pending.rotation)
            t = sim.time - begin
            if disturb is not None:
                disturb(t, sim)
            sample = sim.step()
            t = sample.stamp_ns * 1e-9 - begin
            if estimator_alive(t):
                self._observe(sample)
                seen.append((sim.time, self._estimate()))
            rows.append(self._row(t, sample, seen[-1][1], pending))
            if k % self._every == 0:
                when, estimate = seen[0]
                pending = controller.update(t, Observation.of(estimate, sim.time - when)) or pending
                ticks.append(pending)
                if isinstance(controller, SequenceController) and controller.over:
                    break
        return self._record(rows, ticks)

    def _settle_and_approach(self) -> None:
        """Let the estimator settle, then make contact: by a guarded approach, or led to a hinge that closes.

        A hinge is led to from both sides, last in the direction of the pull. The estimator can then tell the joints'
        friction from their offsets, which it cannot once the hinge holds the tool.
        """
        sim, settings = self.simulation, self.settings
        hinge: Any = sim.plant.surfaces[0]
        if settings.lead > 0:
            hinge.holds = False
        for _ in range(round(settings.settle * sim.scenario.rate)):
            self._observe(sim.step())
        if settings.sequence:
            return
        wanted = np.array(self.mpc_settings.force)
        direction = wanted / np.linalg.norm(wanted)
        if settings.lead == 0:
            self._approach(direction)
            return
        here = np.zeros(3)
        for past in (-settings.lead, settings.lead, 0.0):
            goal = self._place + past * direction
            self._lead(here, goal)
            here = goal
        hinge.point, hinge.holds = sim.plant.point(), True

    def _approach(self, direction: np.ndarray) -> None:
        """Move against ``direction`` (3,) until the estimator feels contact."""
        sim, settings = self.simulation, self.settings
        position, rotation = sim.equilibrium
        reach = 2.0 * self.mpc_settings.safety.max_travel
        for k in range(round(reach / settings.approach_speed * sim.scenario.rate)):
            estimate = self.stream.estimate()
            if estimate.valid and float(direction @ estimate.force_base) > settings.approach_force:
                return
            sim.command(position - direction * settings.approach_speed * sim.period * k, rotation)
            self._observe(sim.step())
        raise ConfigError(f"the approach of {settings.scenario} found no contact within {reach:g} m")

    def _lead(self, begin: np.ndarray, end: np.ndarray) -> None:
        """Move between two displacements (3,) [m] from the start."""
        sim = self.simulation
        position, rotation = sim.equilibrium
        count = max(round(float(np.linalg.norm(end - begin)) / self.settings.approach_speed * sim.scenario.rate), 1)
        for k in range(count):
            sim.command(position + (end - begin) * (k + 1) / count, rotation)
            self._observe(sim.step())

    def _observe(self, sample: Sample) -> None:
        self.stream.push_fast(sample.stamp_ns, sample.q, sample.dq, sample.tau)

    def _estimate(self) -> Estimate:
        """Return what the controller is told after the last sample."""
        estimate, plant = self.stream.estimate(), self.simulation.plant
        if not self._true_force:
            return estimate
        return dataclasses.replace(estimate, force_base=plant.rotation @ plant.wrench_tcp[:3])

    def _row(self, t: float, sample: Sample, estimate: Estimate, command: Command) -> tuple[Any, ...]:
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
            self._rests(estimate),
            float(np.linalg.norm(spring)),
            command.state.value,
        )

    def _rests(self, estimate: Estimate) -> np.ndarray:
        """Return the estimated rest positions (I, 3) [m] of the task's contacts; NaN where there is none."""
        rests = [contact.rest for contact in estimate.contacts if contact.name in self._names]
        return np.array(rests or [np.full(3, np.nan)])

    def _record(self, rows: list[tuple[Any, ...]], ticks: list[Command]) -> LoopRecord:
        t, force, estimate, x, x0, rest, rest_estimate, spring, state = (np.array(column) for column in zip(*rows))
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
            reasons=[tick.reason for tick in ticks if tick.state is not ControllerState.ACTIVE],
            solve_ms=np.array([1e3 * s.seconds for s in solutions]),
            cost=np.array([s.cost for s in solutions]),
            force_limit=self.mpc_settings.impedance.max_force,
        )


_Settings = TypeVar("_Settings", bound=Any)


def _task(settings: LoopSettings, options: LoopOptions) -> MpcSettings:
    """Return the controller's task with the options' force and keys."""
    task, changes = load_mpc_settings(settings.mpc), dict(options.task)
    if options.force is not None:
        changes["force"] = (options.force * np.array(task.force) / np.linalg.norm(task.force)).tolist()
    return replace(task, f"options of {settings.mpc}", **changes) if changes else task


def _scenario(settings: LoopSettings, options: LoopOptions, task: MpcSettings) -> ScenarioSettings:
    """Return the scenario with the surface off its place, under the task's impedance."""
    scenario, error = load_scenario(settings.scenario), options.height_error
    error = settings.height_error if error is None else error
    changes = dict(options.scenario)
    if options.stiffness is not None:
        surfaces = [dataclasses.replace(s, stiffness=options.stiffness) for s in scenario.surfaces]
        changes.setdefault("surfaces", [to_mapping(s) for s in surfaces])
    return replace(
        scenario,
        settings.scenario,
        impedance=to_mapping(task.impedance),
        placement_error=(error * np.array(settings.error_axes)).tolist(),
        controller={settings.robot: "impedance"},
        **changes,
    )


def _with_tool(observer: Any, task: MpcSettings, settings: LoopSettings) -> Any:
    """Give an IMM filter the task's tool: where it touches, from which side, how it slides.

    Stiffness and rest stay unknown. Several contacts of a task are one hinge: all are closed, or none.
    """
    if not isinstance(observer, ImmSettings):
        return observer
    common = dataclasses.replace(
        observer.contacts[0],
        tool_length_std=0.0,
        normal_std=0.0,
        normal_random_walk=0.0,
        friction_std=settings.friction_std,
        friction_time=settings.friction_time,
    )
    if len(task.contacts) == 1:
        told = task.contacts[0]
        one = dataclasses.replace(
            common,
            name=told.name,
            normal=list(task.force),
            stiffness=settings.stiffness,
            stiffness_factor=settings.stiffness_factor,
            stiffness_depth_walk=settings.stiffness_depth_walk,
            point=list(told.point),
            point_std=[2e-3, 2e-3, 0.0],
        )
        return dataclasses.replace(observer, contacts=[one])
    hinge = [
        dataclasses.replace(
            common, name=c.name, normal=list(c.stiffness), point=list(c.point), point_std=[0.0] * 3, law="spring"
        )
        for c in task.contacts
    ]
    return dataclasses.replace(observer, contacts=hinge, modes=[[], [c.name for c in hinge]])


def _with_rest(settings: _Settings, rest: np.ndarray) -> _Settings:
    """Put every contact's rest at ``rest`` (3,) [m] where the settings leave it open: what the task supposes."""
    contacts = [dataclasses.replace(c, rest=rest.tolist()) if c.rest == "start" else c for c in settings.contacts]
    return dataclasses.replace(settings, contacts=contacts)
