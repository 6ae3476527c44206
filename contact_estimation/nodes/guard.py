"""Node ``guard``: a process beside the driver of a joint-torque arm, which ends a press whose driver was killed."""

from __future__ import annotations

import time

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState

from contact_estimation.control.safety import load_limits
from contact_estimation.drivers.backend import EquilibriumPose
from contact_estimation.drivers.joint_torque import JointTorqueBackend, JointTorqueSettings
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, parameters, qos
from contact_estimation.ros.driver import feed_states
from contact_estimation.ros.equilibrium_guard import EquilibriumGuard
from contact_estimation.ros.executor import run
from contact_estimation.ros.frames import Frames, status_name
from contact_estimation.ros.mpc_outputs import pose_stamped
from contact_estimation.ros.node_settings import GuardParameters
from contact_estimation.ros.steady_timer import steady_timer

#: [s] Period of the watch.
_TICK = 0.05
#: A quaternion whose norm differs from one by more is no attitude.
_UNIT = 1e-3


class Guard(Node):
    """Watches the equilibria that the driver publishes, and the arm's joint states.

    A launch stops every node once its driver is dead: this one ends when the last equilibrium leaves no spring behind.
    """

    def __init__(self) -> None:
        super().__init__("guard", automatically_declare_parameters_from_overrides=True)
        s = self._settings = parameters.declare(self, GuardParameters)
        parameters.accept_changes(self, GuardParameters, set())
        arm = load_arm(s.robot, s.tool)
        meaning = JointTorqueSettings(torque_meaning="total", max_sample_age=s.max_sample_age)  # the effort is not used
        self._backend = JointTorqueBackend(arm, meaning)
        self._backend.connect()
        limits = load_limits(s.safety, arm.settings.folder)
        self._guard = EquilibriumGuard(arm, limits, s.max_sample_age, self._send)
        self._frames = Frames.of(arm, s.tf_prefix)
        self._poses = self.create_publisher(PoseStamped, "driver/equilibrium_pose", qos.COMMANDS)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
        self.create_subscription(PoseStamped, "driver/equilibrium_pose", self._on_pose, qos.COMMANDS)
        self.create_subscription(JointState, s.joint_states_in, self._on_states, qos.SENSOR)
        steady_timer(self, _TICK, self._watch)
        steady_timer(self, 1.0, self._report)

    def _on_states(self, message: JointState) -> None:
        before = self._backend.counters["samples"]
        feed_states(self._backend, message, self._settings.tf_prefix, self.get_clock().now().nanoseconds)
        if self._backend.counters["samples"] > before and (sample := self._backend.read()) is not None:
            self._guard.sample(sample)

    def _on_pose(self, message: PoseStamped) -> None:
        p, o = message.pose.position, message.pose.orientation
        attitude = pin.Quaternion(o.w, o.x, o.y, o.z)
        if np.isfinite([p.x, p.y, p.z]).all() and abs(attitude.norm() - 1.0) < _UNIT:  # else no driver of this package
            self._guard.equilibrium(EquilibriumPose(np.array([p.x, p.y, p.z]), attitude.toRotationMatrix()))

    def _send(self, pose: EquilibriumPose) -> None:
        head = convert.header(self.get_clock().now().nanoseconds, self._frames.base)
        self._poses.publish(pose_stamped(head, pose))

    def _watch(self) -> None:
        if told := self._guard.watch():
            self.get_logger().error(told, throttle_duration_sec=2.0)
            self._tell(DiagnosticStatus.ERROR, told)

    def _report(self) -> None:
        watched = "away from the arm: its driver is watched" if self._guard.watches else "where the arm is, or unknown"
        self._tell(DiagnosticStatus.OK, f"the equilibrium is {watched}")

    def _tell(self, level: bytes, text: str) -> None:
        head = convert.header(self.get_clock().now().nanoseconds, "")
        status = DiagnosticStatus(level=level, name=status_name(self, "equilibrium"), message=text)
        self._diagnostics.publish(DiagnosticArray(header=head, status=[status]))

    def close(self) -> None:
        """Wait until no equilibrium stretches the springs, or the driver has been silent for long enough."""
        executor, end = SingleThreadedExecutor(), time.monotonic() + 2.0 * self._guard.silence
        executor.add_node(self)
        while self._guard.watches and time.monotonic() < end:
            executor.spin_once(timeout_sec=_TICK)
        executor.shutdown()
        self._backend.close()


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Guard, args)
