"""Samples that a busy node never got are counted: a short gap is integrated, and would hide them."""

from __future__ import annotations

import os
import signal
from collections import Counter

import arm_samples as samples
from contact_estimation.msg import ContactEstimate
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from sensor_msgs.msg import JointState

from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos
from contact_estimation.ros.diagnostics import StreamHealth


def test_every_sample_is_either_used_or_counted_as_lost(graph):
    """The estimator stands still while more samples come than its queue holds."""
    arm = load_arm("ur16e")
    recording = samples.recording(arm, 2000)
    estimates = graph.watch(ContactEstimate, "/estimator/contact_estimate")
    health = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    publisher = graph.node.create_publisher(JointState, "/joint_states", qos.SENSOR)

    def send(first: int, end: int) -> None:
        for row in range(first, end):
            head = convert.header(int(recording.stamps_ns[row]), arm.base_frame)
            values = recording.q[row], recording.dq[row], recording.tau[row]
            publisher.publish(convert.joint_state(head, arm.joint_names, *values))
            graph.spin(timeout=0.001)

    def reports() -> list[tuple[bytes, str, dict[str, str]]]:
        found = [s for m in health for s in m.status if s.name.startswith("estimator")]
        return [(s.level, s.message, {v.key: v.value for v in s.values}) for s in found]

    parameters = {"observer": "momentum", "sensors": "joint_torque", "max_age": 0.0}
    with graph.start("estimator", parameters) as estimator:
        graph.wait_for_subscriber("/joint_states")
        assert graph.spin(lambda: (send(0, 1), estimates)[1]), estimator.text()
        graph.spin(timeout=0.5)

        os.kill(estimator.process.pid, signal.SIGSTOP)
        send(1, 1500)
        os.kill(estimator.process.pid, signal.SIGCONT)
        graph.spin(timeout=1.0)
        send(1500, 1600)
        complete = lambda: int(reports()[-1][2].get("lost", 0)) + int(reports()[-1][2]["samples"]) >= 1599  # noqa: E731
        assert graph.spin(complete, 60.0), reports()[-1]
        assert int(reports()[-1][2]["lost"]) > 500
    graph.node.destroy_publisher(publisher)


def test_a_period_with_lost_samples_is_a_warning():
    health = StreamHealth("estimator", "ur16e")
    found = []
    for lost in (0, 12, 12):
        health.add(True, "", 1e-4, 1_000_000)
        found.append(health.report(0, Counter(lost=lost), {}).status[0])
    assert [status.level for status in found] == [DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.OK]
    assert found[1].message.startswith("12 samples were lost before this node")
