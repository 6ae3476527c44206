"""Every topic and service that a node of this package offers is named in the pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState

ROOT = Path(__file__).resolve().parents[2]
PAGES = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("ros", "drivers", "mpc", "recordings", "view"))
#: Packages of the services that every node of ROS has.
STANDARD = ("rcl_interfaces/", "lifecycle_msgs/", "type_description_interfaces/")
#: Topics that every node of ROS has.
OF_ROS = {"/rosout", "/parameter_events", "transition_event"}
LIVE = {"robot": "ur16e", "configure_at_start": True, "duration": 600.0, "wait_for_subscribers": 0}
LIVE |= {"keep_stamps": True, "clock": True}


def offered(graph, node: str) -> set[str]:
    """Names of topics and services of a node, its own ones as in the pages: ``~/markers``."""
    topics = graph.node.get_publisher_names_and_types_by_node(node, "/")
    services = graph.node.get_service_names_and_types_by_node(node, "/")
    names = {name for name, types in services if not types[0].startswith(STANDARD)} | {name for name, _ in topics}
    private = f"/{node}/"
    return {f"~/{name.removeprefix(private)}" if name.startswith(private) else name for name in names}


@pytest.mark.parametrize(
    "node, parameters, expected",
    [
        ("estimator", {"observer": "ekf"}, {"~/contact_estimate", "~/zero", "~/reset", "~/markers", "/diagnostics"}),
        ("momentum_observer", {}, {"~/external_wrench", "~/external_joint_torques"}),
        ("driver", LIVE, {"/joint_states", "/clock", "~/impedance", "/truth/external_wrench"}),
        ("mpc", {}, {"~/equilibrium_pose", "~/prediction", "~/markers"}),
    ],
)
def test_topics_and_services_are_documented(graph, node, parameters, expected):
    with graph.start(node, parameters):
        assert graph.spin(lambda: node in graph.node.get_node_names())
        if node == "mpc":
            request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE))
            assert graph.call(ChangeState, "/mpc/change_state", request).success
        assert graph.spin(lambda: expected <= offered(graph, node), 20.0), sorted(offered(graph, node))
        found = {name for name in offered(graph, node) if name.removeprefix("~/") not in OF_ROS}
        missing = [name for name in found if not re.search(rf"`{re.escape(name)}[`\s,]", PAGES)]
        assert not missing
