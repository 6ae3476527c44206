"""Parameters of the nodes: schema, defaults and documentation (no ROS in here)."""

from __future__ import annotations

from dataclasses import dataclass

from contact_estimation.settings import key, non_negative, positive


@dataclass(frozen=True, kw_only=True)
class EstimatorParameters:
    """Parameters of ``estimator``, ``momentum_observer`` and (with the driver's) ``combined``."""

    robot: str = key("ur16e", doc="robot: shipped name of config/robots, or path of a YAML")
    observer: str = key("ekf", doc="observer: shipped name of config/observers, or path of a YAML")
    sensors: str = key("", doc="sensor set: shipped name of config/sensors, or path of a YAML; empty: the robot's own")
    people_rate: float = key(25.0, unit="Hz", check=positive, doc="rate of the markers")
    diagnostics_rate: float = key(1.0, unit="Hz", check=positive, doc="rate of the diagnostics; a change of validity is told at once")
    arrow_scale: float = key(0.003, unit="m/N", check=positive, doc="length of the force arrow per newton")
    arrow_hide_below: float = key(2.0, unit="N", check=non_negative, doc="forces smaller than this show no arrow")


@dataclass(frozen=True, kw_only=True)
class ReplayParameters:
    """Parameters of ``replay_driver``."""

    robot: str = key("ur16e", doc="robot: shipped name of config/robots, or path of a YAML")
    recording: str = key(doc="path of a rosbag2 or .npz recording")
    rate: float = key(1.0, unit="-", check=positive, doc="speed factor: 2 plays twice as fast")
    keep_stamps: bool = key(False, doc="publish the recorded stamps instead of the time of publishing")
    loop: bool = key(False, doc="start again at the end; with kept stamps the estimators see the jump back and reset")
    wait_for_subscribers: int = key(1, check=non_negative, doc="publish nothing before this many listen to joint_states")


@dataclass(frozen=True, kw_only=True)
class SimulatedParameters:
    """Parameters of ``simulated_driver``."""

    robot: str = key("ur16e", doc="robot: shipped name of config/robots, or path of a YAML")
    duration: float = key(10.0, unit="s", check=non_negative, doc="length of the simulated task; 0 repeats it until stopped")
    seed: int = key(0, check=non_negative, doc="seed of the sensor noise")
    wait_for_subscribers: int = key(1, check=non_negative, doc="publish nothing before this many listen to joint_states")


@dataclass(frozen=True, kw_only=True)
class RecorderParameters:
    """Parameters of ``recorder``."""

    bag: str = key(doc="folder of the new bag (MCAP); must not exist")
    topics: list[str] = key(doc="topics to record, each as NAME:PACKAGE/msg/TYPE")
