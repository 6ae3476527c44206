"""Base of the driver nodes: publish a backend's samples."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from rclpy.duration import Duration
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from contact_estimation.drivers.backend import Backend, Sample
from contact_estimation.drivers.joint_torque import JointTorqueBackend
from contact_estimation.exceptions import ConfigError, ContactEstimationError
from contact_estimation.io.topics import POINT, TRUTH_TOPICS, VECTOR, WRENCH, WRENCH_TOPIC
from contact_estimation.robot import Arm
from contact_estimation.ros import convert, qos
from contact_estimation.ros.frames import Frames
from contact_estimation.ros.node_settings import DriverParameters
from contact_estimation.ros.pacer import Pacer
from contact_estimation.ros.serialized import SerializedMessage

#: [s] A simulation that is further behind its schedule pauses.
MAX_LATE = 0.2
#: A recording's last samples may take so long to arrive.
_LAST_HEARD = Duration(seconds=30.0)
#: [s] A reliable source that has ended waits this long at most for slow listeners.
_DRAIN = 60.0
#: [s] A problem that was absent for so long has ended.
_ENDED = 1.0
#: [ns] Time between two messages on /clock.
_CLOCK_PERIOD = 10_000_000
#: Message type -> (class, numbers (k,) -> message).
_STAMPED: dict[str, tuple[Any, Callable[[Header, np.ndarray], Any]]] = {
    WRENCH: (WrenchStamped, lambda head, row: convert.wrench_stamped(head, row[:3], row[3:])),
    VECTOR: (Vector3Stamped, convert.vector_stamped),
    POINT: (PointStamped, convert.point_stamped),
}


class SamplePublisher:
    """Publishes samples on ``joint_states``, and the measured wrench and a simulation's truth on their topics.

    Args:
        node: that publishes.
        arm: the robot.
        frames: its frames.
        complete: reliably, so that nothing is lost.
        clock: the samples' time also on ``/clock``, for nodes with ``use_sim_time``; it jumps as they do.
    """

    def __init__(self, node: Node, arm: Arm, frames: Frames, complete: bool = False, clock: bool = False) -> None:
        self._node, self._arm, self._frames = node, arm, frames
        self._profile = qos.COMPLETE if complete else qos.SENSOR
        self._states = node.create_publisher(JointState, "joint_states", self._profile)
        head, n = convert.header(0, frames.base), arm.n
        self._message = SerializedMessage(
            lambda v: convert.joint_state(head, arm.joint_names, v[:n], v[n : 2 * n], v[2 * n :]), 3 * n
        )
        self._numbers = np.zeros(3 * n)
        self._others: dict[str, tuple[Any, SerializedMessage]] = {}
        self._clock = node.create_publisher(Clock, "/clock", qos.VISUALIZATION) if clock else None
        self._clock_ns = 0

    def publish(self, sample: Sample, stamp_ns: int) -> None:
        """Publish ``sample`` under the stamp ``stamp_ns`` [ns]; the joint states go last, behind their truth."""
        if self._clock is not None and not 0 <= stamp_ns - self._clock_ns < _CLOCK_PERIOD:
            self._clock_ns = stamp_ns
            self._clock.publish(Clock(clock=convert.header(stamp_ns, "").stamp))
        if sample.wrench_tcp is not None:
            self._publish_other(WRENCH_TOPIC, WRENCH, self._frames.tcp, sample.wrench_tcp, stamp_ns)
        for name, values in sample.truth.items():
            topic, kind = TRUTH_TOPICS[name]
            frame = self._frames.tcp if name.endswith("_tcp") else self._frames.base
            self._publish_other(topic, kind, frame, values, stamp_ns)
        np.concatenate((sample.q, sample.dq, sample.tau), out=self._numbers)
        self._states.publish(self._message.with_numbers(stamp_ns, self._numbers))

    def drain(self) -> None:
        """Wait until every reliable subscriber has received what was published."""
        if self._profile is qos.COMPLETE:
            self._states.wait_for_all_acked(Duration(seconds=_DRAIN))

    def _publish_other(self, topic: str, kind: str, frame: str, values: np.ndarray, stamp_ns: int) -> None:
        if topic not in self._others:
            self._others[topic] = self._other(topic, kind, convert.header(0, frame), len(values))
        publisher, message = self._others[topic]
        if publisher.get_subscription_count():
            publisher.publish(message.with_numbers(stamp_ns, values))

    def _other(self, topic: str, kind: str, head: Header, size: int) -> tuple[Any, SerializedMessage]:
        """Return publisher and message of a topic beside the joint states."""
        names = self._arm.joint_names
        cls, make = _STAMPED.get(kind) or (JointState, lambda head, row: convert.joint_state(head, names, effort=row))
        publisher = self._node.create_publisher(cls, topic.lstrip("/"), self._profile)
        return publisher, SerializedMessage(lambda row: make(head, row), size)


def feed_states(backend: JointTorqueBackend, message: JointState, prefix: str, now_ns: int) -> None:
    """Hand a joint state message to a backend that is fed.

    Args:
        backend: that takes it.
        message: of the arm's own driver.
        prefix: that may stand in front of the joints' names.
        now_ns: by the clock of the stamps [ns].
    """
    stamp_ns = convert.stamp_ns(message.header.stamp)
    names = [name.removeprefix(prefix) for name in message.name] if prefix else message.name
    age = 1e-9 * (now_ns - stamp_ns)
    backend.feed(stamp_ns, names, message.position, message.velocity, message.effort, age)


class ProblemLog:
    """What a log says of the problem of a backend: every kind of it as it comes, and its end.

    Problems that differ in their numbers only are one kind.

    Args:
        clock: replaceable for tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._told = clock, set[str]()
        self._begin = self._last = 0.0  # [s] when there was one first, and last

    def warning(self, problem: str) -> str:
        """Take the present problem, "" for none; return it where it shall be logged, else ""."""
        if not problem:
            return ""
        self._last = self._clock()
        if not self._told:
            self._begin = self._last
        kind = re.sub(r"[\d.]+", "#", problem)
        new = kind not in self._told
        self._told.add(kind)
        return problem if new else ""

    def ended(self) -> str:
        """Return the line that tells the end of what was logged, once; "" for none."""
        if not self._told or self._clock() - self._last < _ENDED:
            return ""
        self._told.clear()
        return f"samples flow, after {self._last - self._begin:.1f} s with a problem"


