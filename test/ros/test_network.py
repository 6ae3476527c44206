"""Sockets of a node stand on the loopback interface, unless the user chose another network."""

import os
from pathlib import Path

import pytest
from sensor_msgs.msg import JointState

from contact_estimation.ros import qos
from contact_estimation.ros.network import loopback_by_default, loopback_variables

FAST = "rmw_fastrtps_cpp"
LOOPBACK = "0100007F"  # 127.0.0.1, as the kernel writes it


def addresses(pid: int) -> set[str]:
    """Local addresses of the UDP and TCP sockets of a process, in hexadecimal."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(descriptor))
        except FileNotFoundError:
            continue
    tables = [Path(f"/proc/{pid}/net/{kind}").read_text() for kind in ("udp", "udp6", "tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if f"socket:[{row[9]}]" in inodes}


def test_a_node_listens_on_loopback_and_is_heard(graph, tmp_path):
    topics = ["/joint_states:sensor_msgs/msg/JointState"]
    with graph.start("recorder", {"bag": str(tmp_path / "bag"), "topics": topics}) as recorder:
        publisher = graph.node.create_publisher(JointState, "/joint_states", qos.SENSOR)
        graph.wait_for_subscriber("/joint_states")
        assert addresses(recorder.process.pid) == {LOOPBACK}
        graph.node.destroy_publisher(publisher)


@pytest.mark.parametrize("chosen", [{"ROS_AUTOMATIC_DISCOVERY_RANGE": word} for word in ("SUBNET", "OFF")])
def test_another_range_is_the_users_choice(chosen):
    assert loopback_variables(chosen, FAST) == {}


@pytest.mark.parametrize(
    "name", ["ROS_STATIC_PEERS", "FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_BUILTIN_TRANSPORTS", "ROS_LOCALHOST_ONLY"]
)
def test_a_profile_or_peers_of_the_users_stay(name):
    assert loopback_variables({name: "1"}, FAST) == {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    assert loopback_variables({}, "rmw_cyclonedds_cpp") == {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}


def test_the_environment_is_as_before_afterwards(monkeypatch):
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    before = dict(os.environ)
    with loopback_by_default(FAST):
        assert Path(os.environ["FASTRTPS_DEFAULT_PROFILES_FILE"]).name == "loopback.xml"
    assert dict(os.environ) == before
