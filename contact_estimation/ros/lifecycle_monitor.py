"""Whether another lifecycle node is active: its transitions tell at once, and it is asked, too.

A transition reaches no subscriber that comes later, and a node that has died makes none. Until the node has answered,
and where it no longer does, it counts as not active.
"""

from __future__ import annotations

from typing import Any

from lifecycle_msgs.msg import TransitionEvent
from lifecycle_msgs.srv import GetState
from rclpy.node import Node

from contact_estimation.ros import qos
from contact_estimation.ros.steady_timer import steady_timer

#: [s] Time between two questions.
_PERIOD = 0.5
#: Periods without an answer after which the node counts as not active, and is asked anew.
_PATIENCE = 4


class LifecycleMonitor:
    """Watches one lifecycle node; nothing waits for its answers.

    Args:
        node: that listens and asks.
        name: of the watched node.

    Attributes:
        active: whether the watched node is known to be active.
    """

    def __init__(self, node: Node, name: str) -> None:
        self.active = False
        self._asked: Any = None  # the Future of an answer
        self._waited = 0  # periods
        self._client = node.create_client(GetState, f"{name}/get_state")
        node.create_subscription(TransitionEvent, f"{name}/transition_event", self._on_transition, qos.VISUALIZATION)
        steady_timer(node, _PERIOD, self.ask)

    def ask(self) -> None:
        """Ask the node for its state, unless an answer is still awaited."""
        if self._asked is not None:
            self._waited += 1
            if self._waited < _PATIENCE:
                return
            self._forget_question()
            self.active = False
        if not self._client.service_is_ready():
            self.active = False
            return
        self._waited = 0
        self._asked = self._client.call_async(GetState.Request())
        self._asked.add_done_callback(self._on_answer)

    def _on_answer(self, answer: Any) -> None:
        if answer is self._asked:
            self._asked = None
            response = answer.result()
            self.active = response is not None and response.current_state.label == "active"

    def _on_transition(self, event: TransitionEvent) -> None:
        self._forget_question()  # its answer may be older
        self.active = event.goal_state.label == "active"

    def _forget_question(self) -> None:
        if self._asked is not None:
            self._client.remove_pending_request(self._asked)
            self._asked = None
