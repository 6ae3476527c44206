"""Parameters of the nodes: schema, defaults and documentation (no ROS in here)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contact_estimation.exceptions import ConfigError
from contact_estimation.io.open import recorded_arm
from contact_estimation.plugins import DEFAULT_OBSERVER
from contact_estimation.settings import key, non_negative, parse_yaml, positive


def _port(value: float) -> str | None:
    return None if 0 <= value <= 65535 else "must be from 0 to 65535"


@dataclass(frozen=True, kw_only=True)
class RobotParameters:
    """Parameters of every node of an arm."""

    robot: str = key("ur16e", doc="robot: a name in config/robots, or path of a profile folder or YAML")
    tool: str = key("", doc="tool behind the flange: a name in config/tools, or path of a YAML; empty: the robot's own")
    tf_prefix: str = key("", doc="put in front of every frame, and accepted in front of joint names")
    realtime: str = key(
        "", doc="scheduling of the process, as a YAML mapping: '{priority: 20, cpus: [1], lock_memory: true}'"
    )


@dataclass(frozen=True, kw_only=True)
class EstimatorParameters(RobotParameters):
    """Parameters of ``estimator`` and ``momentum_observer``."""

    observer: str = key(
        DEFAULT_OBSERVER, doc="observer: a name in config/observers, path of a YAML, or one of another package"
    )
    sensors: str = key("", doc="sensor set: a name, or path of a YAML; empty: the observer's or robot's own")
    complete: bool = key(
        False, doc="take every sample a replay publishes, however late; a live driver that offers less is not heard"
    )
    max_age: float = key(
        0.5,
        unit="s",
        check=non_negative,
        doc="samples older than this on arrival, or as far in the future, are refused; 0, as with complete: none are, "
        "for recorded stamps",
    )
    zero_in_contact: bool = key(
        False, doc="measure the zero also where a contact is probable: for an arm that is known to be free"
    )
    visualization_rate: float = key(25.0, unit="Hz", check=positive, doc="rate of the markers", was="people_rate")
    diagnostics_rate: float = key(
        1.0, unit="Hz", check=positive, doc="rate of the diagnostics; a change of validity is published at once"
    )
    arrow_scale: float = key(0.003, unit="m/N", check=positive, doc="length of the force arrow per newton")
    contact_frames: bool = key(True, doc="publish a TF frame per closed contact, where ROS has tf2_ros")
    arrow_hide_below: float = key(2.0, unit="N", check=non_negative, doc="forces smaller than this show no arrow")


@dataclass(frozen=True, kw_only=True)
class DriverParameters(RobotParameters):
    """Parameters of ``driver`` that are the node's own; the others go to the chosen driver."""

    driver: str = key(
        "simulated",
        doc="the robot: simulated, rtde (UR), joint_torque, replay, franka, or a driver of another package, as "
        "module:Class too",
    )
    options: str = key("", doc="further settings of the driver, as a YAML mapping: '{port: 30004}'")
    wait_for_subscribers: int = key(
        1, check=non_negative, doc="replay, simulated: publish nothing before this many listen to joint_states"
    )
    wait_for: list[str] = key(
        [], doc="replay, simulated: nodes of the same namespace that must listen before the first sample"
    )
    complete: bool = key(False, doc="publish reliably, so that the estimators lose nothing")
    rate: float = key(
        1.0,
        check=positive,
        doc="replay, simulated: speed factor: 2 publishes twice as fast; stamps keep the samples' own spacing",
    )
    keep_stamps: bool = key(False, doc="replay: publish the recorded stamps instead of present ones")
    clock: bool = key(
        False,
        doc="replay, simulated: publish the samples' time on /clock, for nodes with use_sim_time; needs keep_stamps",
    )

    def refuse_pacing(self) -> None:
        """Refuse what a live arm cannot obey, which sets the pace itself.

        Raises:
            ConfigError: there is such a parameter.
        """
        default = DriverParameters()
        names = ("rate", "keep_stamps", "clock", "wait_for")
        if given := [name for name in names if getattr(self, name) != getattr(default, name)]:
            raise ConfigError(
                f"driver '{self.driver}' is live: {', '.join(given)} has no effect on it; leave it out, or choose "
                "driver replay or simulated"
            )

    def backend_options(self) -> dict[str, Any]:
        """Further settings of the driver.

        Raises:
            ConfigError: they are no YAML mapping.
        """
        options = parse_yaml(self.options, "parameter 'options'") or {}
        if not isinstance(options, dict):
            raise ConfigError(
                f"parameter 'options' must be a YAML mapping such as '{{port: 30004}}', found {options!r}"
            )
        return options


