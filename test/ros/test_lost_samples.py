"""Samples that a busy node never got are counted: a short gap is integrated, and would hide them."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter

import arm_samples as samples
from contact_estimation.msg import ContactEstimate
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from sensor_msgs.msg import JointState

from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos
from contact_estimation.ros.arrival import LostMessages
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
            time.sleep(0.001)

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
        more = iter(range(1600, 2000))

        def complete() -> bool:
            """What is lost last shows when another sample comes."""
            row = next(more, 2000)
            send(row, min(row + 1, 2000))
            last = reports()[-1][2]
            return int(last.get("lost", 0)) + int(last["samples"]) >= 1599

        assert graph.spin(complete, 60.0), reports()[-1][2]
        assert int(reports()[-1][2]["lost"]) > 500
    graph.node.destroy_publisher(publisher)


def test_messages_that_are_of_no_use_are_not_lost():
    """Every second message has the joints of a gripper: from the arm's driver, or from a node of its own."""
    own, other = LostMessages(), LostMessages()
    found = []
    for number in range(1, 20, 2):
        found += [own.before(number), other.before((number + 1) // 2)]
        own.skip(number + 1)
        other.skip(700 + number)
    assert not any(found)
    assert [own.before(number) for number in (24, 25, 3)] == [3, 0, 0]  # the last one: its publisher began anew


def test_a_period_with_lost_samples_is_a_warning():
    health = StreamHealth("estimator", "ur16e")
    found = []
    for lost in (0, 12, 12):
        health.add(True, "", 1e-4, 1_000_000)
        found.append(health.report(0, Counter(lost=lost), {}).status[0])
    assert [status.level for status in found] == [DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.OK]
    assert found[1].message.startswith("12 samples were lost before this node")
