"""Node ``recorder``: what is published, into an MCAP bag, for machines without ``ros2 bag``."""

from __future__ import annotations

import importlib
import time
from pathlib import Path

from rclpy.node import Node
from rosbags.rosbag2 import StoragePlugin, Writer

from contact_estimation.exceptions import ConfigError
from contact_estimation.ros import parameters, qos
from contact_estimation.ros.bag_types import typestore
from contact_estimation.ros.executor import run
from contact_estimation.ros.node_settings import RecorderParameters


class Recorder(Node):
    """Writes serialised messages as they arrive; the bag is complete when the node was stopped by a signal."""

    def __init__(self):
        super().__init__("recorder", automatically_declare_parameters_from_overrides=True)
        settings = parameters.declare(self, RecorderParameters)
        path = Path(settings.bag)
        if path.exists():
            raise ConfigError(f"parameter 'bag': {path} exists already; name a folder that does not, or delete it")
        topics = [self._parse(entry) for entry in settings.topics]
        self._writer = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
        self._writer.open()
        self.count = 0
        store = typestore()
        for topic, type_name, cls in topics:
            self._record(topic, type_name, cls, store)
        self.get_logger().info(f"recording {len(topics)} topics to {path}")

    def _record(self, topic, type_name, cls, store):
        connection = self._writer.add_connection(topic, type_name, typestore=store)

        def write(raw: bytes) -> None:
            self._writer.write(connection, time.time_ns(), raw)
            self.count += 1

        self.create_subscription(cls, topic, write, qos.RECORDER, raw=True)

    @staticmethod
    def _parse(entry: str):
        topic, _, type_name = entry.partition(":")
        package, _, name = type_name.partition("/msg/")
        try:
            return topic, type_name, getattr(importlib.import_module(f"{package}.msg"), name)
        except (ImportError, AttributeError, TypeError) as error:
            raise ConfigError(
                f"parameter 'topics': '{entry}' is not TOPIC:PACKAGE/msg/TYPE of an installed type; for example "
                "/joint_states:sensor_msgs/msg/JointState"
            ) from error

    def close(self) -> None:
        """Finish the bag."""
        self._writer.close()
        print(f"{self.count} messages recorded", flush=True)  # the logger publishes too, and ROS is shut down by now


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Recorder, args)