@dataclass(frozen=True, kw_only=True)
class SourceParameters(DriverParameters):
    """What several drivers have; each takes what it knows."""

    recording: str = key(
        "", doc="replay: path of the rosbag2 or .npz to play; without a robot, the one it names is taken"
    )
    loop: bool = key(
        False, doc="replay: start again at the end; with kept stamps the estimators see the jump back and restart"
    )
    scenario: str = key("linear_contact", doc="simulated: a scenario of config/tasks, or path of a YAML")
    duration: float = key(
        0.0, unit="s", check=non_negative, doc="simulated: how long; 0: as long as the scenario's motion"
    )
    seed: int = key(0, check=non_negative, doc="simulated: seed of everything random")
    imperfections: str = key(
        "", doc="simulated: sensors and joints: a robot's name, ideal, or path of a YAML; empty: the robot's own"
    )
    ahead: bool = key(False, doc="simulated: simulate all of it before the first sample; takes no commands then")

    def arm_names(self) -> tuple[str, str]:
        """Return the names of robot and tool; those that the recording names where no robot is given.

        Raises:
            RecordingError: the recording names none, or cannot be read.
        """
        if self.robot or not self.recording:
            return self.robot, self.tool
        return recorded_arm([Path(self.recording).expanduser()], self.tool)

    def shared(self) -> dict[str, Any]:
        """Collect settings by name, of which each driver takes what it knows."""
        own = {field.name for field in dataclasses.fields(DriverParameters)}
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name not in own}


@dataclass(frozen=True, kw_only=True)
class CombinedParameters(EstimatorParameters, SourceParameters):
    """Parameters of ``combined``: the estimator's, and those of the chosen driver."""

    wait_for_subscribers: int = key(0, check=non_negative, doc="start only when this many listen to joint_states")
    ahead: bool = key(True, doc="simulated: simulate all of it before the first sample")


@dataclass(frozen=True, kw_only=True)
class RobotDriverParameters(SourceParameters):
    """Parameters of ``driver``, and of ``replay_driver`` and ``simulated_driver``, which choose it beforehand."""

    host: str = key("127.0.0.1", doc="rtde, franka: address of the controller")
    configure_at_start: bool = key(False, doc="connect at the start instead of at the lifecycle's configure")
    control: bool = key(
        False,
        doc="rtde: also open the control interface, so that commands can be sent; joint_torque: publish them for the "
        "arm's own impedance controller",
    )
    torque_source: str = key("current", doc="rtde: where torque comes from", choices=("current", "target_moment"))
    torque_meaning: str = key(
        "total",
        doc="joint_torque: what the arm's driver publishes as effort",
        choices=("total", "gravity_compensated", "external"),
    )
    joint_states_in: str = key("franka/joint_states", doc="joint_torque: topic of the arm's own driver")
    estimate_topic: str = key("estimator/contact_estimate", doc="estimates that keep the deadman of the commands happy")
    safety: str = key("", doc="limits of the commands: a name in a robot's limits/, or path of a YAML; empty: defaults")
    impedance_stiffness: list[float] = key(
        [1000.0, 1000.0, 1000.0],
        doc="stiffness the equilibrium is followed with; simulated and rtde realise it, another arm's controller must "
        "have it",
        unit="N/m",
        check=positive,
        length=3,
    )
    impedance_rotational_stiffness: list[float] = key(
        [40.0, 40.0, 40.0],
        doc="rotational stiffness, published with the other for the arm's own impedance controller",
        unit="Nm/rad",
        check=non_negative,
        length=3,
    )
    admittance_damping: float = key(
        4000.0,
        doc="force per commanded speed where a position-controlled arm realises that stiffness (rtde, simulated); over "
        "that stiffness and the surface's it is the time in which a contact settles, well above the arm's delays",
        unit="Ns/m",
        check=positive,
    )


