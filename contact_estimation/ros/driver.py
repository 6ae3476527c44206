"""The node around a backend that has no hardware behind it: publishes its samples as a driver would."""

from __future__ import annotations

import time

import rclpy
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from contact_estimation.drivers.backend import Backend, Sample
from contact_estimation.exceptions import ContactEstimationError
from contact_estimation.io.topics import POINT, TRUTH_TOPICS, VECTOR, WRENCH, WRENCH_TOPIC
from contact_estimation.robot import Arm
from contact_estimation.ros import convert, qos
from contact_estimation.ros.pacer import Pacer

#: Message type -> (class, numbers (k,) -> message).
_STAMPED = {
    WRENCH: (WrenchStamped, lambda head, row: convert.wrench_stamped(head, row[:3], row[3:])),
    VECTOR: (Vector3Stamped, convert.vector_stamped),
    POINT: (PointStamped, convert.point_stamped),
}


class SamplePublisher:
    """Publishes samples on ``joint_states``, a measured wrench and a simulation's truth beside it."""

    def __init__(self, node: Node, arm: Arm):
        self._node, self._arm = node, arm
        self._states = node.create_publisher(JointState, "joint_states", qos.SENSOR)
        self._others = {}

    def publish(self, sample: Sample, stamp_ns: int) -> None:
        """Publish ``sample`` under the stamp ``stamp_ns`` [ns]; the joint states go last, so that their truth is there
        first.
        """
        if sample.wrench_tcp is not None:
            self._publish_other(WRENCH_TOPIC, WRENCH, self._arm.tcp_frame, sample.wrench_tcp, stamp_ns)
        for name, values in sample.truth.items():
            topic, kind = TRUTH_TOPICS[name]
            frame = self._arm.tcp_frame if name.endswith("_tcp") else self._arm.base_frame
            self._publish_other(topic, kind, frame, values, stamp_ns)
        head = convert.header(stamp_ns, self._arm.base_frame)
        self._states.publish(convert.joint_state(head, self._arm.joint_names, sample.q, sample.dq, sample.tau))

    def _publish_other(self, topic, kind, frame, values, stamp_ns):
        if kind in _STAMPED:
            cls, make = _STAMPED[kind]
            message = make(convert.header(stamp_ns, frame), values)
        else:
            cls = JointState
            message = convert.joint_state(convert.header(stamp_ns, frame), self._arm.joint_names, effort=values)
        if topic not in self._others:
            self._others[topic] = self._node.create_publisher(cls, topic, qos.SENSOR)
        self._others[topic].publish(message)


def start_pacer(node: Node, backend: Backend, deliver, subscribers: int = 0, rate: float = 1.0,
                keep_stamps: bool = False) -> Pacer:
    """Connect ``backend`` and start delivering once ``subscribers`` listen to joint_states; its end ends the process.

    Raises:
        ContactEstimationError: as the backend's ``connect``.
    """
    backend.connect()
    node.exit_code = 0

    def ready() -> bool:
        found = node.count_subscribers("joint_states")
        if found >= subscribers:
            node.get_logger().info(f"start, {found} subscribers")
        return found >= subscribers

    def done(error: Exception | None) -> None:
        if error is not None:
            node.exit_code = 2 if isinstance(error, ContactEstimationError) else 1
            node.get_logger().error(f"{type(error).__name__}: {error}")
        else:
            node.get_logger().info(f"{pacer.delivered} samples delivered, {pacer.late} of them more than 1 ms late")
        time.sleep(0.5)  # what was published last is still on its way
        rclpy.try_shutdown()

    pacer = Pacer(backend, deliver, ready, done, rate, keep_stamps)
    pacer.start()
    return pacer
