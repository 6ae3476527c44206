"""Node ``driver``: one word selects the robot, simulated, real or recorded; the graph is the same for each.

It is a lifecycle node. When configured, it is connected and publishes samples. Commands (``equilibrium_pose``) pass
only while it is active. The safety filter limits them. Its deadman stops them without fresh, valid estimates
(``contact_estimate``). A stop by the deadman or by the arm makes the node inactive.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.lifecycle import State, TransitionCallbackReturn
from sensor_msgs.msg import JointState

from contact_estimation.control.safety import SafetyState, load_limits
from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.drivers.registry import make_backend
from contact_estimation.exceptions import ConfigError, ContactEstimationError, DriverError
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, parameters, qos
from contact_estimation.ros.arrival import Arrival, subscribe
from contact_estimation.ros.command_gate import CommandGate
from contact_estimation.ros.driver import ProblemLog, SamplePublisher, feed_states, start_pacer
from contact_estimation.ros.estimate_topic import EstimateTopic
from contact_estimation.ros.executor import run
from contact_estimation.ros.frames import Frames, status_name
from contact_estimation.ros.lifecycle import ManagedNode
from contact_estimation.ros.mpc_outputs import pose_stamped
from contact_estimation.ros.node_settings import RobotDriverParameters
from contact_estimation.ros.pacer import Pacer
from contact_estimation.ros.sensor_offset import SensorOffset
from contact_estimation.ros.staleness import EstimateRule
from contact_estimation.ros.steady_timer import steady_timer


class Driver(ManagedNode):
    """A robot, real, simulated or recorded.

    Args:
        name: name of the node.
        defaults: replaces defaults of its parameters.
    """

    def __init__(self, name: str = "driver", defaults: dict[str, Any] | None = None) -> None:
        super().__init__(name, automatically_declare_parameters_from_overrides=True)
        s = self._settings = parameters.declare(self, RobotDriverParameters, defaults)
        self.arm = load_arm(*s.arm_names())
        self.backend: Any = make_backend(s.driver, self.arm, s.backend_options(), shared=s.shared())
        if getattr(self.backend, "live", False):
            s.refuse_pacing()
        limits = self._limits = load_limits(s.safety, self.arm.settings.folder)
        stiffness = np.array(s.impedance_stiffness), np.array(s.impedance_rotational_stiffness)
        self.gate = CommandGate(self.arm, self.backend, limits, stiffness)
        self._frames = Frames.of(self.arm, s.tf_prefix)
        self._publisher = SamplePublisher(self, self.arm, self._frames, s.complete, s.clock)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._pacer: Pacer | None = None
        self._broken = ""  # why the thread that reads samples has ended
        self._problems = ProblemLog()
        self._active, self._made = False, False
        self._failure = ContactEstimationError("the driver cannot be configured: the log above names the defect")
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
        self._commanded = self.create_lifecycle_publisher(PoseStamped, "~/equilibrium_pose", qos.COMMANDS)
        self._impedance = self.create_lifecycle_publisher(WrenchStamped, "~/impedance", qos.LATCHED)
        self._poses = subscribe(self, PoseStamped, "equilibrium_pose", self._on_pose, qos.NEWEST)
        self._rule = EstimateRule(self.arm, s.tf_prefix, limits.hold_after)
        self._observer = ""
        self._offset = SensorOffset(self.backend) if hasattr(self.backend, "force_offset") else None
        self._estimates = EstimateTopic(self, s.estimate_topic, self._on_estimate, qos.SENSOR)
        steady_timer(self, 0.01, self._watch)
        steady_timer(self, 1.0, self._report)
        if hasattr(self.backend, "feed"):
            self._refuse_own_states()
            self.create_subscription(JointState, s.joint_states_in, self._on_states, qos.SAMPLES)
        if s.control and hasattr(self.backend, "attach"):
            self.backend.attach(self._send)
        parameters.accept_changes(self, RobotDriverParameters, set())
        if s.configure_at_start and self.trigger_configure() is not TransitionCallbackReturn.SUCCESS:
            raise self._failure
        self._made = True

    def _refuse_own_states(self) -> None:
        """Refuse to take what this node publishes for the arm's own samples."""
        own, given = self.resolve_topic_name("joint_states"), self.resolve_topic_name(self._settings.joint_states_in)
        if own == given:
            raise ConfigError(
                f"joint_states_in is '{given}', where this node publishes its samples; give the node a namespace, or "
                "name another topic of the arm's driver"
            )

    # -- lifecycle -------------------------------------------------------------------------------------------

    def on_configure(self, state: State) -> TransitionCallbackReturn:
        """Connect to the robot; its samples are published from now on."""
        self._stop.clear()
        self._broken = ""
        if self._offset is not None:
            self._offset.reset()
        try:
            if getattr(self.backend, "live", False):
                self.backend.connect()
                self._thread = threading.Thread(target=self._read_samples, name="driver", daemon=True)
                self._thread.start()
            else:
                self._pacer = start_pacer(self, self.backend, self._deliver, self._settings, self._publisher.drain)
        except ContactEstimationError as error:
            self._failure = error
            if self._made:  # else it ends the node, which prints it
                self.get_logger().error(f"cannot configure: {error}")
            return TransitionCallbackReturn.FAILURE
        return super().on_configure(state)

    def on_activate(self, state: State) -> TransitionCallbackReturn:
        """Let commands pass, if the arm and its driver allow it."""
        try:
            self.gate.activate()
        except DriverError as error:
            self.get_logger().error(f"cannot activate: {error}")
            return TransitionCallbackReturn.FAILURE
        done = super().on_activate(state)
        self._active = True
        self._rule.choose(self._observer)
        head = convert.header(self.get_clock().now().nanoseconds, self._frames.base)
        stiffness = self._settings.impedance_stiffness, self._settings.impedance_rotational_stiffness
        self._impedance.publish(convert.wrench_stamped(head, *stiffness))
        return done

    def on_deactivate(self, state: State) -> TransitionCallbackReturn:
        """Leave the equilibrium where the arm is, and block commands; after a stop the gate keeps its reason."""
        self._active = False
        self._rule.choose("")
        if self.gate.state is not SafetyState.STOP:
            self.gate.release("deactivated")
        if self.gate.state is not SafetyState.STOP:
            self.gate.deactivate()
        return super().on_deactivate(state)

    def on_cleanup(self, state: State) -> TransitionCallbackReturn:
        """Disconnect."""
        self.close()
        return super().on_cleanup(state)

    def on_shutdown(self, state: State) -> TransitionCallbackReturn:
        """Disconnect."""
        self.close()
        return super().on_shutdown(state)

    def on_error(self, state: State) -> TransitionCallbackReturn:
        """Stop and disconnect after a defect in a transition."""
        self.close()
        return super().on_error(state)

    def _watch(self) -> None:
        """Stop commands without current estimates, and end a broken connection.

        A stop is latched and shows as the inactive state.
        """
        if self._thread is not None:
            if told := self._problems.warning(getattr(self.backend, "problem", "")):
                self.get_logger().warning(told)
            if told := self._problems.ended():
                self.get_logger().info(told)
        if self.gate.watch():
            self.get_logger().warning(self.gate.reason)
        if self._broken and self._thread is not None:
            self.get_logger().error(self._broken)
            self.gate.stop(self._broken)
            if self._active:
                self.trigger_deactivate()
            self.trigger_cleanup()
        if self._active and self.gate.state is SafetyState.STOP:
            self.get_logger().error(f"deactivated: {self.gate.reason}")
            self.trigger_deactivate()

    # -- samples ---------------------------------------------------------------------------------------------

    def _deliver(self, sample: Sample, stamp_ns: int) -> None:
        """Show a sample of the time ``stamp_ns`` [ns] to everything that follows the arm, and publish it."""
        self.gate.sample(sample, stamp_ns)
        if self._offset is not None:
            self._offset.sample(sample, stamp_ns)
        self._publisher.publish(sample, stamp_ns)

    def _read_samples(self) -> None:
        """Deliver the samples of a live backend until it ends; runs in a thread of its own."""
        while not self._stop.is_set():
            try:
                sample = self.backend.read()
                if sample is None:
                    if not self._stop.is_set():
                        self._broken = "the samples of the arm have ended; configure again"
                    return
                self._deliver(sample, sample.stamp_ns)
            except ContactEstimationError as error:
                self.get_logger().warning(str(error), throttle_duration_sec=2.0)
                self._stop.wait(0.1)
            except Exception as error:  # a defect ends the connection, not the process
                if not self._stop.is_set():
                    self._broken = f"reading the arm failed: {type(error).__name__}: {error}; configure again"
                return

    def _on_states(self, message: JointState) -> None:
        feed_states(self.backend, message, self._settings.tf_prefix, self.get_clock().now().nanoseconds)

    def _on_estimate(self, raw: bytes) -> None:
        judgement, observer = self._rule.judge_serialized(raw, self.gate.now_ns)
        self.gate.estimate(*judgement)
        if not judgement.problem:
            self._observer = observer
            if self._offset is not None:
                self._offset.estimate(raw)

    # -- commands and health ---------------------------------------------------------------------------------

    def _on_pose(self, message: PoseStamped, arrival: Arrival) -> None:
        if message.header.frame_id != self._frames.base:
            self.get_logger().warning(
                f"equilibrium_pose has frame_id '{message.header.frame_id}', expected '{self._frames.base}'; refused",
                throttle_duration_sec=2.0,
            )
            return
        p, o = message.pose.position, message.pose.orientation
        stamp = convert.stamp_ns(message.header.stamp)
        self.gate.set_target((p.x, p.y, p.z), (o.x, o.y, o.z, o.w), stamp, arrival)

    def _send(self, pose: EquilibriumPose) -> None:
        """Publish a limited equilibrium for the arm's own impedance controller."""
        head = convert.header(self.get_clock().now().nanoseconds, self._frames.base)
        self._commanded.publish(pose_stamped(head, pose))

    def _problem(self) -> tuple[bytes, str]:
        """Return what is wrong since the last report with the arm, else with who commands it, and how bad it is."""
        planners = self.gate.planner.others()
        estimators = self._estimates.second_estimator()
        if self._broken:
            return DiagnosticStatus.ERROR, self._broken
        problem, silence = str(getattr(self.backend, "problem", "")), self.gate.silence
        if self._thread is not None and silence > self._limits.stop_after:
            since = f"for {silence:.1f} s" if silence < math.inf else "yet"
            return DiagnosticStatus.ERROR, problem or f"the arm has sent no sample {since}"
        if problem:
            return DiagnosticStatus.WARN, problem
        if planners:
            why = "the arm follows one planner, and another one when that has fallen silent"
            if self.gate.planner.mixed:
                why = "two planners send the same message numbers, and none is followed until one falls silent"
            return DiagnosticStatus.ERROR, (
                f"{planners} commands of a second planner on {self._poses.topic_name} refused: {why}; end one"
            )
        if estimators:
            return DiagnosticStatus.ERROR, estimators
        if self.gate.state is SafetyState.HOLD:
            return DiagnosticStatus.WARN, self.gate.reason
        if limited := self.gate.limited:
            return DiagnosticStatus.WARN, limited
        return DiagnosticStatus.OK, ""

    def _report(self) -> None:
        level, problem = self._problem()
        counters = self.gate.counters + Counter(getattr(self.backend, "counters", {}))
        if self._pacer is not None and self._pacer.paused:
            counters["paused: too slow"] = self._pacer.paused
        values = {
            "driver": self._settings.driver,
            "problem": problem,
            "commands": self.gate.state.value,
            "commands say": self.gate.reason,
            **{name: str(count) for name, count in sorted(counters.items())},
        }
        status = DiagnosticStatus(
            level=level,
            name=status_name(self, "samples"),
            message=problem or "samples flow",
            hardware_id=self._settings.tf_prefix + self.arm.name,
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        self._diagnostics.publish(
            DiagnosticArray(header=convert.header(self.get_clock().now().nanoseconds, ""), status=[status])
        )

    def close(self) -> None:
        """Stop: commands first, then samples."""
        self._active = False
        self.gate.release("the driver ends")
        self.gate.deactivate()
        self._stop.set()
        try:
            if self._pacer is not None:
                self._pacer.stop()
            self.backend.close()
        finally:
            if self._thread is not None:
                self._thread.join(timeout=3.0)
            self._pacer = self._thread = None


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Driver, args)
