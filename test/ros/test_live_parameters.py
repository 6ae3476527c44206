"""Every declared parameter of every node: a change is applied, or refused with a reason that names it."""

from __future__ import annotations

import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters
from test_graph import Feed
from visualization_msgs.msg import MarkerArray

from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos

PRESS = {"driver": "simulated", "duration": 600.0, "ahead": False, "wait_for_subscribers": 9}
#: Node -> its parameters at the start. The other executables are one of these nodes with other defaults.
NODES = {
    "estimator": {"observer": "ekf"},
    "combined": {**PRESS, "observer": "ekf"},
    "driver": PRESS,
    "mpc": {},
    "viewer": {},
    "recorder": {"topics": ["/joint_states:sensor_msgs/msg/JointState"]},
}
DRAWN = {"visualization_rate", "arrow_scale"}
ESTIMATOR = DRAWN | {"max_age", "zero_in_contact", "arrow_hide_below"}
LIVE = {"estimator": ESTIMATOR, "combined": ESTIMATOR, "mpc": DRAWN}
#: What a refusal says: when it may change, or which values there are.
WORDS = ("restart", "must be greater", "must not be negative", "must be true or false")
#: A parameter that rclpy itself declares and answers for.
OWN = ("start_type_description_service",)


def number(value: float) -> ParameterValue:
    return ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)


def put(graph, node: str, name: str, value: ParameterValue):
    """Ask for a change; the node's answer."""
    request = SetParameters.Request(parameters=[Parameter(name=name, value=value)])
    return graph.call(SetParameters, f"/{node}/set_parameters", request).results[0]


@pytest.mark.parametrize("node", NODES)
def test_every_change_is_applied_or_refused_with_a_reason(graph, tmp_path, node):
    given = NODES[node] | ({"bag": str(tmp_path / "bag")} if node == "recorder" else {})
    with graph.start(node, given, remap={"__node": node}) as process:
        names = graph.call(ListParameters, f"/{node}/list_parameters").result.names
        assert LIVE.get(node, set()) <= set(names) and len(names) > 3, process.text()
        values = graph.call(GetParameters, f"/{node}/get_parameters", GetParameters.Request(names=names)).values
        for name, value in zip(names, values):
            answer = put(graph, node, name, value)
            if name in LIVE.get(node, set()):
                assert answer.successful, answer.reason
                answer = put(graph, node, name, number(-5.0))
            if name not in OWN:
                assert not answer.successful and name in answer.reason
                assert any(word in answer.reason for word in WORDS)
        unknown = put(graph, node, "people_rate", number(-5.0))
        assert not unknown.successful and "undeclared" in unknown.reason
        assert process.running and process.stop() == 0, process.text()


def test_changes_of_the_drawing_act(graph):
    arm = load_arm("ur16e")
    messages = graph.watch(MarkerArray, "/estimator/markers", qos.VISUALIZATION)

    with graph.start("estimator", {"observer": "momentum", "sensors": "joint_torque", "max_age": 0.0}) as process:
        feed = Feed(graph, arm, process)
        feed.begin()
        feed.settle()
        since = 0  # [ns] stamp of the last sample before a change

        def drawings() -> list:
            """The markers of samples that came after the last change."""
            return [m.markers for m in messages if convert.stamp_ns(m.markers[-1].header.stamp) > since]

        def arrow_is_drawn() -> bool:
            """Whether the next markers have a force arrow."""

            def drawn() -> bool:
                feed.send(feed.sample())
                return bool(drawings())

            assert graph.spin(drawn), process.text()
            return any(marker.ns == "force" and marker.action == marker.ADD for marker in drawings()[-1])

        def change(name: str, value: float) -> None:
            nonlocal since
            assert put(graph, "estimator", name, number(value)).successful
            since = feed.stamp

        arrow_is_drawn()
        change("arrow_hide_below", 1e6)
        assert not arrow_is_drawn()
        change("arrow_hide_below", 0.0)
        assert arrow_is_drawn()
        change("visualization_rate", 1e-3)
        for _ in range(200):
            feed.send(feed.sample())
        assert len(drawings()) <= 1  # which was due
        change("visualization_rate", 50.0)
        arrow_is_drawn()
        graph.node.destroy_publisher(feed._publisher)
