"""A UR arm presses through the RTDE driver: driver, default observer, fusion with the wrist sensor, controller.

Everything between the registers of the controller and the command is what runs on a robot. The controller is simulated,
in simulated time (``ur_link``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ur_link import SimulatedLink

from contact_estimation.control.controller import ControllerState, Observation
from contact_estimation.control.mpc.settings import MpcSettings, load_mpc_settings
from contact_estimation.control.registry import make_controller
from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.drivers.rtde import CONTROLLER_BASE, RtdeBackend, RtdeSettings
from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.filters.registry import open_stream
from contact_estimation.filters.wrist_sensor import WristForce
from contact_estimation.robot import load_arm
from contact_estimation.settings import replace, to_mapping
from contact_estimation.simulation.rtde.controller import UrController
from contact_estimation.simulation.scenarios import load_scenario
from contact_estimation.simulation.sensors.settings import load_imperfections
from contact_estimation.simulation.session import Simulation

ROBOT, SCENARIO, SENSORS = "ur16e", "linear_contact", "ur16e_driver"


@dataclass(frozen=True, kw_only=True)
class UrPressOptions:
    """What one press changes.

    Attributes:
        task: of the controller.
        controller: word of the controller.
        observer: its name, or its file.
        stiffness: of the surface [N/m].
        sensor: whether the wrist sensor is used.
        offset: of the wrist sensor along the TCP's z [N].
        seed: of everything random.
        air: between tool and surface at the start [m].
        settle: time before the approach [s].
        approach_speed: of the equilibrium [m/s].
        approach_force: that ends the approach [N].
        keep_samples: keep all samples for the recorder, some 2 kB each.
    """

    task: str = "mpc_plane_ur16e"
    controller: str = "pi"
    observer: str = "contact_imm"
    stiffness: float = 26000.0
    sensor: bool = True
    offset: float = 0.0
    seed: int = 0
    air: float = 4e-4
    settle: float = 1.5
    approach_speed: float = 0.01
    approach_force: float = 15.0
    keep_samples: bool = False


@dataclass
class UrPressRecord:
    """One row per sample from the start of the controller at t = 0.

    Attributes:
        t: (N,) [s].
        force: true force (N,) [N] along the wanted one.
        used: force (N,) [N] that the controller saw.
        wanted: [N].
        active: whether the controller was active (N,).
        ticks: (K, 3) every tick of the robot's controller from a fault on, also without samples: time [s], true force
            along the wanted one [N], speed that it commands the tool [m/s].
        refused: commands that the driver refused, by reason.
        samples: all samples, for the recorder, where they were to be kept.
    """

    t: np.ndarray
    force: np.ndarray
    used: np.ndarray
    wanted: float
    active: np.ndarray
    ticks: np.ndarray
    refused: dict[str, int]
    samples: list[Sample]

    def rmse(self, after: float) -> float:
        """Return the RMSE [N] of the force later than ``after`` [s]."""
        return float(np.sqrt(np.mean((self.force - self.wanted)[self.t > after] ** 2)))

    def save(self, path: Path) -> None:
        """Write the samples as a recording (.npz)."""
        arm = load_arm(ROBOT)
        wrench = np.array([s.wrench_tcp for s in self.samples])
        np.savez_compressed(
            path,
            stamps_ns=np.array([s.stamp_ns for s in self.samples]),
            q=np.array([s.q for s in self.samples]),
            dq=np.array([s.dq for s in self.samples]),
            tau=np.array([s.tau for s in self.samples]),
            f_tcp=wrench[:, :3],
            torque_tcp=wrench[:, 3:],
            joint_names=np.array(arm.joint_names),
            robot=ROBOT,
            sensors=SENSORS,
        )


class UrPress:
    """A press through the driver."""

    def __init__(self, options: UrPressOptions) -> None:
        self.options, self.arm = options, load_arm(ROBOT)
        self.task: MpcSettings = load_mpc_settings(options.task)
        simulation = self._world()
        gains = self.task.impedance
        damping = gains.damping_factor * float(np.sqrt(gains.stiffness[2]))
        settings = RtdeSettings(
            control=True, impedance_stiffness=list(gains.stiffness), admittance_damping=damping, max_backlog=0.0
        )
        self.ur = UrController(simulation)
        self.link = SimulatedLink(self.ur, settings.command_timeout)
        self.backend = RtdeBackend(self.arm, settings, self.link, self.link.now)
        self.backend.connect()
        self.stream = open_stream(self.arm, options.observer, sensors=SENSORS)
        self.wrist = WristForce()
        self.controller = make_controller(options.controller, self.arm, self.task, deadline=np.inf)
        self._normal = np.array(self.task.force) / np.linalg.norm(self.task.force)
        self._rows: list[tuple[float, float, float, bool]] = []
        self._ticks: list[tuple[float, float, float]] = []
        self._samples: list[Sample] = []
        self._refused: dict[str, int] = {}
        self._executed = True

    def _world(self) -> Simulation:
        scenario, imperfections = load_scenario(SCENARIO), load_imperfections(ROBOT)
        changed = {"stiffness": self.options.stiffness, "offset": [0.0, 0.0, -self.options.air]}
        surfaces = [dataclasses.replace(s, **changed) for s in scenario.surfaces]
        scenario = replace(scenario, SCENARIO, surfaces=[to_mapping(s) for s in surfaces])
        wrench = dataclasses.replace(imperfections.wrench, bias=[0.0, 0.0, self.options.offset])
        return Simulation(scenario, self.arm, dataclasses.replace(imperfections, wrench=wrench), self.options.seed)

    def run(self, seconds: float, fault: tuple[float, Callable[[UrPress], None]] | None = None) -> UrPressRecord:
        """Settle, approach, press for ``seconds``.

        Args:
            seconds: under the controller [s].
            fault: time [s] under the controller, and what happens then.

        Raises:
            ConfigError: the approach found no contact.
        """
        observation = self._approach()
        begin = self.link.now()
        equilibrium = self.backend.equilibrium()
        command = self.controller.activate(observation, None if equilibrium is None else equilibrium.position)
        every, k = round(self.backend.settings.rate / self.task.rate), 0
        while self.link.now() < begin + seconds:
            if fault is not None and self.link.now() >= begin + fault[0]:
                fault[1](self)
                fault = None
                self.link.on_tick = lambda: self._ticks.append((self.link.now() - begin, self._force(), self._speed()))
            observation = self._observe()
            t = self.link.now() - begin
            if k % every == 0:
                command = self.controller.update(t, observation) or command
                self._command(EquilibriumPose(command.position, command.rotation))
            k += 1
            self._rows.append(self._row(t, observation))
        t_, force, used, active = (np.array(column) for column in zip(*self._rows))
        ticks = np.array(self._ticks).reshape(-1, 3)
        wanted = float(np.linalg.norm(self.task.force))
        return UrPressRecord(t_, force, used, wanted, active, ticks, self._refused, self._samples)

    def break_sensor(self, jump: float, drift: float) -> None:
        """Let the sensor err along the wanted force from now on.

        Args:
            jump: at once [N].
            drift: [N/s].
        """
        begin, along = self.link.now(), CONTROLLER_BASE @ self._normal
        self.link.force_error = lambda t: (jump + drift * (t - begin)) * along

    def declare_lost(self) -> None:
        """Let the controller hold, as after a lost contact."""
        self.controller._hold("contact lost: as declared", latch=True, lost=True)  # type: ignore[attr-defined]

    def _approach(self) -> Observation:
        """Settle, and move against the wanted force until it is felt; returns the last observation."""
        o = self.options
        for _ in range(round(o.settle * self.backend.settings.rate)):
            observation = self._observe()
        start, rotation = self.arm.tcp_pose(observation.q)
        begin, reach = self.link.now(), 2.0 * self.task.safety.max_travel
        while observation.force is None or float(self._normal @ observation.force) < o.approach_force:
            way = o.approach_speed * (self.link.now() - begin)
            if way > reach:
                raise ConfigError(f"the approach of {SCENARIO} found no contact within {reach:g} m")
            self._command(EquilibriumPose(start - way * self._normal, rotation))
            observation = self._observe()
        return observation

    def _observe(self) -> Observation:
        """Read a sample; returns what the controller is told of it."""
        sample = self.backend.read()
        if sample is None or sample.wrench_tcp is None:
            raise DriverError("the driver has no sample with a wrench")
        if self.options.keep_samples:
            self._samples.append(sample)
        self.stream.push_fast(sample.stamp_ns, sample.q, sample.dq, sample.tau)
        estimate = self.stream.estimate()
        observation = dataclasses.replace(Observation.of(estimate), executed=self._executed)
        if not self.options.sensor:
            return observation
        t = 1e-9 * sample.stamp_ns
        self.wrist.add(t, sample.wrench_tcp[:3])
        if not observation.valid:
            return observation
        reading = self.wrist.update(t, t, sample.wrench_tcp, estimate)
        if self.wrist.learnt:
            self.backend.force_offset = self.wrist.offset
        if reading.problem:
            return dataclasses.replace(observation, valid=False, reason=f"wrist sensor: {reading.problem}")
        _, rotation = self.arm.tcp_pose(sample.q)
        return observation.with_sensor(rotation @ reading.force, reading.drift)

    def _command(self, pose: EquilibriumPose) -> None:
        try:
            self.backend.command(pose)
            self._executed = True
        except DriverError as error:
            self._executed = False
            self._refused[str(error)] = self._refused.get(str(error), 0) + 1

    def _row(self, t: float, observation: Observation) -> tuple[float, float, float, bool]:
        used = 0.0 if observation.force is None else float(self._normal @ observation.force)
        return t, self._force(), used, self.controller.state is ControllerState.ACTIVE

    def _force(self) -> float:
        """Return the true force [N] along the wanted one."""
        plant = self.ur.simulation.plant
        return float(self._normal @ (plant.rotation @ plant.wrench_tcp[:3]))

    def _speed(self) -> float:
        """Return the speed [m/s] that the robot's controller commands the tool."""
        simulation = self.ur.simulation
        twist = self.arm.tcp_jacobian(simulation.plant.q) @ simulation.controller.dq_ref  # type: ignore[union-attr]
        return float(np.linalg.norm(twist[:3]))
