"""Parameters of the nodes: schema, defaults and documentation (no ROS in here)."""

from __future__ import annotations

from dataclasses import dataclass

from contact_estimation.settings import key, non_negative, positive


@dataclass(frozen=True, kw_only=True)
class RobotParameters:
    """The parameter every node of an arm has."""

    robot: str = key("ur16e", doc="robot: shipped name of config/robots, or path of a YAML")


@dataclass(frozen=True, kw_only=True)
class EstimatorParameters(RobotParameters):
    """Parameters of ``estimator`` and ``momentum_observer``."""

    observer: str = key("contact_bank", doc="observer: shipped name of config/observers, or path of a YAML")
    sensors: str = key(
        "", doc="sensor set: shipped name of config/sensors, or path of a YAML; empty: the observer's or robot's own"
    )
    people_rate: float = key(25.0, unit="Hz", check=positive, doc="rate of the markers")
    diagnostics_rate: float = key(
        1.0, unit="Hz", check=positive, doc="rate of the diagnostics; a change of validity is told at once"
    )
    arrow_scale: float = key(0.003, unit="m/N", check=positive, doc="length of the force arrow per newton")
    arrow_hide_below: float = key(2.0, unit="N", check=non_negative, doc="forces smaller than this show no arrow")


@dataclass(frozen=True, kw_only=True)
class DriverParameters(RobotParameters):
    """What the drivers without hardware share."""

    wait_for_subscribers: int = key(
        1, check=non_negative, doc="publish nothing before this many listen to joint_states"
    )
    rate: float = key(
        1.0, check=positive, doc="speed factor: 2 publishes twice as fast; stamps keep the samples' own spacing"
    )


@dataclass(frozen=True, kw_only=True)
class ReplayParameters(DriverParameters):
    """Parameters of ``replay_driver``."""

    recording: str = key("", doc="path of the rosbag2 or .npz to play")
    keep_stamps: bool = key(False, doc="publish the recorded stamps instead of present ones")
    loop: bool = key(False, doc="start again at the end; with kept stamps the estimators see the jump back and restart")


@dataclass(frozen=True, kw_only=True)
class SimulatedParameters(DriverParameters):
    """Parameters of ``simulated_driver``."""

    duration: float = key(10.0, unit="s", check=positive, doc="length of the simulated press")
    seed: int = key(0, check=non_negative, doc="seed of the sensor noise")
    engine: str = key(
        "coupled",
        choices=("coupled", "physics"),
        doc="what computes the simulated press: coupled is the package's "
        "own dynamics, physics the physics engine with friction, elastic gears and real sensors",
    )


@dataclass(frozen=True, kw_only=True)
class CombinedParameters(EstimatorParameters, ReplayParameters, SimulatedParameters):
    """Parameters of ``combined``: the estimator's, and those of the chosen driver."""

    driver: str = key("simulated", doc="source of the samples", choices=("simulated", "replay"))
    wait_for_subscribers: int = key(0, check=non_negative, doc="start only when this many listen to joint_states")


@dataclass(frozen=True, kw_only=True)
class RobotDriverParameters(ReplayParameters, SimulatedParameters):
    """Parameters of ``driver``: those of the chosen one are used."""

    driver: str = key(
        "sim",
        doc="the robot: simulated, UR, joint-torque arm, recording, Franka",
        choices=("sim", "rtde", "joint_torque", "replay", "franka"),
    )
    duration: float = key(0.0, unit="s", check=non_negative, doc="sim: how long; 0: as long as the scenario's motion")
    scenario: str = key("linear_contact", doc="sim: shipped scenario of config/tasks, or path of a YAML")
    imperfections: str = key(
        "",
        doc="sim: sensors and joints, shipped name of config/sensors/simulated_arms or path of a YAML; empty: the "
        "robot's own",
    )
    host: str = key("127.0.0.1", doc="rtde, franka: address of the controller")
    control: bool = key(False, doc="rtde: also open the control interface, so that commands can be sent")
    torque_source: str = key("current", doc="rtde: where torque comes from", choices=("current", "target_moment"))
    torque_meaning: str = key(
        "total",
        doc="joint_torque: what the arm's driver publishes as effort",
        choices=("total", "gravity_compensated", "external"),
    )
    joint_states_in: str = key("franka/joint_states", doc="joint_torque: topic of the arm's own driver")
    estimate_topic: str = key("estimator/contact_estimate", doc="estimates that keep the deadman of the commands happy")
    safety: str = key(
        "", doc="limits of the commands: shipped name of config/limits, or path of a YAML; empty: the defaults"
    )
    impedance_stiffness: list[float] = key(
        [1000.0, 1000.0, 1000.0],
        doc="stiffness the equilibrium is followed with; sim and rtde realise it, another arm's controller must have "
        "it",
        unit="N/m",
        check=positive,
        length=3,
    )
    admittance_damping: float = key(
        4000.0,
        doc="force per commanded speed where a position-controlled arm realises that stiffness (rtde, sim)",
        unit="Ns/m",
        check=positive,
    )

    def backend_options(self) -> dict:
        """``options`` of the chosen driver for :func:`~contact_estimation.drivers.registry.make_backend`.

        The stiffness the force limit is reckoned with is the one with which the equilibrium is followed.
        """
        if self.driver == "sim":
            return {"stiffness": self.impedance_stiffness, "admittance_damping": self.admittance_damping}
        if self.driver == "rtde":
            return {
                "torque_source": self.torque_source,
                "control": self.control,
                "impedance_stiffness": self.impedance_stiffness,
                "admittance_damping": self.admittance_damping,
            }
        return {"torque_meaning": self.torque_meaning} if self.driver == "joint_torque" else {}


@dataclass(frozen=True, kw_only=True)
class RecorderParameters:
    """Parameters of ``recorder``."""

    bag: str = key(doc="folder of the new bag (MCAP); must not exist")
    topics: list[str] = key(doc="topics to record, each as NAME:PACKAGE/msg/TYPE")


@dataclass(frozen=True, kw_only=True)
class MpcParameters:
    """Parameters of ``mpc``."""

    robot: str = key("fr3", doc="robot: shipped name of config/robots, or path of a YAML")
    task: str = key("mpc_plane_fr3", doc="MPC task: shipped name of config/tasks, or path of a YAML")
    solver: str = key("", doc="rti or ipopt; empty: the task's own", choices=("", "rti", "ipopt"))
    estimates: str = key("estimator/contact_estimate", doc="topic of the contact estimates")
    people_rate: float = key(25.0, unit="Hz", check=positive, doc="rate of predictions and markers for people")
    diagnostics_rate: float = key(
        1.0, unit="Hz", check=positive, doc="rate of the diagnostics; a change of state is told at once"
    )
    arrow_scale: float = key(0.003, unit="m/N", check=positive, doc="length of the force arrows per newton")
