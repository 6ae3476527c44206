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

    observer: str = key("ekf", doc="observer: shipped name of config/observers, or path of a YAML")
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


@dataclass(frozen=True, kw_only=True)
class CombinedParameters(EstimatorParameters, ReplayParameters, SimulatedParameters):
    """Parameters of ``combined``: the estimator's, and those of the chosen driver."""

    driver: str = key("simulated", doc="source of the samples", choices=("simulated", "replay"))
    wait_for_subscribers: int = key(0, check=non_negative, doc="start only when this many listen to joint_states")


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
    diagnostics_rate: float = key(1.0, unit="Hz", check=positive, doc="rate of the diagnostics; a change of state is told at once")
    arrow_scale: float = key(0.003, unit="m/N", check=positive, doc="length of the force arrows per newton")
