"""Node ``estimator``: joint states in, contact estimates out, with any observer of ``config/observers``."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from contact_estimation.exceptions import ContactEstimationError
from contact_estimation.filters.estimate_row import EstimateRow
from contact_estimation.filters.registry import open_stream
from contact_estimation.ros import arrival as arrivals, convert, parameters, qos
from contact_estimation.ros.arrival import JUST_NOW, Arrival, LostMessages
from contact_estimation.ros.diagnostics import StreamHealth
from contact_estimation.ros.drawing import DrawingThread
from contact_estimation.ros.executor import run
from contact_estimation.ros.frames import Frames, status_name
from contact_estimation.ros.node_settings import EstimatorParameters
from contact_estimation.ros.outputs import EstimateOutputs
from contact_estimation.ros.serialized import JointStateReader, OtherJoints, stamp_ns
from contact_estimation.ros.steady_timer import steady_timer

#: [s] A change of validity is reported at once, but a stream that flickers shall not flood /diagnostics.
_MIN_REPORT_INTERVAL = 0.05


class _Published(NamedTuple):
    """What was published last: stamp of the sample [ns], validity and reason of the estimate."""

    stamp_ns: int
    valid: bool
    reason: str


class Estimator(Node):
    """Wires a sample stream to topics: the library computes, and everything bad becomes an invalid estimate.

    Args:
        name: name of the node.
        defaults: replaces defaults of its parameters.
        cls: class of its parameters.
        subscribe: take samples from ``joint_states``; without it somebody calls :meth:`take`.
    """

    def __init__(
        self,
        name: str = "estimator",
        defaults: dict[str, Any] | None = None,
        cls: type[EstimatorParameters] = EstimatorParameters,
        subscribe: bool = True,
    ) -> None:
        super().__init__(name, automatically_declare_parameters_from_overrides=True)
        self.settings = settings = parameters.declare(self, cls, defaults)
        self.stream = open_stream(settings.robot, settings.observer, settings.sensors or None, settings.tool)
        self.stream.warm_up()
        arm, observer = self.stream.arm, self.stream.observer
        self._tcp_frame = Frames.of(arm, settings.tf_prefix).tcp
        self._outputs = EstimateOutputs(self, arm, observer.name, settings)
        self._health = StreamHealth(status_name(self, observer.name), settings.tf_prefix + arm.name)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
        self._refused: Counter[str] = Counter()
        self._mismatch, self._lost = "", LostMessages()
        # Samples may come from a driver's thread (combined), services from the executor's.
        self._lock = threading.Lock()
        self._reader = JointStateReader(arm.joint_names, "joint_states", settings.tf_prefix)
        if subscribe:
            profile = qos.COMPLETE if settings.complete else qos.SAMPLES
            arrivals.subscribe(self, JointState, "joint_states", self.on_joint_states, profile, raw=True)
        if self.stream.needs_wrench:
            profile = qos.COMPLETE if settings.complete else qos.SENSOR
            self.create_subscription(WrenchStamped, "wrench", self.on_wrench, profile)
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(Trigger, "~/zero", self._on_zero)
        steady_timer(self, 1.0 / settings.diagnostics_rate, self._report_period)
        self._last: _Published | None = None
        self._painter = DrawingThread(self._draw, settings.visualization_rate, self._not_drawn)
        live = {"max_age", "zero_in_contact", "visualization_rate", "arrow_scale", "arrow_hide_below"}
        parameters.accept_changes(self, cls, live, self._apply)
        self.get_logger().info(f"{observer.name} on {arm.name}, backend {observer.backend}")

    def on_joint_states(self, raw: bytes, arrival: Arrival = JUST_NOW) -> None:
        """Take one serialised JointState; a bad one is refused with its reason and does not end the node."""
        stamp = stamp_ns(raw)
        try:
            sample = self._reader.read(raw)
            if stamp == 0:
                raise ContactEstimationError("header.stamp is zero; have the driver set it to the sample's time")
        except ContactEstimationError as error:
            if not isinstance(error, OtherJoints) or not self.stream.counters["used"]:
                self.refuse(stamp, "bad_message", str(error))
            self._lost.skip(arrival.number)
            return  # joints of another arm on the same topic are refused only until the first sample was used
        if lost := self._lost.before(arrival.number):
            self._refused["lost"] += lost
        if late := self._lateness(stamp):
            self.refuse(stamp, "too_old", late)
        else:
            self.take(stamp, *sample)

    def on_wrench(self, message: WrenchStamped) -> None:
        """Take a measured wrench, in TCP axes; one in another frame is refused."""
        if message.header.frame_id != self._tcp_frame:
            self._refused["wrench_frame"] += 1
            self.get_logger().error(
                f"wrench has frame_id '{message.header.frame_id}', expected '{self._tcp_frame}'; refused. Transform it",
                throttle_duration_sec=5.0,
            )
            return
        with self._lock:
            self.stream.push_wrench([*convert.xyz(message.wrench.force), *convert.xyz(message.wrench.torque)])

    def _lateness(self, stamp_ns: int) -> str:
        """Say why a sample of the time ``stamp_ns`` [ns] is none of the present, or return an empty string."""
        limit = 0.0 if self.settings.complete else self._outputs.parameters.max_age
        age = 1e-9 * (self.get_clock().now().nanoseconds - stamp_ns)
        if not limit or abs(age) <= limit:
            return ""
        # Whole tenths: a node that is behind sends the same words again, which costs less than a good sample.
        when = f"{age:.1f} s old" if age > 0 else f"{-age:.1f} s in the future"
        return (
            f"a sample is {when}, allowed is max_age {limit:g} s: the driver or this node is too slow, or their clocks "
            "differ; for recorded stamps set max_age to 0"
        )

    def take(self, stamp_ns: int, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Process one sample and publish its estimate.

        Args:
            stamp_ns: when it was taken [ns].
            q: joint positions (n,) [rad].
            dq: joint velocities (n,) [rad/s].
            tau: effort (n,) as the sensor settings say.
        """
        start = time.perf_counter()
        try:
            with self._lock:
                self.stream.push_fast(stamp_ns, q, dq, tau)
                self._publish(self.stream.row(), stamp_ns, start)
        except Exception as error:  # a defect shall cost one estimate, not the node
            self.get_logger().error(f"sample {stamp_ns}: {type(error).__name__}: {error}", throttle_duration_sec=5.0)
            self.refuse(stamp_ns, "exception", f"internal error: {type(error).__name__}: {error}")

    def refuse(self, stamp_ns: int, counter: str, reason: str) -> None:
        """Publish an invalid estimate for input that could not become a sample."""
        start = time.perf_counter()
        self._refused[counter] += 1
        with self._lock:
            row = self.stream.row()
            row.valid, row.reason = False, reason
            self._publish(row, stamp_ns, start)

    def _publish(self, row: EstimateRow, stamp_ns: int, start: float) -> None:
        """Publish what is known after a sample; the caller holds the lock."""
        self._outputs.publish(row, stamp_ns, self.stream.estimate)
        self._last = _Published(stamp_ns, row.valid, row.reason)
        age = None if self.settings.complete else self.get_clock().now().nanoseconds - stamp_ns
        if self._health.add(row.valid, row.reason, time.perf_counter() - start, age):
            if self._health.seconds > _MIN_REPORT_INTERVAL:
                self._report()
            if not row.valid:
                self.get_logger().warning(f"estimate not valid: {row.reason}", throttle_duration_sec=5.0)
        if row.mismatch != self._mismatch:
            self._mismatch = row.mismatch
            if row.mismatch and row.valid:
                self.get_logger().warning(f"model and data disagree: {row.mismatch}", throttle_duration_sec=30.0)

    def _draw(self) -> None:
        """Show the last estimate, once."""
        with self._lock:
            last, self._last = self._last, None
            if last is None or not self._outputs.seen:
                return
            estimate = self.stream.estimate(last.stamp_ns)
            estimate = estimate.marked(estimate.t, last.valid, last.reason, estimate.mismatch)
        self._outputs.draw(estimate, last.stamp_ns)

    def _not_drawn(self, error: Exception) -> None:
        self.get_logger().error(f"drawing: {type(error).__name__}: {error}", throttle_duration_sec=5.0)

    def _report_period(self) -> None:
        with self._lock:
            self._outputs.repeat_state()
            self._report()

    def _report(self) -> None:
        facts = {"zero": self.stream.zero.status, "backend": self.stream.observer.backend}
        facts |= getattr(self.stream.observer, "facts", dict)() | {"mismatch": self._mismatch or "none"}
        now = self.get_clock().now().nanoseconds
        self._diagnostics.publish(self._health.report(now, self.stream.counters + self._refused, facts))

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self._lock:
            self.stream.restart(settle=True)
            self.stream.zero.clear()
        response.success = True
        response.message = "the observer restarts with the next sample and then settles; the zero is cleared"
        return response

    def _on_zero(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self._lock:
            response.success = self.stream.start_zero(self._outputs.parameters.zero_in_contact)
            response.message = (
                "measuring over the next half second: keep the arm still and free; diagnostics tell the result"
                if response.success
                else f"{self.stream.zero.status} If nothing touches it, set the parameter zero_in_contact for this once"
            )
        return response

    def _apply(self, settings: EstimatorParameters) -> None:
        self._outputs.parameters = settings
        self._painter.set_rate(settings.visualization_rate)

    def destroy_node(self) -> None:
        """Stop drawing first: its publishers go with the node."""
        self._painter.close()
        super().destroy_node()


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Estimator, args)
