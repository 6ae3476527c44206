"""Launch files and RViz configuration fit the nodes; read as text, because ``launch`` comes with a robot's ROS only."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest
import yaml

from contact_estimation.drivers.registry import KINDS
from contact_estimation.ros import node_settings

ROOT = Path(__file__).resolve().parent.parent
LAUNCH = {name: ROOT / "launch" / f"{name}.launch.py" for name in ("bringup", "replay")}
PARAMETERS = {
    "estimator": node_settings.EstimatorParameters, "momentum_observer": node_settings.EstimatorParameters,
    "replay_driver": node_settings.ReplayParameters, "simulated_driver": node_settings.SimulatedParameters,
    "combined": node_settings.CombinedParameters, "recorder": node_settings.RecorderParameters,
    "driver": node_settings.RobotDriverParameters, "mpc": node_settings.MpcParameters,
}
#: Nodes of other packages, which package.xml has to ask for.
FOREIGN = {"robot_state_publisher", "rviz2"}


def calls(name: str, function: str) -> list[ast.Call]:
    """All calls of ``function`` in a launch file."""
    tree = ast.parse(LAUNCH[name].read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function]


def keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {keyword.arg: keyword.value for keyword in call.keywords}


def declared(name: str) -> dict[str, dict[str, ast.expr]]:
    return {call.args[0].value: keywords(call) for call in calls(name, "DeclareLaunchArgument")}


def test_every_launch_file_is_known():
    assert set((ROOT / "launch").glob("*.launch.py")) == set(LAUNCH.values())


@pytest.mark.parametrize("name", LAUNCH)
def test_arguments_are_declared_used_and_described(name):
    arguments = declared(name)
    used = {call.args[0].value for call in calls(name, "LaunchConfiguration")}
    assert used == set(arguments)
    for argument, options in arguments.items():
        assert options["description"].value, argument
        if "choices" in options and "default_value" in options:
            try:
                choices, default = ast.literal_eval(options["choices"]), ast.literal_eval(options["default_value"])
            except ValueError:
                continue  # made from the shipped configurations, or from another argument
            assert default in choices, argument


def test_defaults_are_shipped():
    for name in LAUNCH:
        for argument, kind in (("robot", "robots"), ("observer", "observers")):
            assert (ROOT / "config" / kind / f"{declared(name)[argument]['default_value'].value}.yaml").is_file()
    assert (ROOT / "config" / "sensors" / "joint_torque.yaml").is_file()


def expression(name: str, argument: str, **words: str):
    """What a PythonExpression default is worth for the given variables and LaunchConfigurations of the launch file."""
    def text(part: ast.expr) -> str:
        if isinstance(part, ast.Constant):
            return part.value
        return words[part.id if isinstance(part, ast.Name) else part.args[0].value]

    return eval("".join(map(text, declared(name)[argument]["default_value"].args[0].elts)))  # as launch does


@pytest.mark.parametrize("driver, robot, expected", [
    ("simulated", "ur16e", "joint_torque"), ("sim", "ur16e", "ur16e_driver"), ("rtde", "ur16e", "ur16e_driver"),
    ("sim", "fr3", ""), ("replay", "ur16e", ""), ("none", "ur16e", ""),
])
def test_sensors_fit_what_the_driver_publishes(driver, robot, expected):
    """The wrist of the papers' recordings is scaled; what this package's drivers publish must not be."""
    assert expression("bringup", "sensors", driver=driver, robot=robot) == expected


@pytest.mark.parametrize("robot", ["ur16e", "fr3"])
def test_the_mpc_has_a_task_for_the_robot_and_commands_the_driver(robot):
    assert (ROOT / "config" / "tasks" / f"{expression('bringup', 'task', robot=robot)}.yaml").is_file()
    node, = (keywords(call) for call in calls("bringup", "Node") if keywords(call)["executable"].value == "mpc")
    assert ("mpc/equilibrium_pose", "equilibrium_pose") in ast.literal_eval(node["remappings"])


def test_choices_of_the_driver_are_the_backends():
    assert set(ast.literal_eval(declared("bringup")["driver"]["choices"])) == {*KINDS, "none"}


def test_nodes_exist_and_know_their_parameters():
    own = {path.stem for path in (ROOT / "contact_estimation" / "nodes").glob("[a-z]*.py")}
    assert own == set(PARAMETERS), "a node's parameters are missing in this test"
    for call in calls("bringup", "Node"):
        options = keywords(call)
        package, executable = options["package"].value, options["executable"].value
        if package != "contact_estimation":
            assert package in FOREIGN and f"<exec_depend>{package}</exec_depend>" in (ROOT / "package.xml").read_text()
            continue
        known = {field.name for field in dataclasses.fields(PARAMETERS[executable])}
        given = {key.value for entry in options["parameters"].elts for key in entry.keys}
        assert given <= known, f"{executable} does not know {given - known}"


def test_replay_passes_on_what_bringup_declares():
    include, = calls("replay", "IncludeLaunchDescription")
    passed = keywords(include)["launch_arguments"].func.value
    assert {key.value for key in passed.keys} <= set(declared("bringup"))
    assert "bringup.launch.py" in ast.dump(include)


@pytest.mark.parametrize("node", PARAMETERS)
def test_every_node_has_an_entry_point(node):
    tree = ast.parse((ROOT / "contact_estimation" / "nodes" / f"{node}.py").read_text())
    assert any(isinstance(item, ast.FunctionDef) and item.name == "main" for item in tree.body)


def test_rviz_shows_robot_contact_wrench_and_frames():
    config = yaml.safe_load((ROOT / "rviz" / "contact.rviz").read_text())
    displays = config["Visualization Manager"]["Displays"]
    classes = {display["Class"].split("/")[1] for display in displays}
    assert {"RobotModel", "MarkerArray", "Wrench", "TF"} <= classes
    topics = {display["Topic"]["Value"] for display in displays if "Topic" in display}
    outputs = (ROOT / "contact_estimation" / "ros" / "outputs.py").read_text()
    for topic in topics:
        node, name = topic.strip("/").split("/")
        assert node in PARAMETERS and f'"{name}"' in outputs, topic
