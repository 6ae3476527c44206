"""Node ``recorder``: writes topics into an MCAP bag, for machines without ``ros2 bag``."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.validate_topic_name import validate_topic_name
from std_msgs.msg import String

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.io.growing_bag import GrowingBag
from contact_estimation.io.topics import ROBOT_TOPIC, SENSORS_TOPIC, TEXT, TOOL_TOPIC
from contact_estimation.msg import ContactEstimate
from contact_estimation.ros import arrival as arrivals, convert, parameters, qos
from contact_estimation.ros.arrival import Arrival, OnePublisher, TopicLosses
from contact_estimation.ros.bag_types import typestore
from contact_estimation.ros.estimate_topic import SILENCE
from contact_estimation.ros.executor import run
from contact_estimation.ros.frames import status_name
from contact_estimation.ros.node_settings import RecorderParameters
from contact_estimation.ros.steady_timer import steady_timer

#: [s] Periods of flushing to the file system and of the diagnostics.
FLUSH_PERIOD, REPORT_PERIOD = 0.5, 1.0
#: [s] The diagnostics warn where the disk lasts no longer.
_SHORT = 300.0


class Recorder(Node):
    """Writes serialised messages as they arrive.

    The bag is complete when the node was stopped by a signal. Killed, it leaves what was flushed twice a second, which
    ``contact-estimation convert`` reads. On a full disk the node drops what comes, says so in its diagnostics until it
    is stopped, and then gives exit code 2: its end would end a launch, with the estimators. Messages that never came,
    because this node or the machine was too slow, are counted in the diagnostics and in the node's last line.
    """

    def __init__(self) -> None:
        super().__init__("recorder", automatically_declare_parameters_from_overrides=True)
        settings = parameters.declare(self, RecorderParameters)
        parameters.accept_changes(self, RecorderParameters, set())
        topics = [self._parse(entry) for entry in settings.topics]
        try:
            self._bag = GrowingBag(Path(settings.bag), typestore())
        except RecordingError as error:
            raise ConfigError(f"parameter 'bag': {error}") from error
        self._last_ns, self.exit_code = 0, 0
        self._losses: dict[str, TopicLosses] = {}
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
        steady_timer(self, FLUSH_PERIOD, self._flush)
        steady_timer(self, REPORT_PERIOD, self._report)
        self._profile = qos.COMPLETE if settings.complete else qos.RECORDER
        for topic, type_name, cls in topics:
            self._record(topic, type_name, cls)
        told = {ROBOT_TOPIC: settings.robot, TOOL_TOPIC: settings.tool, SENSORS_TOPIC: settings.sensors}
        for topic, name in told.items():
            if name:
                self._write(topic, TEXT, serialize_message(String(data=name)))
        self.get_logger().info(f"recording {len(topics)} topics to {self._bag.path}")

    def _write(self, topic: str, type_name: str, raw: bytes) -> None:
        # Never backwards, even if the clock steps: a bag without an index is read in the order of its messages.
        self._last_ns = max(self._last_ns, time.time_ns())
        self._bag.write(topic, type_name, self._last_ns, raw)

    def _record(self, topic: str, type_name: str, cls: Any) -> None:
        losses = self._losses[topic] = TopicLosses()
        estimator = OnePublisher(SILENCE) if cls is ContactEstimate else None

        def take(raw: bytes, arrival: Arrival) -> None:
            self._write(topic, type_name, raw)
            t = time.monotonic()
            losses.add(arrival, t)
            if estimator is not None and not estimator.follows(arrival.number, t) and losses.publishers > 1:
                self.get_logger().error(
                    f"two estimators publish on {topic}, and the bag mixes their estimates: one estimator per topic; "
                    "end one, or give it another name or namespace",
                    throttle_duration_sec=5.0,
                )

        arrivals.subscribe(self, cls, topic, take, self._profile, raw=True)

    @staticmethod
    def _parse(entry: str) -> tuple[str, str, Any]:
        topic, _, type_name = entry.partition(":")
        package, _, name = type_name.partition("/msg/")
        validate_topic_name(topic)  # before there is a bag
        try:
            return topic, type_name, getattr(importlib.import_module(f"{package}.msg"), name)
        except (ImportError, AttributeError, TypeError) as error:
            raise ConfigError(
                f"parameter 'topics': '{entry}' is not TOPIC:PACKAGE/msg/TYPE of an installed type; for example "
                "/joint_states:sensor_msgs/msg/JointState"
            ) from error

    def _flush(self) -> None:
        self._bag.flush()
        if self._bag.problem and not self.exit_code:
            self.exit_code = 2
            self.get_logger().error(self._bag.problem)
            self._report()

    def _report(self) -> None:
        """Say how much is written, what was lost, and whether the disk takes more."""
        level, message, left = DiagnosticStatus.OK, "recording", self._bag.seconds_left()
        lost = self._lost()
        if self._bag.problem:
            level, message = DiagnosticStatus.ERROR, self._bag.problem
        elif left < _SHORT:
            level, message = DiagnosticStatus.WARN, f"the disk is full in {left:.0f} s: make room, or end the recording"
        elif lost:
            level = DiagnosticStatus.WARN
            message = f"the bag lacks messages that never came ({lost}): this node or the machine was too slow"
        values = {
            "bag": str(self._bag.path),
            "messages": str(self._bag.flushed),
            "size [MB]": f"{1e-6 * self._bag.size:.1f}",
            "disk lasts [s]": f"{left:.0f}",
            "lost": str(sum(losses.lost for losses in self._losses.values())),
        }
        status = DiagnosticStatus(
            level=level,
            name=status_name(self),
            message=message,
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        head = convert.header(self.get_clock().now().nanoseconds, "")
        self._diagnostics.publish(DiagnosticArray(header=head, status=[status]))

    def _lost(self) -> str:
        """Say how many messages never came, of which topics; "" where there are none."""
        return ", ".join(f"{losses.lost} of {topic}" for topic, losses in self._losses.items() if losses.lost)

    def close(self) -> None:
        """Finish the bag."""
        self._bag.close()
        if self._bag.problem:
            self.exit_code = 2
            print(f"error: {self._bag.problem}", file=sys.stderr, flush=True)
        # The logger publishes too, and ROS is shut down.
        print(f"{self._bag.flushed} messages recorded, {self._lost() or 'none'} lost", flush=True)


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Recorder, args)
