"""The plan of a launch: arguments, nodes and their parameters, without the ``launch`` package.

The launch files turn a :class:`Plan` into processes and add nothing to it. ``ros2 launch`` runs on the interpreter of
the ROS installation. This module therefore imports the standard library and YAML only; the robot of a recording is read
with what reads recordings.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from contact_estimation import plugins
from contact_estimation.exceptions import ConfigError
from contact_estimation.io.topics import JOINT_STATE, TRUTH_TOPICS, WRENCH, WRENCH_TOPIC
from contact_estimation.ros.description import LaunchedRobot, rviz_config
from contact_estimation.settings import config_files, find_config, load_yaml

PACKAGE = "contact_estimation"
SWITCH = ("true", "false")
#: Driver word of an arm whose own ROS driver publishes the joint states.
NO_DRIVER = "none"
#: The arm where neither an argument nor a recording names one.
DEFAULT_ROBOT = "ur16e"
#: Arguments that ``ros2 launch`` itself adds.
_LAUNCH_OPTIONS = ("launch-prefix", "launch-prefix-filter")
#: Stiffness [N/m] an equilibrium is followed with where no MPC task says another.
_STIFFNESS = [1000.0, 1000.0, 1000.0]
#: The one of an MPC task that names none, which is of ``control.impedance``: [N/m], [Nm/rad].
_TASK_STIFFNESS = {"stiffness": [700.0, 700.0, 700.0], "rotational_stiffness": [40.0, 40.0, 40.0]}


class Argument(NamedTuple):
    """A launch argument.

    Attributes:
        name: left of ``:=``.
        default: right of it.
        doc: what it does.
        choices: allowed values; empty: :func:`plan` checks them.
    """

    name: str
    default: str
    doc: str
    choices: tuple[str, ...] = ()


class PlannedNode(NamedTuple):
    """One process.

    Attributes:
        package: its package.
        executable: its executable.
        parameters: ROS parameters.
        remappings: pairs of names.
        arguments: further command line arguments.
        vital: the launch ends with this process.
        finite: ending by itself is success.
    """

    package: str
    executable: str
    parameters: dict[str, Any]
    remappings: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()
    vital: bool = True
    finite: bool = False


class Plan(NamedTuple):
    """Everything a launch starts.

    Attributes:
        namespace: of all nodes, without a leading slash.
        nodes: the processes.
        description: robot_state_publisher, or None where it shall not run.
        description_topic: with :attr:`description`, start it only if nobody publishes this topic; "" in any case.
        rviz_config: text of RViz' configuration, "" where RViz is not wanted.
        params_file: path of the user's parameters, or "".
    """

    namespace: str
    nodes: list[PlannedNode]
    description: PlannedNode | None
    description_topic: str
    rviz_config: str
    params_file: str


ROBOTS, OBSERVERS, SENSORS = (tuple(config_files(kind)) for kind in ("robots", "observers", "sensors"))
DRIVERS = (*plugins.offered(plugins.DRIVERS), NO_DRIVER)

ARGUMENTS = (
    Argument(
        "robot",
        "",
        f"the arm: {', '.join(ROBOTS)}, or the path of a robot's profile folder; empty: {DEFAULT_ROBOT}, with "
        "driver:=replay the robot and tool that the recording names",
    ),
    Argument("tool", "", "tool behind the flange: a name in config/tools, or a YAML; empty: the robot's own"),
    Argument("driver", "simulated", f"source of joint_states: {', '.join(DRIVERS)} (the arm's own), or module:Class"),
    Argument("observer", plugins.DEFAULT_OBSERVER, f"the estimator's observer: {', '.join(OBSERVERS)}, or a path"),
    Argument("sensors", "", f"sensor set: {', '.join(SENSORS)}, or a path; empty: what the driver or robot has"),
    Argument("baseline", "true", "run the momentum observer beside the estimator", SWITCH),
    Argument("mpc", "false", "start the MPC; it commands once it and the driver are activated", SWITCH),
    Argument("controller", "mpc", "controller of the task: mpc, feedforward, pi or admittance"),
    Argument("task", "", "MPC task (mpc_ or sequence_) in tasks/ of the robot, or a YAML; empty: mpc_plane_<robot>"),
    Argument("limits", "", "limits of the commands, of the robot's limits/ or a path; empty: the defaults"),
    Argument("scenario", "linear_contact", "scenario of driver:=simulated"),
    Argument("imperfections", "", "sensors and joints of driver:=simulated, by name or path; empty: the robot's own"),
    Argument("duration", "0.0", "length of driver:=simulated [s]; 0: as long as the scenario's motion"),
    Argument("host", "127.0.0.1", "address of the controller of driver:=rtde and franka"),
    Argument(
        "control", "false", "driver:=rtde also opens the control interface; joint_torque publishes commands", SWITCH
    ),
    Argument(
        "torque_meaning",
        "total",
        "what the effort is that driver:=joint_torque takes",
        ("total", "gravity_compensated", "external"),
    ),
    Argument("joint_states_in", "", "topic of the arm's own driver, with driver:=none and joint_torque"),
    Argument(
        "pose_out", "", "topic of the arm's impedance controller, which driver:=joint_torque control:=true commands"
    ),
    Argument("bag", "", "rosbag2 or .npz of driver:=replay"),
    Argument("rate", "1.0", "speed of driver:=replay and simulated; 4: four times as fast"),
    Argument("loop", "false", "driver:=replay plays over and over", SWITCH),
    Argument("one_process", "false", "driver (simulated or replay) and estimator in one process", SWITCH),
    Argument(
        "record", "false", "record what a replay needs, and the estimates, into bag_<time> where launch runs", SWITCH
    ),
    Argument("rviz", "false", "start RViz", SWITCH),
    Argument("view", "false", "open the 3-D page in the browser", SWITCH),
    Argument("port", "0", "port of the 3-D page on 127.0.0.1; 0: a free one"),
    Argument(
        "launch_rsp",
        "auto",
        "start robot_state_publisher; auto: if robot_description has no publisher after five seconds",
        ("auto", *SWITCH),
    ),
    Argument("namespace", "", "namespace of all nodes; one per arm"),
    Argument("tf_prefix", "", "put in front of every frame, and accepted in front of joint names; one per arm"),
    Argument("params_file", "", "YAML with parameters of the nodes; it overrules the arguments"),
    Argument(
        "use_sim_time",
        "false",
        "the nodes take their time from /clock, which driver:=replay and simulated publish",
        SWITCH,
    ),
)
#: Launch file -> defaults that differ; beside an arm's own ROS driver, which also publishes the description.
PRESETS: dict[str, dict[str, str]] = {
    "bringup": {},
    "replay": {"driver": "replay"},
    "ur_robot_driver": {"driver": NO_DRIVER, "sensors": "ur16e_ros2_control", "launch_rsp": "false"},
    "franka_ros2": {
        "driver": NO_DRIVER,
        "robot": "fr3",
        "joint_states_in": "franka/joint_states",
        "launch_rsp": "false",
    },
}
#: Earlier arguments -> where their value goes today.
_RENAMED = {
    "recording": "bag",
    **dict.fromkeys(("arrow_scale", "impedance_stiffness", "admittance_damping"), "params_file"),
}
#: Arguments only some drivers have; given with another one they are an error.
_OF_DRIVERS = {
    "scenario": ("simulated",),
    "imperfections": ("simulated",),
    "duration": ("simulated",),
    "host": ("rtde", "franka"),
    "control": ("rtde", "joint_torque"),
    "torque_meaning": ("joint_torque",),
    "joint_states_in": ("joint_torque", NO_DRIVER),
    "pose_out": ("joint_torque",),
    "bag": ("replay",),
    "rate": ("simulated", "replay"),
    "loop": ("replay",),
    "one_process": ("simulated", "replay"),
}
#: Parameter of the driver node where it is not called as the argument.
_PARAMETER = {"bag": "recording"}
_NUMBERS: dict[str, Callable[[str], float]] = {"duration": float, "rate": float, "port": int}


def arguments(launch_file: str) -> list[Argument]:
    """List the arguments of a launch file, with its defaults."""
    return [
        argument._replace(default=PRESETS[launch_file].get(argument.name, argument.default)) for argument in ARGUMENTS
    ]


def refuse_unknown(command_line: Sequence[str], known: Sequence[str]) -> None:
    """Refuse ``name:=value`` of a command line that no argument takes, which ``launch`` would swallow.

    Raises:
        ConfigError: there is one; the nearest argument is named.
    """
    for entry in command_line:
        name, assigned, _ = entry.partition(":=")
        if assigned and name not in (*known, *_LAUNCH_OPTIONS):
            near = _RENAMED.get(name) or difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise ConfigError(f"there is no launch argument '{name}' (nearest: '{near}'). Known: {', '.join(known)}")


def plan(values: Mapping[str, str]) -> Plan:
    """Decide what a launch with these arguments starts.

    Args:
        values: name -> value; what is missing has its default.

    Raises:
        ConfigError: a value is unknown, contradicts another one, or names what is not there.
    """
    a = {argument.name: values.get(argument.name, argument.default) for argument in ARGUMENTS}
    a["driver"] = plugins.canonical(plugins.DRIVERS, a["driver"])
    _check(a)
    a["robot"], a["tool"] = _names(a)
    robot = LaunchedRobot(a["robot"], a["tool"])
    namespace = a["namespace"].strip("/")
    common = {name: a[name] for name in ("robot", "tool", "tf_prefix")} | {"use_sim_time": a["use_sim_time"] == "true"}
    estimators = ["estimator", *(["momentum_observer"] if a["baseline"] == "true" else [])]
    nodes = [*_estimators(a, robot, common, estimators)]
    if a["driver"] != NO_DRIVER:
        listeners = [name for name in estimators if name != "estimator" or a["one_process"] == "false"]
        nodes.append(_driver(a, robot, common, [*listeners, *(["recorder"] if a["record"] == "true" else [])]))
    if a["driver"] == "joint_torque" and a["control"] == "true":
        given = {**common, "safety": a["limits"], "joint_states_in": a["joint_states_in"]}
        nodes.append(_own("guard", given, (("driver/equilibrium_pose", a["pose_out"]),) if a["pose_out"] else ()))
    if a["mpc"] == "true":
        wrench = WRENCH_TOPIC.lstrip("/") if a["driver"] == "rtde" else ""
        given = {**common, "task": str(_task(a, robot)), "controller": a["controller"], "wrench": wrench}
        given["executor"] = "" if _commands_nothing(a) else "driver"
        nodes.append(_own("mpc", given, (("mpc/equilibrium_pose", "equilibrium_pose"),)))
    if a["record"] == "true":
        nodes.append(_recorder(a, robot, namespace, estimators))
    if a["view"] == "true":
        topics = [f"{name}/contact_estimate" for name in estimators]
        viewer = _own("viewer", {**common, "estimates": topics, "browser": True, "port": _value("port", a["port"])})
        nodes.append(viewer._replace(vital=False))
    return Plan(
        namespace,
        nodes,
        _description(robot, common) if a["launch_rsp"] != "false" else None,
        "/".join(["", *filter(None, [namespace]), "robot_description"]) if a["launch_rsp"] == "auto" else "",
        rviz_config(namespace, a["tf_prefix"], robot.values["base_frame"]) if a["rviz"] == "true" else "",
        a["params_file"],
    )


def _check(a: Mapping[str, str]) -> None:
    """Refuse values that start nothing, and arguments the chosen driver does not take."""
    for argument in ARGUMENTS:
        value, given = a[argument.name], a[argument.name] != argument.default
        if argument.choices and value not in argument.choices:
            raise ConfigError(f"{argument.name}:={value} is none of {', '.join(argument.choices)}")
        if given and a["driver"] in DRIVERS and a["driver"] not in _OF_DRIVERS.get(argument.name, DRIVERS):
            takers = " or ".join(_OF_DRIVERS[argument.name])
            raise ConfigError(f"{argument.name}:={value} has no effect on driver:={a['driver']}; it is for {takers}")
    if a["driver"] not in DRIVERS and ":" not in a["driver"]:
        near = difflib.get_close_matches(a["driver"], DRIVERS, n=1, cutoff=0.0)[0]
        raise ConfigError(f"there is no driver '{a['driver']}' (nearest: '{near}'). Known: {', '.join(DRIVERS)}")
    if ":" not in a["observer"] and a["observer"] not in plugins.offered(plugins.OBSERVERS):
        find_config("observers", plugins.canonical(plugins.OBSERVERS, a["observer"]))
    if a["driver"] == "replay" and not (a["bag"] and Path(a["bag"]).expanduser().exists()):
        raise ConfigError(f"driver:=replay needs bag:=PATH of a rosbag2 or .npz; there is none at '{a['bag']}'")
    if a["port"] != "0" and a["view"] != "true":
        raise ConfigError(f"port:={a['port']} is of the 3-D page; it needs view:=true")
    if a["pose_out"] and a["control"] != "true":
        raise ConfigError(f"pose_out:={a['pose_out']} needs control:=true; without it nothing is commanded")
    if a["limits"] and _commands_nothing(a):
        what = "one_process:=true" if a["one_process"] == "true" else f"driver:={a['driver']}"
        raise ConfigError(f"limits:={a['limits']} has no effect with {what}: no driver of this package takes commands")
    if a["mpc"] == "true" and _value("rate", a["rate"]) != 1.0 and a["use_sim_time"] != "true":
        raise ConfigError(
            f"mpc:=true with rate:={a['rate']}: the samples' stamps leave the present, and the MPC would take every "
            "estimate for stale; add use_sim_time:=true"
        )
    if a["params_file"] and not Path(a["params_file"]).is_file():
        raise ConfigError(f"there is no params_file '{a['params_file']}'")


def _commands_nothing(a: Mapping[str, str]) -> bool:
    """Tell whether no driver of this package executes commands."""
    return a["driver"] in (NO_DRIVER, "replay", "franka") or a["one_process"] == "true"


def _names(a: Mapping[str, str]) -> tuple[str, str]:
    """Return the names of robot and tool."""
    if a["robot"] or a["driver"] != "replay":
        return a["robot"] or DEFAULT_ROBOT, a["tool"]
    try:
        from contact_estimation.io.open import recorded_arm  # imports NumPy, which other launches need not
    except ImportError as error:
        raise ConfigError(f"the recording cannot be asked for its robot ({error}); give robot:=NAME") from error
    return recorded_arm([Path(a["bag"]).expanduser()], a["tool"])


def _own(
    executable: str, parameters: dict[str, Any], remappings: tuple[tuple[str, str], ...] = (), finite: bool = False
) -> PlannedNode:
    """Plan a node of this package; empty parameters are left to its defaults."""
    given = {name: value for name, value in parameters.items() if value not in ("", [])}
    return PlannedNode(PACKAGE, executable, given, remappings, finite=finite)


def _estimators(
    a: Mapping[str, str], robot: LaunchedRobot, common: dict[str, Any], names: Sequence[str]
) -> list[PlannedNode]:
    """Plan the estimator, unless it shares the driver's process, and the baseline."""
    sensors = _sensors(a, robot)
    remap = (("joint_states", a["joint_states_in"]),) if a["driver"] == NO_DRIVER and a["joint_states_in"] else ()
    complete: dict[str, Any] = {"complete": a["driver"] == "replay"}
    if a["driver"] == "simulated" and _value("rate", a["rate"]) != 1.0:
        complete["max_age"] = 0.0  # its stamps leave the present
    given = {
        "estimator": {**common, **complete, "observer": a["observer"], "sensors": sensors},
        "momentum_observer": {**common, **complete, "sensors": sensors, "contact_frames": False},
    }
    if a["one_process"] == "true":
        del given["estimator"]
    return [_own(name, given[name], remap) for name in names if name in given]