def start_pacer(
    node: Node,
    backend: Backend,
    deliver: Callable[[Sample, int], None],
    settings: DriverParameters,
    drain: Callable[[], None],
) -> Pacer:
    """Connect ``backend`` and deliver its samples once those listen who are waited for; its end ends the process.

    Raises:
        ConfigError: the samples' time shall be on /clock, but not in the stamps.
        ContactEstimationError: as the backend's ``connect``.
    """
    if settings.clock and not settings.keep_stamps:
        raise ConfigError("parameter 'clock' needs keep_stamps: true, or the samples would not have the time of /clock")
    backend.connect()
    node.exit_code = 0

    def ready() -> bool:
        listeners = node.get_subscriptions_info_by_topic("joint_states")
        here = {listener.node_name for listener in listeners if listener.node_namespace == node.get_namespace()}
        missing = [name for name in settings.wait_for if name not in here]
        if missing:
            node.get_logger().info(f"waiting for {', '.join(missing)}", throttle_duration_sec=5.0)
        elif len(listeners) >= settings.wait_for_subscribers:
            node.get_logger().info(f"start, {len(listeners)} subscribers")
        return not missing and len(listeners) >= settings.wait_for_subscribers

    def done(error: Exception | None) -> None:
        if error is not None:
            node.exit_code = 2 if isinstance(error, ContactEstimationError) else 1
            node.get_logger().error(f"{type(error).__name__}: {error}")
        else:
            node.get_logger().info(f"{pacer.delivered} samples delivered, {pacer.late} of them more than 1 ms late")
        for publisher in node.publishers:  # a reliable one waits until it was heard
            publisher.wait_for_all_acked(_LAST_HEARD)
        drain()
        time.sleep(0.5)  # what was published last is still on its way
        node.finished = True

    recorded = settings.complete or settings.keep_stamps
    max_late = math.inf if recorded else MAX_LATE
    pacer = Pacer(backend, deliver, ready, done, settings.rate, settings.keep_stamps, max_late)
    pacer.start()
    return pacer
