"""Node ``estimator``: joint states in, contact estimates out, with any observer of ``config/observers``."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from contact_estimation.exceptions import ContactEstimationError
from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.registry import open_stream
from contact_estimation.ros import convert, parameters, qos
from contact_estimation.ros.diagnostics import StreamHealth
from contact_estimation.ros.executor import run
from contact_estimation.ros.frames import Frames, status_name
from contact_estimation.ros.node_settings import EstimatorParameters
from contact_estimation.ros.outputs import EstimateOutputs

#: [s] A change of validity is reported at once, but a stream that flickers shall not flood /diagnostics.
_MIN_REPORT_INTERVAL = 0.05


class Estimator(Node):
    """Wires a sample stream to topics: the library computes, and everything bad becomes an invalid estimate."""

    def __init__(
        self,
        name: str = "estimator",
        defaults: dict[str, Any] | None = None,
        cls: type[EstimatorParameters] = EstimatorParameters,
        subscribe: bool = True,
    ) -> None:
        """``defaults`` replaces defaults of ``cls``, the class of the node's parameters."""
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
        # Samples may come from a driver's thread (combined), services from the executor's.
        self._lock = threading.Lock()
        self._reader = convert.JointStateReader(arm.joint_names, "joint_states", settings.tf_prefix)
        if subscribe:
            profile = qos.COMPLETE if settings.complete else qos.SAMPLES
            self.create_subscription(JointState, "joint_states", self.on_joint_states, profile)
        if self.stream.needs_wrench:
            profile = qos.COMPLETE if settings.complete else qos.SENSOR
            self.create_subscription(WrenchStamped, "wrench", self.on_wrench, profile)
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(Trigger, "~/zero", self._on_zero)
        self.create_timer(1.0 / settings.diagnostics_rate, self._report_period)
        live = {"max_age", "visualization_rate", "arrow_scale", "arrow_hide_below"}
        parameters.accept_changes(self, cls, live, self._apply)
        self.get_logger().info(f"{observer.name} on {arm.name}, backend {observer.backend}")

    def on_joint_states(self, message: JointState) -> None:
        """Take one message; whatever is wrong with it, the node lives on and says so."""
        stamp_ns = convert.stamp_ns(message.header.stamp)
        if not self._reader.concerns(message) and self.stream.counters["used"]:
            return  # somebody else's joints beside a stream that works
        try:
            if stamp_ns == 0:
                raise ContactEstimationError("header.stamp is zero; have the driver set it to the sample's time")
            if late := self._lateness(stamp_ns):
                self.refuse(stamp_ns, "too_old", late)
                return
            sample = self._reader.read(message)
        except ContactEstimationError as error:
            self.refuse(stamp_ns, "bad_message", str(error))
        else:
            self.take(stamp_ns, *sample)

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
        when = f"{age:.3f} s old" if age > 0 else f"{-age:.3f} s in the future"
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
                estimate = self.stream.push(stamp_ns, q, dq, tau)
            self._publish(estimate, stamp_ns, start)
        except Exception as error:  # a defect shall cost one estimate, not the node
            self.get_logger().error(f"sample {stamp_ns}: {type(error).__name__}: {error}", throttle_duration_sec=5.0)
            self.refuse(stamp_ns, "exception", f"internal error: {type(error).__name__}: {error}")

    def refuse(self, stamp_ns: int, counter: str, reason: str) -> None:
        """Publish an invalid estimate for input that could not become a sample."""
        start = time.perf_counter()
        self._refused[counter] += 1
        self._publish(replace(self.stream.estimate(stamp_ns), valid=False, reason=reason), stamp_ns, start)

    def _publish(self, estimate: Estimate, stamp_ns: int, start: float) -> None:
        self._outputs.publish(estimate, stamp_ns)
        age = None if self.settings.complete else self.get_clock().now().nanoseconds - stamp_ns
        if self._health.add(estimate.valid, estimate.reason, time.perf_counter() - start, age):
            if self._health.seconds > _MIN_REPORT_INTERVAL:
                self._report()
            if not estimate.valid:
                self.get_logger().warning(f"estimate not valid: {estimate.reason}", throttle_duration_sec=5.0)

    def _report_period(self) -> None:
        self._outputs.repeat_state()
        self._report()

    def _report(self) -> None:
        facts = {"zero": self.stream.zero.status, "backend": self.stream.observer.backend}
        with self._lock:
            facts |= getattr(self.stream.observer, "facts", dict)()
        now = self.get_clock().now().nanoseconds
        self._diagnostics.publish(self._health.report(now, self.stream.counters + self._refused, facts))

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self._lock:
            self.stream.restart()
            self.stream.zero.clear()
        response.success, response.message = True, "the observer starts anew with the next sample; the zero is cleared"
        return response

    def _on_zero(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self._lock:
            self.stream.zero.start()
        response.success = True
        response.message = (
            "measuring over the next half second: keep the arm still and free; diagnostics tell the result"
        )
        return response

    def _apply(self, settings: EstimatorParameters) -> None:
        self._outputs.parameters = settings


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Estimator, args)
