"""Node ``driver``: one word selects the robot (``driver:=sim|rtde|joint_torque|replay|franka``); the graph cannot tell
the difference.

A lifecycle node. Samples are published from the start; commands (``equilibrium_pose``) pass only while it is active,
limited by the safety filter and watched by its deadman, which the estimator's ``contact_estimate`` keeps happy.
"""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from sensor_msgs.msg import JointState

from contact_estimation.control.safety import SafetySettings
from contact_estimation.drivers.registry import make_backend
from contact_estimation.exceptions import ContactEstimationError, DriverError
from contact_estimation.msg import ContactEstimate
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, parameters, qos
from contact_estimation.ros.command_gate import CommandGate
from contact_estimation.ros.driver import SamplePublisher, start_pacer
from contact_estimation.ros.executor import run
from contact_estimation.ros.node_settings import RobotDriverParameters
from contact_estimation.settings import find_config, from_yaml

#: Drivers whose samples come when they come, not when this node wants them.
LIVE = ("rtde", "joint_torque", "franka")


class Driver(LifecycleNode):
    """A robot, real, simulated or recorded."""

    def __init__(self):
        super().__init__("driver", automatically_declare_parameters_from_overrides=True)
        s = self._settings = parameters.declare(self, RobotDriverParameters)
        self.arm = load_arm(s.robot)
        self.backend = make_backend(
            s.driver,
            self.arm,
            recording=s.recording,
            loop=s.loop,
            duration=s.duration,
            seed=s.seed,
            scenario=s.scenario,
            imperfections=s.imperfections,
            host=s.host,
            options=s.backend_options(),
        )
        limits = from_yaml(SafetySettings, find_config("limits", s.safety)) if s.safety else SafetySettings()
        self.gate = CommandGate(self.arm, self.backend, limits, np.array(s.impedance_stiffness))
        self._publisher = SamplePublisher(self, self.arm)
        self._stop, self._thread, self._pacer = threading.Event(), None, None
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", qos.PEOPLE)
        self.create_subscription(PoseStamped, "equilibrium_pose", self._on_pose, qos.SENSOR)
        self.create_subscription(ContactEstimate, s.estimate_topic, lambda m: self.gate.estimate(m.valid), qos.SENSOR)
        self.create_timer(0.01, self.gate.watch)
        self.create_timer(1.0, self._report)
        if s.driver in LIVE:
            self.backend.connect()
            if s.driver == "joint_torque":
                self.create_subscription(JointState, s.joint_states_in, self._on_states, qos.SAMPLES)
            self._thread = threading.Thread(target=self._forward, name="driver", daemon=True)
            self._thread.start()
        else:
            self._pacer = start_pacer(self, self.backend, self._deliver, s.wait_for_subscribers, s.rate, s.keep_stamps)

    # -- lifecycle -------------------------------------------------------------------------------------------

    def on_activate(self, state) -> TransitionCallbackReturn:
        """Let commands pass, if the arm and its driver allow it."""
        try:
            self.gate.activate()
        except DriverError as error:
            self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        return super().on_activate(state)

    def on_deactivate(self, state) -> TransitionCallbackReturn:
        """Let nothing pass."""
        self.gate.deactivate()
        return super().on_deactivate(state)

    # -- samples ---------------------------------------------------------------------------------------------

    def _deliver(self, sample, stamp_ns: int) -> None:
        self.gate.sample(sample)
        self._publisher.publish(sample, stamp_ns)

    def _forward(self) -> None:
        while not self._stop.is_set():
            try:
                sample = self.backend.read()
            except ContactEstimationError as error:
                self.get_logger().warning(str(error), throttle_duration_sec=2.0)
                self._stop.wait(0.1)
                continue
            if sample is None:
                return
            self._deliver(sample, sample.stamp_ns)

    def _on_states(self, message: JointState) -> None:
        stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        self.backend.feed(stamp, message.name, message.position, message.velocity, message.effort)

    # -- commands and health ---------------------------------------------------------------------------------

    def _on_pose(self, message: PoseStamped) -> None:
        if message.header.frame_id != self.arm.base_frame:
            self.get_logger().warning(
                f"equilibrium_pose has frame_id '{message.header.frame_id}', expected '{self.arm.base_frame}'; refused",
                throttle_duration_sec=2.0,
            )
            return
        p, o = message.pose.position, message.pose.orientation
        self.gate.want((p.x, p.y, p.z), (o.x, o.y, o.z, o.w))

    def _report(self) -> None:
        problem = getattr(self.backend, "problem", "")
        counters = getattr(self.backend, "counters", Counter()) + self.gate.counters
        values = {
            "driver": self._settings.driver,
            "problem": problem,
            "commands": self.gate.state.value,
            "commands say": self.gate.reason,
            **{name: str(count) for name, count in sorted(counters.items())},
        }
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN if problem else DiagnosticStatus.OK,
            name=f"{self.get_name()}: samples",
            message=problem or "samples flow",
            hardware_id=self.arm.name,
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        self._diagnostics.publish(
            DiagnosticArray(header=convert.header(self.get_clock().now().nanoseconds, ""), status=[status])
        )

    def close(self) -> None:
        """Stop: commands first, then samples."""
        self.gate.deactivate()
        self._stop.set()
        if self._pacer is not None:
            self._pacer.stop()
        self.backend.close()
        if self._thread is not None:
            self._thread.join(timeout=3.0)


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Driver, args)


if __name__ == "__main__":
    raise SystemExit(main())
