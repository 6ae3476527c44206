"""Parameters of a node are its settings: declared with their documentation, validated, unknown ones refused."""

import dataclasses
import itertools

import pytest
import rclpy
from rclpy.parameter import Parameter

from contact_estimation.exceptions import ConfigError
from contact_estimation.ros import parameters
from contact_estimation.ros.node_settings import EstimatorParameters, RecorderParameters, RobotDriverParameters

_NUMBER = itertools.count()


@pytest.fixture
def make_node(graph):
    """Nodes with parameter overrides, in the test's own context."""
    nodes = []

    def make(**overrides):
        given = [Parameter(name, value=value) for name, value in overrides.items()]
        nodes.append(
            rclpy.create_node(
                f"parameters_{next(_NUMBER)}",
                context=graph.node.context,
                parameter_overrides=given,
                automatically_declare_parameters_from_overrides=True,
            )
        )
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()


def test_defaults_overrides_and_descriptions(make_node):
    node = make_node(observer="momentum", visualization_rate=10)  # a whole number where a number is meant
    settings = parameters.declare(node, EstimatorParameters, {"arrow_scale": 0.01})
    assert (settings.observer, settings.visualization_rate, settings.arrow_scale) == ("momentum", 10.0, 0.01)
    assert node.get_parameter("arrow_scale").value == 0.01
    assert "[m/N]" in node.describe_parameter("arrow_scale").description
    assert "observer" in node.describe_parameter("observer").description


@pytest.mark.parametrize(
    "given, words",
    [
        ({"observr": "ekf"}, "unknown key 'observr'; the nearest known key is 'observer'"),
        ({"visualization_rate": -1.0}, "must be greater than 0"),
        ({"visualization_rate": "often"}, "must be a number"),
        ({"robot": 16}, "must be a word"),
    ],
)
def test_bad_overrides_are_refused(make_node, given, words):
    with pytest.raises(ConfigError) as error:
        parameters.declare(make_node(**given), EstimatorParameters)
    assert words in str(error.value) and "parameters of node" in str(error.value)


def test_a_missing_parameter_is_named(make_node):
    with pytest.raises(ConfigError, match="'bag' is missing"):
        parameters.declare(make_node(topics=["/a:std_msgs/msg/String"]), RecorderParameters)
    assert parameters.declare(make_node(), RobotDriverParameters).recording == ""


def test_live_changes(make_node):
    node, applied = make_node(), []
    parameters.declare(node, EstimatorParameters)
    parameters.accept_changes(node, EstimatorParameters, {"arrow_scale"}, applied.append)
    (good,) = node.set_parameters([Parameter("arrow_scale", value=0.02)])
    assert good.successful and applied[-1].arrow_scale == 0.02
    (bad,) = node.set_parameters([Parameter("arrow_scale", value=-1.0)])
    assert not bad.successful and "greater than 0" in bad.reason
    (fixed,) = node.set_parameters([Parameter("robot", value="fr3")])
    assert not fixed.successful and "restart" in fixed.reason and "arrow_scale" in fixed.reason
    everything = [f.name for f in dataclasses.fields(EstimatorParameters) if f.name != "arrow_scale"]
    for name in everything:
        (answer,) = node.set_parameters([Parameter(name, value=node.get_parameter(name).value)])
        assert not answer.successful and name in answer.reason
    assert len(applied) == 1 and node.get_parameter("arrow_scale").value == 0.02


def test_a_wrong_value_names_the_users_file(make_node, monkeypatch):
    """A launch passes parameters in temporary files of its own, which would only confuse."""
    given = ["node", "--ros-args", "--params-file", "/tmp/launch_params_x", "--params-file", "mine.yaml"]
    monkeypatch.setattr("sys.argv", given)
    with pytest.raises(ConfigError, match=r"\(mine.yaml\): 'max_age' must not be negative, found -1.0 s"):
        parameters.declare(make_node(max_age=-1.0), EstimatorParameters)
