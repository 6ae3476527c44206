"""Run one node until SIGINT or SIGTERM, on the executor that keeps up with 500 Hz."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.node import Node

from contact_estimation.exceptions import ContactEstimationError
from contact_estimation.ros import realtime


def run(make_node: Callable[[], Node], args: list[str] | None = None) -> int:
    """Initialise ROS, make the node, spin until a signal or shutdown, tidy up; returns the exit code.

    The node may have a ``close()`` (stop threads, close files), called before it is destroyed, and an ``exit_code``.
    An error raised on purpose (bad parameter, unusable recording) is printed without a traceback and gives 2.
    """
    starting = True

    def interrupted(*_: object) -> None:
        """Interrupt a long start; later ROS itself shuts down, and a second Ctrl-C must not interrupt the clean-up."""
        if starting:
            os._exit(0)

    node = None
    if on_main := threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGINT, interrupted)  # ROS calls it after its own handler
    # Discovery is limited to this machine unless the user sets another range.
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    try:
        rclpy.init(args=args)
        node = make_node()
        if node.has_parameter("realtime"):
            for line in realtime.apply(realtime.parse(node.get_parameter("realtime").value)):
                node.get_logger().info(f"realtime: {line}")
        # Objects made so far are permanent. Without them a garbage collection is too short to delay a sample.
        gc.collect()
        gc.freeze()
        starting = False
        spin(node)
        return getattr(node, "exit_code", 0)
    except ContactEstimationError as error:
        if not rclpy.ok():
            return 0  # interrupted in the middle of its start
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 2
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0
    except Exception:
        if rclpy.ok():
            raise
        return getattr(node, "exit_code", 0)  # a signal shut ROS down during a call
    finally:
        starting = False
        if node is not None:
            getattr(node, "close", lambda: None)()
            node.destroy_node()
        rclpy.try_shutdown()
        if on_main:
            signal.signal(signal.SIGINT, before)


def spin(node: Node) -> None:
    """Spin ``node`` until ROS shuts down.

    The multi-threaded executor loses most of a 500 Hz stream to the interpreter lock. The events executor keeps all of
    it, but its own ``spin()`` does not return on shutdown: hence short turns.
    """
    executor = EventsExecutor()
    executor.add_node(node)
    try:
        while rclpy.ok():
            executor.spin_once(timeout_sec=0.05)
    finally:
        executor.shutdown()
