"""What a launch starts, its files, and RViz' configuration; ``launch`` itself comes with a robot's ROS only."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from contact_estimation.control.impedance import ImpedanceSettings
from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.robot import load_arm
from contact_estimation.robot.description import urdf_path
from contact_estimation.ros import bringup, node_settings
from contact_estimation.settings import config_files, from_mapping

ROOT = Path(__file__).resolve().parent.parent
PARAMETERS = {
    "estimator": node_settings.EstimatorParameters,
    "momentum_observer": node_settings.EstimatorParameters,
    "replay_driver": node_settings.RobotDriverParameters,
    "simulated_driver": node_settings.RobotDriverParameters,
    "combined": node_settings.CombinedParameters,
    "recorder": node_settings.RecorderParameters,
    "driver": node_settings.RobotDriverParameters,
    "mpc": node_settings.MpcParameters,
    "viewer": node_settings.ViewerParameters,
    "guard": node_settings.GuardParameters,
}
#: Nodes of other packages, which package.xml has to ask for.
FOREIGN = {"robot_state_publisher", "rviz2"}
ROBOTS_WITH_MPC = [name for name in bringup.ROBOTS if f"mpc_plane_{name}" in config_files("tasks")]


@pytest.fixture
def bag(tmp_path):
    """Of a recording all that a plan reads: the robot and the tool it names."""
    np.savez(tmp_path / "bag.npz", robot="ur16e", tool="")
    return str(tmp_path / "bag.npz")


def plan(**values: str) -> bringup.Plan:
    return bringup.plan(values)


def nodes(**values: str) -> dict[str, bringup.PlannedNode]:
    return {node.executable: node for node in plan(**values).nodes}


def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / "launch" / f"{name}.launch.py").read_text())


# -- files ---------------------------------------------------------------------------------------------------


def test_every_launch_file_has_its_defaults():
    assert {path.name.partition(".")[0] for path in (ROOT / "launch").glob("*.launch.py")} == set(bringup.PRESETS)


@pytest.mark.parametrize("name", bringup.PRESETS)
def test_a_launch_file_declares_its_own_table(name):
    (call,) = (
        node
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "arguments"
    )
    assert [argument.value for argument in call.args] == [name]


def test_the_plan_needs_no_numeric_library():
    """``ros2 launch`` runs on the interpreter of ROS, which may not see this package's dependencies."""
    code = (
        "import sys; from contact_estimation.ros import bringup; bringup.plan({}); "
        "print(sorted({'numpy', 'casadi', 'pinocchio', 'rclpy', 'launch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_packages_of_planned_nodes_are_dependencies():
    xml = (ROOT / "package.xml").read_text()
    for package in FOREIGN | {"launch", "launch_ros"}:
        assert f"<exec_depend>{package}</exec_depend>" in xml


def test_packages_of_ros_that_are_imported_are_dependencies():
    xml = (ROOT / "package.xml").read_text()
    sources = [*(ROOT / "contact_estimation").rglob("*.py"), *(ROOT / "launch").glob("*.py")]
    found = set()
    for node in (node for path in sources for node in ast.walk(ast.parse(path.read_text()))):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found |= {module.split(".")[0] for module in modules}
    ros = {
        name for name in found if re.search(r"_(msgs|srvs|interfaces|ros)$|^(rclpy|launch|ament_index_python)$", name)
    }
    assert {"rclpy", "launch_ros", "tf2_ros", "sensor_msgs", "rcl_interfaces"} <= ros
    missing = [name for name in ros if not re.search(rf"<(exec_)?depend>{name}</", xml)]
    assert not missing


def test_a_replay_takes_robot_and_tool_from_the_recording(tmp_path):
    bag = str(tmp_path / "pushes.npz")
    np.savez(bag, robot="fr3", tool="gripper")
    own = [node for node in plan(driver="replay", bag=bag, view="true").nodes if node.executable != "recorder"]
    assert {(node.parameters["robot"], node.parameters["tool"]) for node in own} == {("fr3", "gripper")}
    (robot,) = {node.parameters["robot"] for node in plan(driver="replay", bag=bag, robot="panda").nodes}
    assert robot == "panda"
    numbers = {name: np.zeros((2, 6)) for name in ("q", "dq", "tau")}
    np.savez(bag, t=[0.0, 0.002], joint_names=load_arm("ur16e").joint_names, **numbers)
    with pytest.raises(RecordingError, match=r"names no robot.*robot:="):
        plan(driver="replay", bag=bag)


def test_a_recorded_launch_names_its_robot_for_the_replay():
    recorder = nodes(record="true", tool="gripper")["recorder"].parameters
    assert [recorder[name] for name in ("robot", "tool", "sensors")] == ["ur16e", "gripper", "ur16e_driver"]
    assert "robot" not in nodes(record="true", robot=str(ROOT / "config/robots/fr3"))["recorder"].parameters


def test_a_tool_reaches_every_node_and_the_description():
    planned = plan(tool="gripper", mpc="true", view="true", robot="fr3")
    own = [node for node in planned.nodes if node.executable != "recorder"]
    assert {node.parameters["tool"] for node in own} == {"gripper"} and len(own) == 5
    assert 'link name="tool_tcp"' in planned.description.parameters["robot_description"]
    assert 'link name="tool' not in plan(robot="fr3").description.parameters["robot_description"]


# -- arguments -----------------------------------------------------------------------------------------------


def test_arguments_are_documented():
    text = (ROOT / "docs" / "ros.md").read_text()
    for argument in bringup.ARGUMENTS:
        assert argument.doc and f"| `{argument.name}` | {argument.default} |" in text, argument.name
        assert not argument.choices or argument.default in argument.choices


def launch_commands() -> list[str]:
    """Every ``ros2 launch contact_estimation ...`` of the pages, continued lines joined."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    text = "\n".join(page.read_text() for page in pages).replace("\\\n", " ")
    return sorted(set(re.findall(r"ros2 launch contact_estimation ([^`#\n]*)", text)))


@pytest.mark.parametrize("command", launch_commands())
def test_launch_commands_of_the_pages_start_something(command, bag):
    file, *words = command.split()
    preset = file.removesuffix(".launch.py")
    values = dict(word.split(":=") for word in words if not word.startswith("--"))
    bringup.refuse_unknown(words, [argument.name for argument in bringup.ARGUMENTS])
    assert bringup.plan({**bringup.PRESETS[preset], **values} | ({"bag": bag} if preset == "replay" else {})).nodes


def test_descriptions_name_everything_that_can_be_chosen():
    docs = {argument.name: argument.doc for argument in bringup.ARGUMENTS}
    for name, words in (("robot", bringup.ROBOTS), ("driver", bringup.DRIVERS), ("observer", bringup.OBSERVERS)):
        assert words and all(word in docs[name] for word in words)


@pytest.mark.parametrize("preset", bringup.PRESETS)
def test_presets_are_arguments(preset):
    assert set(bringup.PRESETS[preset]) <= {argument.name for argument in bringup.ARGUMENTS}
    defaults = {argument.name: argument.default for argument in bringup.arguments(preset)}
    assert bringup.PRESETS[preset].items() <= defaults.items()


@pytest.mark.parametrize(
    "given, words",
    [
        ({"driver": "simulatd"}, ["simulatd", "nearest: 'simulated'"]),
        ({"robot": "ur16"}, ["ur16", "nearest: 'ur16e'", "fr3"]),
        ({"observer": "ekff"}, ["ekff", "nearest: 'ekf'"]),
        ({"mpc": "maybe"}, ["mpc:=maybe", "true, false"]),
        ({"driver": "replay"}, ["bag:=PATH"]),
        ({"driver": "replay", "bag": "/no/such/bag"}, ["/no/such/bag"]),
        ({"bag": "/tmp"}, ["bag:=", "driver:=simulated", "it is for replay"]),
        ({"driver": "rtde", "rate": "2.0"}, ["rate:=2.0", "driver:=rtde"]),
        ({"driver": "joint_torque", "pose_out": "arm/pose"}, ["pose_out:=arm/pose", "control:=true"]),
        ({"duration": "long"}, ["duration:=long", "number"]),
        ({"view": "true", "port": "8080.5"}, ["port:=8080.5", "whole number"]),
        ({"port": "8080"}, ["port:=8080", "view:=true"]),
        ({"robot": "panda", "mpc": "true"}, ["panda", "mpc_plane_panda", "task:="]),
        ({"params_file": "/no/such.yaml"}, ["/no/such.yaml"]),
        ({"driver": "none", "limits": "press_ur16e"}, ["limits:=press_ur16e", "driver:=none"]),
        ({"one_process": "true", "limits": "press_ur16e"}, ["limits:=press_ur16e", "one_process:=true"]),
        ({"robot": "fr3", "mpc": "true", "rate": "2.0"}, ["rate:=2.0", "use_sim_time:=true"]),
    ],
)
def test_a_value_that_starts_nothing_is_an_error(given, words):
    with pytest.raises(ConfigError) as error:
        plan(**given)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    "word, near", [("rvis:=true", "rviz"), ("recording:=bag", "bag"), ("arrow_scale:=1", "params_file")]
)
def test_an_unknown_argument_is_an_error(word, near):
    known = [argument.name for argument in bringup.ARGUMENTS]
    bringup.refuse_unknown(["rviz:=true", "launch-prefix:=nice", "--debug"], known)
    with pytest.raises(ConfigError, match=f"nearest: '{near}'"):
        bringup.refuse_unknown([word], known)


# -- nodes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "robot, driver, one_process", list(itertools.product(bringup.ROBOTS, bringup.DRIVERS, ("false", "true")))
)
def test_nodes_exist_and_know_their_parameters(robot, driver, one_process, bag):
    given = {
        "robot": robot,
        "driver": driver,
        "record": "true",
        "view": "true",
        "namespace": "left",
        "tf_prefix": "left_",
    }
    given |= {"bag": bag} if driver == "replay" else {}
    given |= {"one_process": one_process} if driver in ("replay", "simulated") else {}
    given |= {"mpc": "true"} if robot in ROBOTS_WITH_MPC and driver != "none" else {}
    started = nodes(**given)
    assert ("combined" in started) != ("estimator" in started)
    for node in started.values():
        parameters = {name: value for name, value in node.parameters.items() if name != "use_sim_time"}
        from_mapping(PARAMETERS[node.executable], parameters, node.executable)


def test_own_nodes_are_all_known_here():
    assert {path.stem for path in (ROOT / "contact_estimation" / "nodes").glob("[a-z]*.py")} == set(PARAMETERS)


def test_parameters_reach_the_node_as_their_types(bag):
    driver = nodes(driver="replay", bag=bag, loop="true", rate="4.0")["driver"].parameters
    assert (driver["driver"], driver["recording"], driver["loop"], driver["rate"]) == ("replay", bag, True, 4.0)
    assert nodes(view="true", port="8080")["viewer"].parameters["port"] == 8080


def test_replay_waits_for_every_estimator_and_loses_nothing(bag):
    started = nodes(driver="replay", bag=bag)
    assert started["driver"].parameters["wait_for"] == ["estimator", "momentum_observer"]
    assert all(started[name].parameters["complete"] for name in ("driver", "estimator", "momentum_observer"))
    alone = nodes(driver="replay", bag=bag, baseline="false", one_process="true")
    assert list(alone) == ["combined"] and "wait_for" not in alone["combined"].parameters


def test_live_drivers_are_not_heard_completely():
    assert not nodes(driver="rtde")["estimator"].parameters["complete"]


@pytest.mark.parametrize(
    "driver, robot, expected",
    [
        ("simulated", "ur16e", "ur16e_driver"),
        ("rtde", "ur16e", "ur16e_driver"),
        ("simulated", "fr3", None),
        ("none", "ur16e", None),
    ],
)
def test_sensors_fit_what_the_driver_publishes(driver, robot, expected):
    """The wrist of the papers' recordings is scaled; what this package's drivers publish must not be."""
    assert nodes(driver=driver, robot=robot)["estimator"].parameters.get("sensors") == expected


@pytest.mark.parametrize("robot", ROBOTS_WITH_MPC)
def test_the_mpc_commands_the_driver_with_the_stiffness_it_plans_with(robot):
    started = nodes(robot=robot, mpc="true")
    assert ("mpc/equilibrium_pose", "equilibrium_pose") in started["mpc"].remappings
    task = yaml.safe_load(Path(started["mpc"].parameters["task"]).read_text())
    assert_stiffness(started["driver"], task)


def assert_stiffness(driver, task) -> None:
    """The driver's node gets both parts of the stiffness that a task has, or has by default."""
    expected = from_mapping(ImpedanceSettings, task["impedance"], "task")
    assert driver.parameters["impedance_stiffness"] == expected.stiffness
    assert driver.parameters["impedance_rotational_stiffness"] == expected.rotational_stiffness


@pytest.mark.parametrize(
    "text, words",
    [
        ("impedance: {stiffness: 700}", "three numbers each.*'stiffness': 700"),
        ("impedance: {rotational_stiffness: [a, b, c]}", "three numbers each"),
        ("impedance: 5", "found 5"),
        ("steps: []", "there is no task ''"),
    ],
)
def test_a_task_whose_stiffness_cannot_be_read_is_an_error(tmp_path, text, words):
    (tmp_path / "mpc_mine.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        plan(robot="fr3", mpc="true", task=str(tmp_path / "mpc_mine.yaml"))


def test_the_driver_takes_every_stiffness_that_a_task_may_have(tmp_path):
    """A task may leave the tool free to turn; what the launch makes of it must start the driver."""
    path = tmp_path / "mpc_mine.yaml"
    path.write_text("impedance: {rotational_stiffness: [0.0, 0.0, 0.0]}\n")
    driver = nodes(robot="fr3", mpc="true", task=str(path))["driver"]
    assert_stiffness(driver, {"impedance": {"rotational_stiffness": [0.0, 0.0, 0.0]}})
    given = {name: value for name, value in driver.parameters.items() if name != "use_sim_time"}
    assert from_mapping(PARAMETERS["driver"], given, "driver").impedance_rotational_stiffness == [0.0, 0.0, 0.0]


def test_a_task_without_a_stiffness_has_that_of_the_impedance(tmp_path):
    path = tmp_path / "mpc_mine.yaml"
    path.write_text("impedance: {max_force: 20.0}\n")
    assert_stiffness(nodes(robot="fr3", mpc="true", task=str(path))["driver"], {"impedance": {}})


def test_a_task_in_steps_has_the_stiffness_of_the_task_it_shares():
    started = nodes(robot="fr3", mpc="true", task="sequence_block_fr3")
    shared = yaml.safe_load(bringup.find_config("tasks", "mpc_edge_fr3").read_text())
    assert_stiffness(started["driver"], shared)


@pytest.mark.parametrize(
    "driver, watched", [("simulated", "driver"), ("rtde", "driver"), ("none", None), ("franka", None)]
)
def test_the_mpc_watches_the_node_that_executes_its_commands(driver, watched):
    assert nodes(robot="ur16e", driver=driver, mpc="true")["mpc"].parameters.get("executor") == watched
    alone = nodes(driver="simulated", one_process="true", mpc="true")
    assert "executor" not in alone["mpc"].parameters  # no node takes commands


def test_the_mpc_of_a_ur_arm_hears_its_wrist_sensor():
    """The driver publishes the wrench under the name that ros2_control uses."""
    assert nodes(driver="rtde", mpc="true")["mpc"].parameters["wrench"] == "force_torque_sensor_broadcaster/wrench"
    assert "wrench" not in nodes(mpc="true")["mpc"].parameters


def test_a_joint_torque_arm_is_commanded_where_its_controller_listens():
    made = nodes(driver="joint_torque", robot="fr3", control="true", pose_out="/arm/target_frame")
    driver = made["driver"]
    assert driver.parameters["control"] and driver.remappings == (("~/equilibrium_pose", "/arm/target_frame"),)
    assert made["guard"].remappings == (("driver/equilibrium_pose", "/arm/target_frame"),)


def test_a_commanded_joint_torque_arm_has_a_guard_that_hears_what_its_driver_hears():
    given = {"driver": "joint_torque", "robot": "fr3", "joint_states_in": "/arm/states", "tf_prefix": "left_"}
    assert "guard" not in nodes(**given)
    made = nodes(**given, control="true", limits="press_ur16e")
    for name in ("robot", "tf_prefix", "joint_states_in", "safety"):
        assert made["guard"].parameters[name] == made["driver"].parameters[name]
    assert made["guard"].vital and not made["guard"].remappings


def test_only_drivers_that_end_may_end_well(bag):
    assert nodes(driver="replay", bag=bag)["driver"].finite and nodes()["driver"].finite
    assert not nodes(driver="rtde")["driver"].finite
    assert all(node.vital for node in plan(mpc="true", record="true").nodes)


@pytest.mark.parametrize("robot", bringup.ROBOTS)
def test_the_description_is_the_robots_urdf(robot):
    description = plan(robot=robot, launch_rsp="true").description
    assert description.parameters["robot_description"] == urdf_path(load_arm(robot).settings).read_text()


def test_the_description_is_published_once():
    assert plan(launch_rsp="false").description is None
    assert plan(launch_rsp="true").description_topic == ""
    assert plan().description_topic == "/robot_description"
    assert plan(namespace="left").description_topic == "/left/robot_description"


def test_two_arms_record_apart():
    left, right = (nodes(namespace=side, record="true")["recorder"].parameters for side in ("left", "right"))
    assert not set(left["topics"]) & set(right["topics"]) and left["bag"] != right["bag"]
    assert "/left/joint_states:sensor_msgs/msg/JointState" in left["topics"]


# -- beside the arms' own drivers ----------------------------------------------------------------------------


def test_beside_ur_robot_driver_the_effort_is_a_current():
    started = bringup.plan(bringup.PRESETS["ur_robot_driver"])
    assert "driver" not in {node.executable for node in started.nodes} and started.description is None
    (sensors,) = {node.parameters["sensors"] for node in started.nodes}
    assert yaml.safe_load(config_files("sensors")[sensors].read_text())["torque_unit"] == "A"


def test_beside_franka_ros2_the_full_rate_is_heard():
    started = bringup.plan(bringup.PRESETS["franka_ros2"])
    assert started.description is None
    assert {node.remappings for node in started.nodes} == {(("joint_states", "franka/joint_states"),)}
    recorded = bringup.plan({**bringup.PRESETS["franka_ros2"], "record": "true", "namespace": "left"}).nodes[-1]
    assert recorded.parameters["topics"][0] == "/left/franka/joint_states:sensor_msgs/msg/JointState"


# -- nodes' own files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", PARAMETERS)
def test_every_node_has_an_entry_point(node):
    body = ast.parse((ROOT / "contact_estimation" / "nodes" / f"{node}.py").read_text()).body
    assert any(isinstance(item, ast.FunctionDef) and item.name == "main" for item in body)


def test_parameters_are_settings_classes():
    assert all(dataclasses.is_dataclass(cls) for cls in PARAMETERS.values())
