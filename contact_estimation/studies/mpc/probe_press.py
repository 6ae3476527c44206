"""Paper 4 to paper 2: an arm explores an unknown surface, and the MPC presses and slides with the identified contact.

The physics simulation carries the arm, its joint friction, elastic gears and sensors. The explorer drives it through
the impedance controller, the probing filter sees the sensors only, and the MPC's contact is the probed one. For
comparison the MPC presses with the guess at the first touch: normal, tip, stiffness, and the height there.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from contact_estimation.control.controller import ControllerState, Observation
from contact_estimation.control.mpc.controller import MpcController
from contact_estimation.control.mpc.settings import load_mpc_settings
from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.excitation import ExcitationSettings
from contact_estimation.identify.probing.explore import Exploration, Explorer, ExploreSettings
from contact_estimation.identify.probing.export import compliant_contact, contact_settings, surface_estimate
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.robot import load_arm
from contact_estimation.settings import config_for_robot, from_yaml, key, non_negative, positive, replace, to_mapping
from contact_estimation.simulation.scenarios import load_scenario
from contact_estimation.simulation.sensors.settings import load_imperfections, scaled
from contact_estimation.simulation.session import Simulation
from contact_estimation.studies.mpc.probe_arm import ImpedanceProbe
from contact_estimation.studies.probing.score import angle_between
from contact_estimation.studies.probing.simulated_probe import CUT, PRESLIDING_STIFFNESS, WIDE, surface_angles

#: The guessed surface: level.
_LEVEL = np.eye(3)


@dataclass(frozen=True, kw_only=True)
class ProbePressSettings:
    """One experiment: exploration of a random surface, then the MPC on it."""

    scenario: str = key(doc="scenario of config/tasks whose start posture and rates are used")
    robot: str = key(doc="robot")
    mpc: str = key(
        doc="MPC task in tasks/ of the robot: gains, weights, horizon; contact, force and path come from here"
    )
    friction_scale: float = key(
        1.0, doc="share of the simulated joints' friction that the robot's own compensation leaves", check=non_negative
    )
    sensing: str = key("wrench", choices=("wrench", "torque"), doc="wrench of a flange sensor, or from joint torque")
    torque_std: list[float] = key(
        [], doc="white error of the external torque per joint, for sensing: torque", unit="Nm", check=positive
    )
    tip: list[float] = key(doc="guess of the probe's tip", unit="m, TCP frame", length=3)
    clearance: float = key(0.01, doc="height of the true tip over the surface at the start", unit="m", check=positive)
    damping: float = key(10.0, doc="damping of the simulated surface", unit="Ns/m", check=non_negative)
    tare: float = key(
        0.5, doc="time in free space over which the sensor's offset is averaged", unit="s", check=positive
    )
    force: float = key(30.0, doc="target normal force under MPC", unit="N", check=positive)
    path: float = key(0.04, doc="distance along the surface under MPC, there and back", unit="m", check=non_negative)
    duration: float = key(8.0, doc="time under MPC", unit="s", check=positive)
    probing: ProbingSettings = key(ProbingSettings(), doc="priors, noise, events and rule of the estimator")
    explore: ExploreSettings = key(ExploreSettings(), doc="targets and limits of the exploration")
    excitation: ExcitationSettings = key(ExcitationSettings(), doc="shape of the strokes")


def load_probe_settings(robot: str) -> ProbePressSettings:
    """Load the settings of the experiment on ``robot``; raises ConfigError for an unknown one."""
    return from_yaml(ProbePressSettings, config_for_robot("tasks", "probe_press", robot))


@dataclass(frozen=True)
class Surface:
    """What is planted.

    Attributes:
        tip: (3,) [m], TCP frame.
        normal: outward unit normal (3,), base axes.
        stiffness: [N/m].
        friction: coefficient.
    """

    tip: np.ndarray
    normal: np.ndarray
    stiffness: float
    friction: float


@dataclass(frozen=True)
class PressRecord:
    """What happened under MPC, one row per sample.

    Attributes:
        t: (N,) since the MPC's start [s].
        force: true normal force (N,) [N].
        wanted: wanted normal force [N].
        slide: way along the wanted path (N,) [m].
        spring: unclipped impedance force (N,) [N].
        force_limit: its limit [N].
        reasons: of ticks that were not ACTIVE.
    """

    t: np.ndarray
    force: np.ndarray
    wanted: float
    slide: np.ndarray
    spring: np.ndarray
    force_limit: float
    reasons: list[str]

    def force_rmse(self, after: float = 1.0) -> float:
        """Return the RMS error of the normal force [N], later than ``after`` [s]."""
        return float(np.sqrt(np.mean((self.force[self.t > after] - self.wanted) ** 2)))


@dataclass(frozen=True)
class Explored:
    """Exploration with its truth.

    Attributes:
        exploration: what the explorer found.
        planted: (8,) as the filter has its parameters; the offset is NaN.
        errors: (4,) tip [m], normal [rad], stiffness [N/m], friction.
        max_force: largest norm of the true force [N].
    """

    exploration: Exploration
    planted: np.ndarray
    errors: np.ndarray
    max_force: float


def draw(settings: ProbePressSettings, rng: np.random.Generator) -> Surface:
    """Draw a surface and tip around the guess with the probing settings' spread, cut as in the simulated probe."""
    cfg = settings.probing
    error = np.clip(rng.standard_normal(5), -CUT, CUT)
    a, b = cfg.angle_start_std * error[3:]
    stiffness, friction = WIDE * rng.uniform(-1.0, 1.0, 2)
    return Surface(
        np.array(settings.tip) + cfg.tip_start_std * error[:3],
        np.array([np.sin(b), -np.sin(a) * np.cos(b), np.cos(a) * np.cos(b)]),
        cfg.stiffness_start + stiffness * cfg.stiffness_start_std,
        cfg.friction_start + friction * cfg.friction_start_std,
    )