def _sensors(a: Mapping[str, str], robot: LaunchedRobot) -> str:
    """Choose the sensor set: the one asked for, else the one of what this package's drivers publish of the robot."""
    return a["sensors"] or (robot.values.get("driver_sensors", "") if a["driver"] in ("simulated", "rtde") else "")


def _driver(a: Mapping[str, str], robot: LaunchedRobot, common: dict[str, Any], listeners: list[str]) -> PlannedNode:
    """Plan the driver's node, which waits for its listeners where samples can wait."""
    takes: dict[str, Any] = {
        _PARAMETER.get(name, name): _value(name, a[name])
        for name, drivers in _OF_DRIVERS.items()
        if a["driver"] in drivers and name != "one_process"
    }
    if "recording" in takes:
        takes["recording"] = str(Path(takes["recording"]).expanduser().resolve())
    finite = a["driver"] in ("simulated", "replay")
    if finite:
        takes["complete"] = a["driver"] == "replay"
        takes["wait_for"] = listeners
        if common["use_sim_time"]:  # this node publishes /clock, so it must not wait for it
            takes |= {"clock": True, "keep_stamps": True}
            common = {**common, "use_sim_time": False}
    if a["one_process"] == "true":
        more = {"observer": a["observer"], "sensors": _sensors(a, robot)}
        return _own("combined", {**common, **more, **takes, "driver": a["driver"]}, finite=True)
    if a["driver"] != "replay":
        takes |= {"safety": a["limits"], **_stiffness(a, robot)}
    pose_out = takes.pop("pose_out", "")
    remap = (("~/equilibrium_pose", pose_out),) if pose_out else ()
    return _own("driver", {**common, **takes, "driver": a["driver"], "configure_at_start": True}, remap, finite)


