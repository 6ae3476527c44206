"""A node of the test's own, on a domain of its own, that collects what others publish."""

from __future__ import annotations

import os
import time
from collections import defaultdict

import rclpy
from rclpy.experimental.events_executor import EventsExecutor

from contact_estimation.ros import qos
from contact_estimation.ros.processes import NodeProcess, free_domain


class Watcher:
    """Collects messages by topic; publishes and calls services for a test. One thread, one node, one domain."""

    def __init__(self):
        self.domain = free_domain()
        self.received = defaultdict(list)

    def __enter__(self):
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=self.domain)
        self.node = rclpy.create_node("watcher", context=self._context)
        self._executor = EventsExecutor(context=self._context)
        self._executor.add_node(self.node)
        return self

    def __exit__(self, *_):
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def start(self, node: str, parameters: dict | None = None, **options) -> NodeProcess:
        """A node in a process of its own, on this domain."""
        return NodeProcess(node, self.domain, parameters, **options)

    def watch(self, cls, topic: str, profile=qos.RECORDER) -> list:
        """Collect ``topic`` from now on; returns the growing list."""
        if topic in self.received:
            self.received[topic].clear()
            return self.received[topic]
        self.node.create_subscription(cls, topic, self.received[topic].append, profile)
        return self.received[topic]

    def spin(self, until=lambda: False, timeout: float = 10.0) -> bool:
        """Take messages until ``until()`` or the timeout [s]; returns ``until()``."""
        end = time.monotonic() + timeout
        while not until() and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.02)
        return bool(until())

    def wait_for_subscriber(self, topic: str, count: int = 1, timeout: float = 20.0) -> None:
        """Return once ``count`` subscribers listen to ``topic``."""
        assert self.spin(lambda: self.node.count_subscribers(topic) >= count, timeout), f"nobody subscribes to {topic}"

    def wait_for_publisher(self, topic: str, timeout: float = 20.0) -> None:
        """Return once somebody publishes ``topic``."""
        assert self.spin(lambda: self.node.count_publishers(topic) >= 1, timeout), f"nobody publishes {topic}"

    def call(self, cls, service: str, request=None, timeout: float = 10.0):
        """Call a service and return its response."""
        client = self.node.create_client(cls, service)
        assert self.spin(client.service_is_ready, timeout), f"no service {service}"
        future = client.call_async(request or cls.Request())
        assert self.spin(future.done, timeout), f"no answer from {service}"
        return future.result()
