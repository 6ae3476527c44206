"""Node viewer: a page on loopback gets what the estimators publish, and nothing of what it cannot show."""

import json
import re
import urllib.request

import numpy as np
import pytest
from contact_estimation.msg import ContactEstimate

from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos

TOPIC = "/estimator/contact_estimate"


def estimate(n: int, t: float) -> Estimate:
    contact = ContactState("tip", 0.9, np.array([0, 0, 2e4]), np.zeros(3), np.zeros(3), np.ones(3), np.eye(9) * 1e-6)
    arrays = np.full(n, 0.1), np.zeros(n), np.zeros(n), np.array([0, 0, 30.0]), np.array([0, 0, -30.0]), np.zeros(3)
    return Estimate(t, *arrays, np.eye(3), (contact,), mode="tip", modes={"free": 0.1, "tip": 0.9})


@pytest.mark.parametrize("wrong", [False, True])
def test_page_gets_what_is_published(graph, wrong):
    arm = load_arm("ur16e")
    with graph.start("viewer", {"robot": "fr3" if wrong else "ur16e"}) as viewer:
        assert graph.spin(lambda: "page:" in viewer.text() or not viewer.running), viewer.text()
        address = re.search(r"page: (http://127\.0\.0\.1:\d+/)", viewer.text())[1]
        assert '"live":true' in urllib.request.urlopen(address, timeout=30).read().decode()
        publisher = graph.node.create_publisher(ContactEstimate, TOPIC, qos.SENSOR)
        graph.wait_for_subscriber(TOPIC)
        stream = urllib.request.urlopen(f"{address}live", timeout=30)
        for k in range(600):
            sent = estimate(arm.n, 5.0 + 0.1 * k)
            head = convert.header(round(sent.t * 1e9), "base_link")
            publisher.publish(convert.contact_estimate(sent, head, "tool0", arm.joint_names, "test"))
            graph.spin(timeout=0.05)
            line = stream.readline().decode()
            if line.startswith("data:") or (wrong and "set the parameter 'robot'" in viewer.text()):
                break
        graph.node.destroy_publisher(publisher)
        if wrong:
            assert "is of an arm with 6 joints, fr3 has 7" in viewer.text() and not line.startswith("data:")
        else:
            frame = json.loads(line[5:])
            assert frame["observer"] == "estimator" and frame["force"] == [0.0, 0.0, -30.0] and frame["mode"] == "tip"
            assert frame["q"] == [0.1] * arm.n and frame["stiffness"] == 2e4 and frame["modes"] == ["free", "tip"]
            assert {"force", "contact/tip", "contact/tip/surface"} <= {shape[0] for shape in frame["shapes"]}
        assert viewer.stop() == 0, viewer.text()


def test_a_second_estimator_on_a_topic_is_told(graph):
    arm = load_arm("ur16e")
    message = convert.contact_estimate(
        estimate(arm.n, 5.0), convert.header(5_000_000_000, "base_link"), "tool0", arm.joint_names, "test"
    )
    with graph.start("viewer", {"robot": "ur16e"}) as viewer:
        first, second = (graph.node.create_publisher(ContactEstimate, TOPIC, qos.SENSOR) for _ in range(2))
        graph.wait_for_subscriber(TOPIC)
        with graph.meanwhile(lambda: first.publish(message), 0.01):
            graph.spin(timeout=1.0)
            assert "second estimator" not in viewer.text()
            with graph.meanwhile(lambda: second.publish(message), 0.01):
                assert graph.spin(lambda: f"of a second estimator on {TOPIC} are left out" in viewer.text())
        assert viewer.stop() == 0, viewer.text()
        for publisher in (first, second):
            graph.node.destroy_publisher(publisher)