def _value(name: str, text: str) -> Any:
    """Convert an argument's text to the parameter's type."""
    if text in SWITCH:
        return text == "true"
    if name not in _NUMBERS:
        return text
    try:
        return _NUMBERS[name](text)
    except ValueError:
        kind = "whole number" if _NUMBERS[name] is int else "number"
        raise ConfigError(f"{name}:={text} is not a {kind}") from None


def _task(a: Mapping[str, str], robot: LaunchedRobot) -> Path:
    """Find the MPC's task."""
    known = config_files("tasks", robot.folder)
    choice = a["task"] or f"mpc_plane_{robot.name}"
    if not a["task"] and choice not in known:
        mpc = [name for name in known if name.startswith("mpc_")]
        raise ConfigError(
            f"robot '{robot.name}' has no MPC task '{choice}'; write one into {robot.folder / 'tasks'}, or name one "
            f"with task:=. Shipped: {', '.join(mpc)}"
        )
    return find_config("tasks", choice, robot.folder)


def _stiffness(a: Mapping[str, str], robot: LaunchedRobot) -> dict[str, list[float]]:
    """Choose the stiffness that follows the equilibrium, as parameters: with an MPC the one the MPC plans with."""
    if a["mpc"] != "true":
        return {"impedance_stiffness": _STIFFNESS}
    path = _task(a, robot)
    task = load_yaml(path)
    if "steps" in task:  # they share the limits of another task
        path = find_config("tasks", str(task.get("task", "")), robot.folder)
        task = load_yaml(path)
    try:
        given = {**_TASK_STIFFNESS, **(task.get("impedance") or {})}
        return {f"impedance_{kind}": [float(value) for value in given[kind]] for kind in _TASK_STIFFNESS}
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{path}: impedance must hold stiffness and rotational_stiffness, three numbers each, or leave them out; "
            f"found {task.get('impedance')}"
        ) from error


