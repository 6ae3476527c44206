"""Estimates on a topic, of one estimator: another one on the same topic is left out and told."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.node import Node
from rclpy.qos import QoSProfile

from contact_estimation.msg import ContactEstimate
from contact_estimation.ros.arrival import Arrival, OnePublisher, subscribe

#: [s] So long an estimator must be silent before another one on its topic is followed: it was started again.
SILENCE = 0.5


class EstimateTopic:
    """Subscription to the serialised estimates of one estimator.

    Args:
        node: that spins the subscription.
        topic: name of the topic.
        take: called with each estimate of the estimator that is followed.
        profile: quality of service.
        leave_out: called with each estimate of another one.

    Attributes:
        name: of the topic, resolved.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        take: Callable[[bytes], None],
        profile: QoSProfile,
        leave_out: Callable[[bytes], None] | None = None,
    ) -> None:
        self._estimator = OnePublisher(SILENCE)
        self._take, self._leave_out = take, leave_out
        self.name = subscribe(node, ContactEstimate, topic, self._on_estimate, profile, raw=True).topic_name

    def _on_estimate(self, raw: bytes, arrival: Arrival) -> None:
        if self._estimator.follows(arrival.number, time.monotonic()):
            self._take(raw)
        elif self._leave_out is not None:
            self._leave_out(raw)

    def second_estimator(self) -> str:
        """Return what to say of estimates that were left out since the last call, or an empty string."""
        others = self._estimator.others()
        if not others:
            return ""
        what = "of two estimators that cannot be told apart" if self._estimator.mixed else "of a second estimator"
        return (
            f"{others} estimates {what} on {self.name} are left out: one estimator per topic; end one, "
            "or give it another name or namespace"
        )
