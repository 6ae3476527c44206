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
from contact_estimation.ros.arrival import Arrival, LostMessages, TopicLosses
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


def heard(losses: TopicLosses, *numbers: int, begin: float = 0.0, rate: float = 500.0) -> int:
    """Give numbers, published at a rate [Hz] from ``begin`` [s] on and heard at once; how many are lost by then."""
    for k, number in enumerate(numbers):
        sent = begin + k / rate
        losses.add(Arrival(number, 0.0, 1e9 + sent), sent)
    return losses.lost


def test_numbers_that_one_publisher_leaves_out_are_lost():
    losses = TopicLosses()
    assert heard(losses, 70, 71, 72) == 0
    assert heard(losses, 75, 76, begin=0.012) == 2
    assert heard(losses, 1577, begin=3.0) == 1502 and losses.publishers == 1


def test_what_was_lost_behind_a_backlog_is_lost():
    """A process that was suspended reads what queues kept at once, and then hears the newest: 3 s were published."""
    losses = TopicLosses()
    for number, sent in ((1, 0.002), (2, 0.004), (1502, 3.004)):
        losses.add(Arrival(number, 0.0, 1e9 + sent), 50.0)
    assert losses.lost == 1499 and losses.publishers == 1


def test_several_publishers_of_a_topic_lose_nothing_by_being_several():
    """Whatever their numbers are when they are first heard: far apart, near, equal, in either order."""
    for others in (5, 999, 1000, 1001, 1007, 40_000):
        for first, second in ((1000, others), (others, 1000)):
            losses = TopicLosses()
            for k in range(50):
                heard(losses, first + k, second + k, begin=0.004 * k)
            assert losses.lost == 0 and losses.publishers == 2, (first, second)


def test_each_of_two_publishers_loses_its_own():
    losses = TopicLosses()
    for k in (*range(20), *range(1520, 1540)):
        heard(losses, 1000 + k, begin=0.002 * k)
        if k % 10 == 0:
            heard(losses, 50 + k // 10, begin=0.002 * k)
    assert losses.lost == 1500 + 150


def test_a_publisher_that_begins_anew_has_lost_nothing():
    losses = TopicLosses()
    heard(losses, *range(600, 620))
    assert heard(losses, *range(1, 1000), begin=0.5) == 0
    assert heard(losses, *range(1, 1000), begin=9.0) == 0


def test_where_the_middleware_does_not_count_nothing_is_lost():
    assert heard(TopicLosses(), 0, 0, 0) == 0
