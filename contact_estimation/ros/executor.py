"""Run one node until SIGINT or SIGTERM, on the executor that keeps up with 500 Hz.

ROS' own handlers invalidate the context at once, under callbacks and threads that publish. Here a signal only ends the
spinning: the node is closed while the context is still valid.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator

import rclpy
from rclpy.exceptions import NameValidationException
from rclpy.executors import ExternalShutdownException
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from contact_estimation.exceptions import ConfigError, ContactEstimationError
from contact_estimation.ros import network, realtime

#: [s] How long a thread may keep the interpreter while another one, as that of the samples, waits; Python has 5 ms.
_SWITCH_INTERVAL = 1e-4
#: [s] Ctrl-C in a terminal comes twice, from the terminal and from the launch; a later signal is meant as a second one.
_SECOND_SIGNAL = 1.0
#: Part of what rclpy raises where a parameter is an empty list.
_EMPTY_LIST = "PARAMETER_NOT_SET"
#: [s] Wait between the end of a node and the end of its DDS participant. If both end at once, other participants may
#: process the two in the wrong order, and keep the node's name in the graph. The wait is made of turns. A turn that
#: ends late shows a machine too busy for the others, and does not count. The last number bounds the whole wait.
_FAREWELL, _TURN, _LONGEST = 0.3, 0.03, 2.0


class Interrupts:
    """SIGINT and SIGTERM interrupt the start of a node, and later end its spinning.

    A second signal may interrupt the handler of the first, so nothing here waits, as an event would for its own lock.

    Attributes:
        starting: whether the node is being made.
        stop: whether a signal came.
    """

    def __init__(self) -> None:
        self.starting, self.stop, self._first = False, False, float("inf")

    def __call__(self, *_: object) -> None:
        """Take a signal: the first one ends a long start in order, one that comes later ends it at once."""
        if not self.starting:
            self.stop = True
        elif not self.stop:
            self.stop, self._first = True, time.monotonic()
            raise KeyboardInterrupt
        elif time.monotonic() - self._first > _SECOND_SIGNAL:
            os._exit(0)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Handle the signals meanwhile, on the main thread; another thread cannot."""
        numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
        before = {number: signal.signal(number, self) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(make_node: Callable[[], Node], args: list[str] | None = None) -> int:
    """Initialise ROS, make the node, spin until a signal or shutdown, tidy up; returns the exit code.

    The node may have a ``close()`` (stop threads, close files), called before it is destroyed, an ``exit_code``, which
    is read after that, and
    ``finished``, which ends it: shutting ROS down would leave its name in the graph of others.
    An error raised on purpose (bad parameter, unusable recording) is printed without a traceback and gives 2.
    """
    interrupts = Interrupts()
    nodes: list[Node] = []
    with interrupts.installed():
        code = _run(make_node, args, interrupts, nodes)
    return code or next((getattr(node, "exit_code", 0) for node in nodes), 0)


def _run(make_node: Callable[[], Node], args: list[str] | None, interrupts: Interrupts, nodes: list[Node]) -> int:
    """Do what :func:`run` does; ``nodes`` gets the node once it is made. Its own exit code is not looked at."""
    node = None
    try:
        interrupts.starting = True
        with network.loopback_by_default(rclpy.get_rmw_implementation_identifier()):
            _init(args, interrupts)
            node = make_node()
        nodes.append(node)
        interrupts.starting = False
        if node.has_parameter("realtime"):
            for line in realtime.apply(realtime.parse(node.get_parameter("realtime").value)):
                node.get_logger().info(f"realtime: {line}")
        # Objects made so far are permanent. Without them a garbage collection is too short to delay a sample.
        gc.collect()
        gc.freeze()
        sys.setswitchinterval(_SWITCH_INTERVAL)
        spin(node, interrupts)
        return 0
    except ContactEstimationError as error:
        return _refuse(error, str(error))
    except NameValidationException as error:
        told = " ".join(str(error).split()).removesuffix(" ^")
        return _refuse(error, f"{told}; correct the parameter or the remapping that has this name")
    except KeyboardInterrupt as stopped:
        _let_go(stopped)
        return 0
    except ExternalShutdownException:
        return 0
    except Exception as error:
        if _EMPTY_LIST in str(error):
            return _refuse(
                error, "a parameter is an empty list, of which ROS knows no type: give it entries, or leave it out"
            )
        # An import in C replaces a KeyboardInterrupt by an error of its own. Or the node shut ROS down during a call.
        if rclpy.ok() and not (interrupts.starting and interrupts.stop):
            raise
        return 0
    finally:
        interrupts.starting = False
        if node is not None:
            getattr(node, "close", lambda: None)()
            node.destroy_node()
        if rclpy.ok():
            _say_farewell()
            rclpy.try_shutdown()


def _init(args: list[str] | None, interrupts: Interrupts) -> None:
    """Initialise ROS, and leave the signals alone.

    Raises:
        ConfigError: the ROS arguments, or a file of parameters, cannot be read.
    """
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:  # an RCLError
        if interrupts.stop:
            raise
        told = re.sub(r", at \S+:\d+", "", str(error)).removeprefix("failed to initialize rcl: ")
        raise ConfigError(f"{told}: correct the arguments behind --ros-args, or that file") from error


def _refuse(error: Exception, told: str) -> int:
    """Say in one line why the node does not start, and give its exit code."""
    print(f"error: {told}", file=sys.stderr, flush=True)
    _let_go(error)
    return 2


def _let_go(error: BaseException) -> None:
    """Forget a node that is half made: it leaves the graph with the last reference to it."""
    traceback.clear_frames(error.__traceback__)
    gc.collect()


def _say_farewell() -> None:
    """Wait until others have heard that the node is gone."""
    now, end, heard = time.monotonic(), time.monotonic() + _LONGEST, 0.0
    while heard < _FAREWELL and now < end:
        time.sleep(_TURN)
        before, now = now, time.monotonic()
        heard += _TURN if now - before < 1.5 * _TURN else 0.0


def spin(node: Node, interrupts: Interrupts) -> None:
    """Spin ``node`` until a signal comes, it is finished, or ROS shuts down.

    The multi-threaded executor loses most of a 500 Hz stream to the interpreter lock. The events executor keeps all of
    it, but its own ``spin()`` does not return on shutdown: hence short turns.
    """
    executor = EventsExecutor()
    executor.add_node(node)
    try:
        while rclpy.ok() and not interrupts.stop and not getattr(node, "finished", False):
            executor.spin_once(timeout_sec=0.05)
    finally:
        executor.shutdown()