@dataclass(frozen=True, kw_only=True)
class GuardParameters(RobotParameters):
    """Parameters of ``guard``."""

    joint_states_in: str = key("franka/joint_states", doc="topic of the arm's own driver, as the driver has it")
    safety: str = key("", doc="limits of the commands, as the driver has them")
    max_sample_age: float = key(0.2, doc="an older sample does not show where the arm is", unit="s", check=positive)


@dataclass(frozen=True, kw_only=True)
class RecorderParameters:
    """Parameters of ``recorder``."""

    bag: str = key(doc="folder of the new bag (MCAP); must not exist")
    topics: list[str] = key(doc="topics to record, each as NAME:PACKAGE/msg/TYPE")
    complete: bool = key(False, doc="take every message of a replay; a publisher that offers less is not heard")
    robot: str = key("", doc="name of the robot, which the bag then tells; empty: it tells none")
    tool: str = key("", doc="name of the tool behind the flange, which the bag then tells")
    sensors: str = key("", doc="name of the sensor set of the joint states, which the bag then tells")


@dataclass(frozen=True, kw_only=True)
class ViewerParameters(RobotParameters):
    """Parameters of ``viewer``."""

    estimates: list[str] = key(
        ["estimator/contact_estimate", "momentum_observer/contact_estimate"],
        doc="topics of the estimates that the page switches between",
    )
    frame_rate: float = key(30.0, unit="Hz", check=positive, doc="frames per second of every page")
    port: int = key(0, check=_port, doc="port of the page on 127.0.0.1; 0: a free one")
    browser: bool = key(False, doc="open the page in the browser")


@dataclass(frozen=True, kw_only=True)
class MpcParameters(RobotParameters):
    """Parameters of ``mpc``."""

    robot: str = key(
        "fr3",
        doc="robot: a name in config/robots, or path of a profile folder or YAML; the default is the default task's",
    )
    task: str = key(
        "mpc_plane_fr3", doc="task, or task in steps (sequence_...): name in tasks/ of a robot, or path of a YAML"
    )
    controller: str = key(
        "mpc",
        doc="controller of the task; a task in steps names its own",
        choices=("mpc", "feedforward", "pi", "admittance"),
    )
    solver: str = key("", doc="of the MPC, rti or sqp; empty: the task's own", choices=("", "rti", "sqp", "ipopt"))
    estimates: str = key("estimator/contact_estimate", doc="topic of the contact estimates")
    wrench: str = key(
        "",
        doc="topic of a wrist sensor, of the environment ON the robot in the TCP frame; its force, without the offset "
        "that the estimates tell, replaces theirs; empty: no sensor",
    )
    executor: str = key(
        "",
        doc="node with a life cycle that executes the equilibria: while it is not active, as after a protective stop, "
        "or does not answer, the controller holds where the arm is; empty: not watched",
    )
    visualization_rate: float = key(
        25.0, unit="Hz", check=positive, doc="rate of predictions and markers", was="people_rate"
    )
    diagnostics_rate: float = key(
        1.0, unit="Hz", check=positive, doc="rate of the diagnostics; a change of state is published at once"
    )
    arrow_scale: float = key(0.003, unit="m/N", check=positive, doc="length of the force arrows per newton")
