"""Node ``mpc`` (lifecycle): the latest contact estimate in, an equilibrium pose out at the task's rate.

Configured, it has compiled and is warm; active, it plans. The equilibrium is published while active, whatever
happens: in a fallback it is the held or the relaxed one. A hand-over to hold lasts until the node is deactivated and
activated again.
"""

from __future__ import annotations

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from visualization_msgs.msg import MarkerArray

from contact_estimation.control.mpc.controller import MpcController, MpcState, Observation
from contact_estimation.control.mpc.settings import load_mpc_settings
from contact_estimation.exceptions import ContactEstimationError
from contact_estimation.msg import ContactEstimate, MpcPrediction
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, mpc_outputs, parameters, qos
from contact_estimation.ros.executor import run
from contact_estimation.ros.markers import marker_array
from contact_estimation.ros.node_settings import MpcParameters
from contact_estimation.viz.prediction import prediction_shapes


class Mpc(LifecycleNode):
    """Wires the controller to topics; everything it decides is in the library."""

    def __init__(self):
        super().__init__("mpc", automatically_declare_parameters_from_overrides=True)
        self.settings = parameters.declare(self, MpcParameters)
        self._controller: MpcController | None = None
        self._latest: ContactEstimate | None = None
        self._timer = None
        self._drawn_ns = 0
        self._health = mpc_outputs.MpcHealth(self.get_name(), self.settings.robot)
        self._pose = self.create_publisher(PoseStamped, "~/equilibrium_pose", qos.SENSOR)
        self._prediction = self.create_publisher(MpcPrediction, "~/prediction", qos.PEOPLE)
        self._markers = self.create_publisher(MarkerArray, "~/markers", qos.PEOPLE)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", qos.PEOPLE)
        self.create_subscription(ContactEstimate, self.settings.estimates, self._on_estimate, qos.SENSOR)
        self.create_timer(1.0 / self.settings.diagnostics_rate, self._report)

    # -- lifecycle --

    def on_configure(self, state) -> TransitionCallbackReturn:
        """Build the problem, compile or load the solver, solve once so that the first tick is like the others."""
        try:
            settings = load_mpc_settings(self.settings.task)
            arm = load_arm(self.settings.robot)
            self._controller = MpcController(arm, settings, self.settings.solver or None)
            middle = self._controller.problem.stack(0.5 * (arm.lower + arm.upper), np.zeros(arm.n))
            self._controller.solver.reset(middle)
            self._controller.solver.solve(middle)
        except ContactEstimationError as error:
            return self._refuse("configure", error)
        self.get_logger().info(
            f"configured: {self.settings.task} on {arm.name}, solver {self._controller.solver.name}, "
            f"{settings.rate:g} Hz"
        )
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state) -> TransitionCallbackReturn:
        """Begin the task where the arm is; refused without a fresh, valid estimate."""
        try:
            if self._latest is None:
                raise ContactEstimationError(
                    f"no estimate on '{self.settings.estimates}' yet; start an estimator, or correct 'estimates'"
                )
            self._controller.activate(self._observation())
        except ContactEstimationError as error:
            return self._refuse("activate", error)
        self._timer = self.create_timer(1.0 / self._controller.settings.rate, self._tick)
        return super().on_activate(state)

    def on_deactivate(self, state) -> TransitionCallbackReturn:
        """Command nothing from now on."""
        self._stop("deactivated")
        return super().on_deactivate(state)

    def on_cleanup(self, state) -> TransitionCallbackReturn:
        """Forget the task."""
        self._stop("not configured")
        self._controller = None
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state) -> TransitionCallbackReturn:
        """Command nothing from now on."""
        self._stop("shut down")
        return TransitionCallbackReturn.SUCCESS

    def _refuse(self, what: str, error: Exception) -> TransitionCallbackReturn:
        self.get_logger().error(f"cannot {what}: {error}")
        self._health.inactive(f"cannot {what}: {error}")
        self._report()
        return TransitionCallbackReturn.FAILURE

    def _stop(self, reason: str) -> None:
        if self._timer is not None:
            self.destroy_timer(self._timer)
            self._timer = None
        if self._controller is not None:
            self._controller.deactivate()
        self._health.inactive(reason)

    # -- work --

    def _on_estimate(self, message: ContactEstimate) -> None:
        self._latest = message

    def _observation(self) -> Observation:
        age = self.get_clock().now().nanoseconds - convert.stamp_ns(self._latest.header.stamp)
        return Observation.of(convert.from_contact_estimate(self._latest), 1e-9 * age)

    def _tick(self) -> None:
        controller, now_ns = self._controller, self.get_clock().now().nanoseconds
        command = controller.update(1e-9 * now_ns, self._observation())
        if command is None:
            return
        stamp_ns = convert.stamp_ns(self._latest.header.stamp)
        head = convert.header(stamp_ns, controller.arm.base_frame)
        self._pose.publish(mpc_outputs.pose_stamped(head, command))
        if self._health.add(command):
            self._report()
            if command.state is not MpcState.ACTIVE:
                self.get_logger().warning(command.reason)
        if 0 <= now_ns - self._drawn_ns < 1e9 / self.settings.people_rate:
            return
        self._drawn_ns = now_ns
        usable = command.solution is not None and command.solution.ok
        plan = controller.prediction(command.solution) if usable else None
        task = controller.settings
        self._prediction.publish(mpc_outputs.prediction(head, command, controller.solver.name, task.dt, plan))
        shapes = prediction_shapes(
            *(plan or (None, None)),
            task.horizon,
            command.position,
            controller.arm.base_frame,
            self.settings.arrow_scale,
        )
        self._markers.publish(marker_array(shapes, stamp_ns))

    def _report(self) -> None:
        self._diagnostics.publish(self._health.report(self.get_clock().now().nanoseconds))


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Mpc, args)
