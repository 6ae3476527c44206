"""Node ``viewer``: a 3-D page in the browser that follows the estimators.

It runs in its own process. It takes estimates as bytes and reads the newest one at the rate of the page. The only cost
for an estimator is one more best-effort subscriber.
"""

from __future__ import annotations

import time
import webbrowser

from rclpy.node import Node

from contact_estimation.exceptions import RecordingError
from contact_estimation.msg import ContactEstimate
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, parameters, qos
from contact_estimation.ros.estimate_topic import EstimateTopic
from contact_estimation.ros.executor import run
from contact_estimation.ros.node_settings import ViewerParameters
from contact_estimation.ros.serialized import decode
from contact_estimation.ros.steady_timer import steady_timer
from contact_estimation.viz.frames import estimate_frame
from contact_estimation.viz.player import live_page
from contact_estimation.viz.server import Frames, PageServer


class Viewer(Node):
    """Serves the page and feeds it."""

    def __init__(self) -> None:
        super().__init__("viewer", automatically_declare_parameters_from_overrides=True)
        settings = parameters.declare(self, ViewerParameters)
        parameters.accept_changes(self, ViewerParameters, set())
        self._arm = load_arm(settings.robot, settings.tool)
        self._frames = Frames(settings.frame_rate)
        self._newest: dict[str, tuple[bytes, float]] = {}  # and when it came [s]
        self._begin: float | None = None
        for topic in settings.estimates:
            self._follow(topic)
        title, subtitle = f"{settings.tf_prefix}{self._arm.name}, live", "contact estimates on the ROS graph"
        observers = list(map(_short, settings.estimates))
        page = live_page(self._arm, title, subtitle, observers, self._frames.period)
        self.server = PageServer(page, self._frames, settings.port)
        steady_timer(self, 1.0 / settings.frame_rate, self._show)
        self.get_logger().info(f"page: {self.server.address}")
        if settings.browser:
            webbrowser.open(self.server.address)

    def _follow(self, topic: str) -> None:
        def store(raw: bytes) -> None:
            self._newest[topic] = raw, time.monotonic()

        def leave_out(_: bytes) -> None:
            self.get_logger().error(estimates.second_estimator(), throttle_duration_sec=5.0)

        estimates = EstimateTopic(self, topic, store, qos.NEWEST, leave_out)

    def _show(self) -> None:
        """Send the estimates since the last frame to the open pages."""
        if not self._frames.watchers:
            return
        for topic, (raw, arrival) in list(self._newest.items()):
            del self._newest[topic]
            try:
                message = decode(raw, ContactEstimate, topic)
            except RecordingError as error:
                self.get_logger().error(str(error), throttle_duration_sec=5.0)
                continue
            if len(message.position) != self._arm.n:
                self.get_logger().error(
                    f"{topic} is of an arm with {len(message.position)} joints, {self._arm.name} has {self._arm.n}; "
                    "set the parameter 'robot'",
                    throttle_duration_sec=5.0,
                )
                continue
            estimate = convert.from_contact_estimate(message)
            if self._begin is None or estimate.t < self._begin:
                self._begin = estimate.t
            frame = estimate_frame(self._arm, estimate, estimate.t - self._begin)
            self._frames.put(_short(topic), {**frame, "modes": list(estimate.modes)}, arrival)

    def close(self) -> None:
        """End the page."""
        self.server.close()


def _short(topic: str) -> str:
    return topic.removesuffix("/contact_estimate")


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Viewer, args)
