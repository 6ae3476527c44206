"""A node of the test's own, on a domain of its own, that collects what others publish."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

import rclpy
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.experimental.events_executor import EventsExecutor

from contact_estimation.ros import qos
from contact_estimation.ros.processes import NodeProcess, free_domain

#: [s] No wait lasts longer. It ends a test that failed: a busy machine may have to compile an observer meanwhile.
LIMIT = 300.0
#: [s] A server drops its answer where it has not discovered the client yet: so long a silence repeats the request.
SILENCE = 5.0
#: Transition -> state behind it.
GOALS = {
    Transition.TRANSITION_CONFIGURE: State.PRIMARY_STATE_INACTIVE,
    Transition.TRANSITION_CLEANUP: State.PRIMARY_STATE_UNCONFIGURED,
    Transition.TRANSITION_ACTIVATE: State.PRIMARY_STATE_ACTIVE,
    Transition.TRANSITION_DEACTIVATE: State.PRIMARY_STATE_INACTIVE,
}


class Watcher:
    """Collects messages by topic; publishes and calls services for a test. One thread, one node, one domain."""

    def __init__(self):
        self.domain = free_domain()
        self._subscriptions = {}
        self._clients = {}
        self._duties = []

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
        """Collect ``topic`` from now on; returns the growing list. What an earlier watch left unread is dropped."""
        key, received = (topic, id(profile)), []
        if key in self._subscriptions:
            self.node.destroy_subscription(self._subscriptions[key])
        self._subscriptions[key] = self.node.create_subscription(cls, topic, received.append, profile)
        return received

    def now_ns(self) -> int:
        """The graph's time [ns]."""
        return self.node.get_clock().now().nanoseconds

    def spin(self, until=lambda: False, timeout: float = LIMIT) -> bool:
        """Take messages until ``until()`` or the timeout [s]; returns ``until()``."""
        end = time.monotonic() + timeout
        while not (done := until()) and time.monotonic() < end:
            for duty in self._duties:
                duty()
            self._executor.spin_once(timeout_sec=0.02)
        return bool(done)

    @contextmanager
    def meanwhile(self, duty, period: float = 0.0):
        """Call ``duty()`` in turns of :meth:`spin`, at most once per period [s], also while services are called."""
        last = [-period]

        def when_due() -> None:
            if time.monotonic() - last[0] >= period:
                last[0] = time.monotonic()
                duty()

        self._duties.append(when_due)
        yield
        self._duties.remove(when_due)

    def wait_for_subscriber(self, topic: str, count: int = 1) -> None:
        """Return once ``count`` subscribers listen to ``topic``."""
        assert self.spin(lambda: self.node.count_subscribers(topic) >= count), f"nobody subscribes to {topic}"

    def wait_for_publisher(self, topic: str) -> None:
        """Return once somebody publishes ``topic``."""
        assert self.spin(lambda: self.node.count_publishers(topic) >= 1), f"nobody publishes {topic}"

    def call(self, cls, service: str, request=None):
        """Call a service that may be called twice, and return its response."""
        answers, end = [], time.monotonic() + LIMIT
        while time.monotonic() < end:
            answers.append(self._ask(cls, service, request or cls.Request()))
            if self.spin(lambda: any(a.done() for a in answers), SILENCE):
                return next(a for a in answers if a.done()).result()
        raise AssertionError(f"no answer from {service}")

    def state(self, node: str) -> int:
        """Lifecycle state of a node."""
        return self.call(GetState, f"/{node}/get_state").current_state.id

    def change(self, node: str, transition: int) -> bool:
        """Ask for a lifecycle transition; whether it succeeded. Where the answer is lost, the node's state tells."""
        request, end = ChangeState.Request(transition=Transition(id=transition)), time.monotonic() + LIMIT
        while time.monotonic() < end:
            answer = self._ask(ChangeState, f"/{node}/change_state", request)
            if self.spin(answer.done, SILENCE):
                return answer.result().success
            reached = self.state(node) == GOALS[transition]  # answered behind a transition that takes long
            if self.spin(answer.done, 1.0):
                return answer.result().success
            if reached:
                return True
        raise AssertionError(f"no answer from {node} to transition {transition}")

    def _ask(self, cls, service: str, request):
        """Send a request to a service once it is there; the future of its answer."""
        if service not in self._clients:
            self._clients[service] = self.node.create_client(cls, service)
        assert self.spin(self._clients[service].service_is_ready), f"no service {service}"
        return self._clients[service].call_async(request)
