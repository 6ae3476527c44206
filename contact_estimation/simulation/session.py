"""A running scenario: arm, surfaces, controller, motion and sensors, sample by sample, with a seed."""

from __future__ import annotations

import dataclasses
import warnings
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from contact_estimation.control.admittance import AdmittanceController
from contact_estimation.control.impedance import CartesianImpedance
from contact_estimation.exceptions import DriverError
from contact_estimation.robot import Arm, load_arm
from contact_estimation.robot.actuators import joint_strength
from contact_estimation.robot.sample import Sample
from contact_estimation.settings import replace
from contact_estimation.simulation.arm import SimulatedArm
from contact_estimation.simulation.scenarios.motion import Motion, Reference
from contact_estimation.simulation.scenarios.settings import ScenarioSettings, SurfaceSettings, load_scenario
from contact_estimation.simulation.sensors.pipeline import SensorPipeline
from contact_estimation.simulation.sensors.settings import ImperfectionSettings, imperfections_of, strength
from contact_estimation.simulation.surfaces import Anchor, Face, Surface

#: [kg m^2 / Nm] Reflected rotor inertia over effort limit, about that of the FR3's large joints.
_ROTOR_SHARE = 5e-3


class Simulation:
    """An arm in a scenario. :meth:`step` advances by one sample; :meth:`command` takes over from the scenario's motion.

    Args:
        scenario: the scenario.
        arm: the robot.
        imperfections: sensors and joints.
        seed: of everything random.

    Attributes:
        plant: the simulated arm with everything true.
        rest: nominal place of the first surface (3,) [m], as the motion supposes it (without the scenario's placement
            error).
        equilibrium: wanted TCP pose (position, rotation) now.
        follow_stiffly: an admittance-controlled arm follows commands without yielding, as a robot's own servo does.
    """

    def __init__(
        self, scenario: ScenarioSettings, arm: Arm, imperfections: ImperfectionSettings, seed: int = 0
    ) -> None:
        q, word = scenario.for_robot(arm)
        if word == "impedance" and not arm.motor.armature.any():
            arm = with_assumed_rotors(arm)
        self.scenario, self.arm, self.imperfections = scenario, arm, imperfections
        physics, sensors, self._timing_rng = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
        position, rotation = arm.tcp_pose(q)
        point = np.array(scenario.tool_points[0], float)
        origin = position + rotation @ point
        surfaces = [make_surface(s, origin + scenario.placement_error) for s in scenario.surfaces]
        self.rest = origin + np.array(scenario.surfaces[0].offset) if scenario.surfaces else origin
        self.plant = SimulatedArm(
            arm, q, surfaces, np.array(scenario.tool_points, float), imperfections, scenario.timestep, physics
        )
        self._sensors = SensorPipeline(imperfections, arm.n, 1.0 / scenario.rate, sensors)
        self._motion = Motion(scenario.motion, position, rotation, point)
        self._control_period = 1.0 / scenario.control_rate
        self._substeps = round(self._control_period / scenario.timestep)
        self.uses_impedance = word == "impedance"
        self.controller: CartesianImpedance | AdmittanceController
        if self.uses_impedance:
            self.controller = CartesianImpedance(arm, scenario.impedance)
        else:
            self.controller = AdmittanceController(arm, scenario.admittance, self._control_period)
        self._arm_outside = arm.for_another_thread()
        self.equilibrium = self.controller.reset(self._controlled_position())
        self._commanded, self._twist = False, np.zeros(6)
        self.follow_stiffly = False
        self._queue: deque[tuple[float, Sample]] = deque()
        self._due = 0.0

    @property
    def period(self) -> float:
        """Nominal sampling period [s]."""
        return 1.0 / self.scenario.rate

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.plant.time

    def command(
        self, position: np.ndarray, rotation: np.ndarray | None = None, twist: np.ndarray | None = None
    ) -> None:
        """Set the equilibrium; the scenario's motion ends here.

        Args:
            position: of the TCP (3,) [m], base frame.
            rotation: of the TCP (3, 3), base frame; default as it is.
            twist: (6,) linear [m/s] over angular [rad/s], base axes, which admittance control follows without lag;
                default at rest.

        Raises:
            DriverError: it is not finite.
        """
        position = np.array(position, float)
        rotation = self.equilibrium[1] if rotation is None else np.array(rotation, float)
        if (
            position.shape != (3,)
            or rotation.shape != (3, 3)
            or not np.isfinite(position).all()
            or not np.isfinite(rotation).all()
        ):
            raise DriverError(
                f"simulation: the commanded equilibrium must be a finite pose, found {position}, {rotation}"
            )
        self.equilibrium, self._commanded = (position, rotation), True
        self._twist = np.zeros(6) if twist is None else np.array(twist, float)

    def comply(self, stiffness: np.ndarray, admittance_damping: float) -> None:
        """Let the arm follow commands as an impedance, whatever the scenario's own motion is followed with.

        Args:
            stiffness: (3,) [N/m], base axes.
            admittance_damping: of a position-controlled arm [Ns/m].
        """
        if isinstance(self.controller, CartesianImpedance):
            self.controller.comply(stiffness)
        else:
            self.controller.comply(stiffness, admittance_damping)

    def pressing(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tell TCP position (3,) [m] and rotation that are held now, and the force (3,) [N] the arm presses with.

        One thread beside the one that simulates may ask: its questions share the buffers of one arm.
        """
        arm = self._arm_outside
        if isinstance(self.controller, CartesianImpedance):
            x, _ = arm.tcp_pose(self._controlled_position())
            return x, self.equilibrium[1].copy(), self.controller.spring_force(x, self.equilibrium[0])
        x, rotation = arm.tcp_pose(self.controller.q_ref)
        return x, rotation, -self.plant.rotation @ self.plant.wrench_tcp[:3]

    def step(self) -> Sample:
        """Advance to the next sample and return it; with a delay, the sample that arrives then."""
        while True:
            self._due += self._interval()
            while self.plant.time < self._due - 0.5 * self.plant.timestep:
                self._control()
            sample = self._take()
            timing = self.imperfections.timing
            scale = strength(timing)
            if scale * timing.loss > 0 and self._timing_rng.random() < scale * timing.loss:
                continue
            self._queue.append((self.plant.time + scale * timing.delay, sample))
            if self._queue[0][0] <= self.plant.time + 1e-9:
                return self._queue.popleft()[1]

    def run(self, seconds: float | None = None) -> Iterator[Sample]:
        """Yield samples of ``seconds`` [s] of simulated time (default: until the motion ends), one by one."""
        end = self.plant.time + (self.scenario.duration if seconds is None else seconds)
        while self.plant.time < end - 0.5 * self.period:
            yield self.step()

    def _interval(self) -> float:
        timing = self.imperfections.timing
        jitter = strength(timing) * timing.jitter
        if jitter == 0:
            return self.period
        return max(self.period + jitter * self._timing_rng.standard_normal(), self.plant.timestep)

    def _take(self) -> Sample:
        reading = self._sensors.read(self.plant)
        timing = self.imperfections.timing
        stamp = self.plant.time + strength(timing) * timing.stamp_jitter * self._timing_rng.standard_normal()
        return Sample(round(stamp * 1e9), reading.q, reading.dq, reading.tau, reading.wrench_tcp, self.plant.truth())

    def _controlled_position(self) -> np.ndarray:
        return np.array(self._sensors.position(self.plant))

    def _control(self) -> None:
        plant = self.plant
        q, dq = self._controlled_position(), plant.motor_velocity
        forces = [push.force_at(plant.time) for push in self.scenario.pushes]
        plant.pushes = [
            (push.joint, np.array(push.point), force)
            for push, force in zip(self.scenario.pushes, forces)
            if force.any()
        ]
        reference = None if self._commanded else self._motion.at(plant.time)
        if reference is not None:
            position, force = reference.position, reference.segment.force
            if (
                isinstance(self.controller, CartesianImpedance) and force is not None
            ):  # what stretches the spring by the wanted force
                position = position + np.array(force) / self.controller.stiffness
            self.equilibrium = position, reference.rotation
        if isinstance(self.controller, CartesianImpedance):
            torque = self.controller.torque(q, dq, *self.equilibrium)
        else:
            self._admit(self.controller, reference)
            torque = self.controller.torque(q, dq)
        for _ in range(self._substeps):
            plant.step(torque)

    def _admit(self, controller: AdmittanceController, reference: Reference | None) -> None:
        rotation, wrench = self.plant.rotation, self.plant.wrench_tcp
        measured = np.concatenate([rotation @ wrench[:3], rotation @ wrench[3:]])
        if reference is None:
            felt = None if self.follow_stiffly else measured
            controller.update(*self.equilibrium, self._twist, None, felt)
        else:
            segment = reference.segment
            force = None if segment.force is None else np.array(segment.force)
            controller.update(
                reference.position, reference.rotation, reference.twist, force, measured, segment.free_rotation
            )


def make_surface(settings: SurfaceSettings, origin: np.ndarray) -> Surface:
    """Make the surface that ``settings`` describe, with places relative to ``origin`` (3,) [m]."""
    point = origin + np.array(settings.offset)
    if settings.kind == "anchor":
        return Anchor(settings.name, point, settings.stiffness * np.array(settings.stiffness_axes), settings.damping)
    return Face(
        settings.name,
        point,
        settings.normal,
        settings.stiffness,
        settings.damping,
        settings.friction,
        settings.tangential,
        [(bound.direction, bound.length) for bound in settings.bounds],
        settings.depth,
        (settings.hysteresis, settings.hysteresis_length),
        settings.stiffening,
    )


def with_assumed_rotors(arm: Arm) -> Arm:
    """Return the arm with rotors as large as those of similar drives, and warn.

    Torque control of light links without rotors is unstable at any sampling rate that robots have.

    Args:
        arm: without ``rotor_inertia`` in its profile.
    """
    reflected = _ROTOR_SHARE * joint_strength(arm)  # (n,) [kg m^2]
    warnings.warn(
        f"robot '{arm.name}' has no rotor_inertia in its YAML; under torque control it is simulated with "
        f"{np.round(reflected, 3).tolist()} kg m^2 on the joint side",
        stacklevel=4,
    )
    rotors = [float(inertia) for inertia in reflected / arm.motor.gear_ratio**2]
    return Arm(dataclasses.replace(arm.settings, rotor_inertia=rotors))


def open_simulation(
    scenario: str, robot: str | Arm | None = None, imperfections: str | None = None, seed: int = 0, **changes: Any
) -> Simulation:
    """Make a simulation by names.

    Args:
        scenario: of the robot, a shipped one, or the path of a YAML.
        robot: a robot by name or path, or an arm; default the scenario's.
        imperfections: sensors and joints as :func:`imperfections_of` takes them; default the robot's own.
        seed: of everything random.
        **changes: replace keys of the scenario, for example ``placement_error=[0, 0, 0.02]``.

    Raises:
        ConfigError: an unknown name, or a setting that cannot be used.
    """
    given = robot if isinstance(robot, Arm) else load_arm(robot) if robot else None
    settings = load_scenario(scenario, given.settings.folder if given else None)
    if changes:
        settings = replace(settings, f"scenario {scenario}", **changes)
    arm = given or load_arm(settings.robot)
    return Simulation(settings, arm, imperfections_of(arm, imperfections or "", settings.timestep), seed)