def probe_and_press(settings: ProbePressSettings, seed: int) -> tuple[Explored, PressRecord, PressRecord]:
    """Explore the surface of ``seed``, then press under MPC with the probed and, anew, with the guessed contact.

    Raises:
        IdentificationError: no contact, or the arm cannot go on.
    """
    experiment = ProbePress(settings, seed)
    return *experiment.explore(), experiment.touch()


class ProbePress:
    """One surface, drawn by ``seed``; every run begins anew in free space over it."""

    def __init__(self, settings: ProbePressSettings, seed: int = 0) -> None:
        self.settings, self._seed = settings, seed
        self.arm = load_arm(settings.robot)
        self.truth = draw(settings, np.random.default_rng([seed, 4]))
        self._mpc = load_mpc_settings(settings.mpc)

    def explore(self) -> tuple[Explored, PressRecord]:
        """Touch, explore, and press under MPC with the probed contact.

        Raises:
            IdentificationError: no contact, or the arm cannot go on.
        """
        simulation, probe, explorer = self._begin()
        explorer.touch()
        found = explorer.probe()
        known, model = found.estimate, explorer.model
        explored = Explored(found, self._planted(), self._errors(known, model), probe.max_force)
        return explored, self._press(simulation, probe, known, model)

    def touch(self) -> PressRecord:
        """Touch, and press under MPC with what is known then.

        Raises:
            IdentificationError: no contact.
        """
        simulation, probe, explorer = self._begin()
        return self._press(simulation, probe, explorer.touch(), explorer.model)

    def _begin(self) -> tuple[Simulation, ImpedanceProbe, Explorer]:
        cfg, simulation = self.settings, self._simulation()
        probe = ImpedanceProbe(simulation, cfg.torque_std if cfg.sensing == "torque" else [], cfg.tare)
        return simulation, probe, Explorer(probe, cfg.tip, _LEVEL, cfg.probing, cfg.explore, cfg.excitation)

    def _simulation(self) -> Simulation:
        cfg, truth = self.settings, self.truth
        scenario = load_scenario(cfg.scenario)
        surface = {
            "name": "surface",
            "offset": (-cfg.clearance * truth.normal).tolist(),
            "normal": truth.normal.tolist(),
            "stiffness": truth.stiffness,
            "damping": cfg.damping,
            "friction": truth.friction,
            "tangential": PRESLIDING_STIFFNESS / truth.stiffness,
        }
        scenario = replace(
            scenario,
            cfg.scenario,
            tool_points=[truth.tip.tolist()],
            surfaces=[surface],
            impedance=to_mapping(self._mpc.impedance),
            controller={cfg.robot: "impedance"},
        )
        imperfections = scaled(load_imperfections(cfg.robot), friction=cfg.friction_scale)
        return Simulation(scenario, self.arm, imperfections, self._seed)

    def _planted(self) -> np.ndarray:
        truth = self.truth
        angles = surface_angles(_LEVEL[None], truth.normal[None])[0]
        return np.concatenate([truth.tip, angles, [np.nan, truth.stiffness, truth.friction]])

    def _errors(self, known: ProbingEstimate, model: SpatialModel) -> np.ndarray:
        normal = model.normal(known.free)
        tip, turned = np.linalg.norm(known.mean[:3] - self.truth.tip), angle_between(normal, self.truth.normal)
        return np.array([tip, turned, *np.abs(known.mean[6:] - [self.truth.stiffness, self.truth.friction])])

    def _press(
        self, simulation: Simulation, probe: ImpedanceProbe, known: ProbingEstimate, model: SpatialModel
    ) -> PressRecord:
        """Press under MPC on the contact ``known``, from where the arm is."""
        cfg, normal = self.settings, model.normal(known.free)
        tangent = np.array([1.0, 0.0, 0.0]) - normal[0] * normal
        tangent /= np.linalg.norm(tangent)
        contact = contact_settings(compliant_contact(known, model, probe.pose))
        settings = dataclasses.replace(
            self._mpc, contacts=[contact], force=(cfg.force * normal).tolist(), path=(cfg.path * tangent).tolist()
        )
        controller = MpcController(self.arm, settings, deadline=math.inf)
        every = round(simulation.scenario.rate / settings.rate)
        command = controller.activate(self._observation(simulation, probe, known, model))
        rows, reasons, stiffness = [], [], np.array(settings.impedance.stiffness)
        begin, start = simulation.time, simulation.plant.position.copy()
        for k in range(max(round(cfg.duration * simulation.scenario.rate), 1)):
            simulation.command(command.position, command.rotation)
            probe.take(simulation.step())
            plant = simulation.plant
            rows.append(
                (
                    simulation.time - begin,
                    float(self.truth.normal @ (plant.rotation @ plant.wrench_tcp[:3])),
                    float(tangent @ (plant.position - start)),
                    float(np.linalg.norm(stiffness * (command.position - plant.position))),
                )
            )
            if k % every == 0:
                observation = self._observation(simulation, probe, known, model)
                command = controller.update(rows[-1][0], observation) or command
                if command.state is not ControllerState.ACTIVE:
                    reasons.append(command.reason)
        t, force, slide, spring = np.array(rows).T
        return PressRecord(t, force, cfg.force, slide, spring, settings.impedance.max_force, reasons)

    def _observation(
        self, simulation: Simulation, probe: ImpedanceProbe, known: ProbingEstimate, model: SpatialModel
    ) -> Observation:
        sample, pose = probe.sample, probe.pose
        contact = compliant_contact(known, model, pose)
        wrench = probe.sense()
        return Observation.of(surface_estimate(contact, simulation.time, sample.q, sample.dq, pose[:3, :3], wrench))
