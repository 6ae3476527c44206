"""Node ``recorder``: writes topics into an MCAP bag, for machines without ``ros2 bag``."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.validate_topic_name import validate_topic_name
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys.store import Typestore

from contact_estimation.exceptions import ConfigError
from contact_estimation.msg import ContactEstimate
from contact_estimation.ros import parameters, qos
from contact_estimation.ros.bag_types import typestore
from contact_estimation.ros.estimate_topic import EstimateTopic
from contact_estimation.ros.executor import run
from contact_estimation.ros.node_settings import RecorderParameters

#: [s] Period of flushing to the file system.
FLUSH_PERIOD = 0.5


class Recorder(Node):
    """Writes serialised messages as they arrive.

    The bag is complete when the node was stopped by a signal. Killed, it leaves what was flushed twice a second, which
    ``contact-estimation convert`` reads.
    """

    def __init__(self) -> None:
        super().__init__("recorder", automatically_declare_parameters_from_overrides=True)
        settings = parameters.declare(self, RecorderParameters)
        parameters.accept_changes(self, RecorderParameters, set())
        path = Path(settings.bag)
        if path.exists():
            raise ConfigError(f"parameter 'bag': {path} exists already; name a folder that does not, or delete it")
        topics = [self._parse(entry) for entry in settings.topics]
        self._writer = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
        try:
            self._writer.open()
        except OSError as error:
            raise ConfigError(
                f"parameter 'bag': {path} cannot be made ({error.strerror}); name a folder where you may write"
            ) from error
        self.count, self._last_ns, self.exit_code, self.finished = 0, 0, 0, False
        self.create_timer(FLUSH_PERIOD, self._flush)
        self._profile = qos.COMPLETE if settings.complete else qos.RECORDER
        store = typestore()
        for topic, type_name, cls in topics:
            self._record(topic, type_name, cls, store)
        self.get_logger().info(f"recording {len(topics)} topics to {path}")

    def _record(self, topic: str, type_name: str, cls: Any, store: Typestore) -> None:
        connection = None  # made with the first message: the bag lists no topic without one

        def write(raw: bytes) -> None:
            nonlocal connection
            # Never backwards, even if the clock steps: a bag without an index is read in the order of its messages.
            self._last_ns = max(self._last_ns, time.time_ns())
            try:
                connection = connection or self._writer.add_connection(topic, type_name, typestore=store)
                self._writer.write(connection, self._last_ns, raw)
            except OSError as error:
                self._end(error)
            else:
                self.count += 1

        def write_other(raw: bytes) -> None:
            write(raw)
            self.get_logger().error(
                f"two estimators publish on {topic}, and the bag mixes their estimates: one estimator per topic; "
                "end one, or give it another name or namespace",
                throttle_duration_sec=5.0,
            )

        if cls is ContactEstimate:
            EstimateTopic(self, topic, write, self._profile, write_other)
        else:
            self.create_subscription(cls, topic, write, self._profile, raw=True)

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
        storage: Any = self._writer.storage
        try:
            if storage.chunk.bio.tell():
                storage.close_chunk()
            storage.bio.flush()
        except OSError as error:
            self._end(error)

    def _end(self, error: OSError) -> None:
        """End the node where the bag cannot be written, as on a full disk."""
        if not self.exit_code:
            self.exit_code = 2
            self.get_logger().error(f"{self._writer.path} cannot be written ({error.strerror}): recording ends")
            self.finished = True

    def close(self) -> None:
        """Finish the bag."""
        try:
            self._writer.close()
        except OSError as error:
            self.exit_code = 2
            with contextlib.suppress(OSError):
                self._writer.abort()
            print(
                f"error: {self._writer.path} is cut off ({error.strerror}); contact-estimation convert recovers it",
                file=sys.stderr,
                flush=True,
            )
        print(f"{self.count} messages recorded", flush=True)  # the logger publishes too, and ROS is shut down by now


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Recorder, args)