def _recorder(a: Mapping[str, str], robot: LaunchedRobot, namespace: str, estimators: Sequence[str]) -> PlannedNode:
    """Plan the recorder, of what a replay needs and of the estimates; the bag tells what is known by a name."""
    base = f"/{namespace}" if namespace else ""
    states = a["joint_states_in"] if a["driver"] == NO_DRIVER and a["joint_states_in"] else "joint_states"
    topics = [f"{WRENCH_TOPIC}:{WRENCH}"]
    topics += [f"{topic}:{kind}" for topic, kind in TRUTH_TOPICS.values()]
    topics += [f"/{name}/contact_estimate:{PACKAGE}/msg/ContactEstimate" for name in estimators]
    bag = str(
        Path(f"bag_{namespace.replace('/', '_') + '_' if namespace else ''}{time.strftime('%Y%m%d_%H%M%S')}").resolve()
    )
    topics = [f"{states if states.startswith('/') else f'{base}/{states}'}:{JOINT_STATE}", *(base + t for t in topics)]
    given = {"bag": bag, "topics": topics, "complete": a["driver"] == "replay"}
    names = {"robot": a["robot"], "tool": robot.tool, "sensors": _sensors(a, robot)}
    given |= {key: name for key, name in names.items() if Path(name).name == name}
    return _own("recorder", {**given, "use_sim_time": a["use_sim_time"] == "true"})


def _description(robot: LaunchedRobot, common: Mapping[str, Any]) -> PlannedNode:
    """Plan robot_state_publisher with the robot's description."""
    given = {"robot_description": robot.urdf(common["tf_prefix"]), "use_sim_time": common["use_sim_time"]}
    return PlannedNode("robot_state_publisher", "robot_state_publisher", given, vital=False)
