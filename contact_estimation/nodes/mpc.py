"""Node ``mpc`` (lifecycle): the latest contact estimate in, an equilibrium pose out at the task's rate.

When configured, it has compiled and solved once. When active, it plans and always publishes the equilibrium. In a
fallback this is the equilibrium of the remaining plan or of the hold. After a short outage the controller continues by
itself. A hold whose reason says so lasts until the node is deactivated and activated again. The last equilibrium before
the node is deactivated or ends is where the arm is.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from rclpy.duration import Duration
from rclpy.lifecycle import State, TransitionCallbackReturn
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from contact_estimation.control.controller import Command, ContactController, ControllerState, Observation
from contact_estimation.control.mpc.controller import ContactModelWarning
from contact_estimation.control.observation_check import unusable
from contact_estimation.control.sequence import SequenceController, make_task_controller
from contact_estimation.control.task_clock import TaskClock
from contact_estimation.exceptions import ContactEstimationError, RecordingError
from contact_estimation.msg import ContactEstimate, MpcPrediction
from contact_estimation.robot import load_arm, load_robot_settings
from contact_estimation.ros import convert, mpc_outputs, parameters, qos
from contact_estimation.ros.drawing import DrawingThread, marker_array
from contact_estimation.ros.estimate_topic import EstimateTopic
from contact_estimation.ros.executor import run
from contact_estimation.ros.frames import status_name
from contact_estimation.ros.lifecycle import ManagedNode
from contact_estimation.ros.lifecycle_monitor import LifecycleMonitor
from contact_estimation.ros.node_settings import MpcParameters
from contact_estimation.ros.serialized import decode
from contact_estimation.ros.staleness import EstimateRule
from contact_estimation.ros.steady_timer import steady_timer
from contact_estimation.ros.wrist_sensor import WristSensor
from contact_estimation.settings import find_config
from contact_estimation.viz.prediction import prediction_shapes

#: Longest wait until the subscribers have the last equilibrium.
_LAST_HEARD = Duration(seconds=0.5)


class _Commanded(NamedTuple):
    """A command that may be drawn, and the header of its pose."""

    command: Command
    head: Header


class Mpc(ManagedNode):
    """Connects the controller to topics; the library makes every decision."""

    def __init__(self) -> None:
        super().__init__("mpc", automatically_declare_parameters_from_overrides=True)
        s = self.settings = parameters.declare(self, MpcParameters)
        robot = load_robot_settings(s.robot, s.tool)  # these parameters are fixed: a wrong name stays wrong
        find_config("tasks", s.task, robot.folder)
        self._controller: ContactController | None = None
        self._rule: Any = None  # an EstimateRule, once configured
        self._latest: bytes | None = None  # the newest ContactEstimate, serialised
        self._learnt_from: bytes | None = None  # the newest one that the wrist sensor has seen
        self._timer: Any = None  # of the task's ticks, while active
        self._task_clock = TaskClock(1.0)
        self._offset_timer: Any = None  # shows estimates to the wrist sensor before the task begins
        self._wrist = WristSensor(self, self.settings.wrench) if self.settings.wrench else None
        self._lock = threading.Lock()  # a plan is predicted with the memory of the solver's thread
        self._last: _Commanded | None = None
        self._logged = 0  # steps of the task whose end was logged
        warnings.simplefilter("ignore", ContactModelWarning)  # they are logged
        self._health = mpc_outputs.MpcHealth(status_name(self), self.settings.tf_prefix + self.settings.robot)
        self._pose = self.create_publisher(PoseStamped, "~/equilibrium_pose", qos.COMMANDS)
        self._prediction = self.create_publisher(MpcPrediction, "~/prediction", qos.VISUALIZATION)
        self._markers = self.create_publisher(MarkerArray, "~/markers", qos.VISUALIZATION)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
        self._driver = LifecycleMonitor(self, self.settings.executor) if self.settings.executor else None
        self._estimates = EstimateTopic(self, self.settings.estimates, self._on_estimate, qos.SENSOR)
        steady_timer(self, 1.0 / self.settings.diagnostics_rate, self._report)
        self._painter = DrawingThread(self._draw, self.settings.visualization_rate, self._not_drawn)
        parameters.accept_changes(self, MpcParameters, {"visualization_rate", "arrow_scale"}, self._apply)

    # -- lifecycle --

    def on_configure(self, state: State) -> TransitionCallbackReturn:
        """Build the problem, compile or load the solver, solve once so that the first tick is like the others."""
        try:
            arm, s = load_arm(self.settings.robot, self.settings.tool), self.settings
            self._controller = make_task_controller(s.task, s.controller, arm, s.solver or None)
            settings = self._controller.settings
            self._rule = EstimateRule(arm, s.tf_prefix, settings.safety.max_age)
            self._controller.prepare()
            if self._wrist is not None:
                self._wrist.configure(arm, s.tf_prefix, settings.safety.max_age)
                self._offset_timer = steady_timer(self, 1.0 / settings.rate, self._learn_sensor_offset)
        except ContactEstimationError as error:
            return self._refuse("configure", error)
        self.get_logger().info(
            f"configured: {self.settings.task} on {arm.name}, controller {self._controller.name}, {settings.rate:g} Hz"
        )
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: State) -> TransitionCallbackReturn:
        """Begin the task where the arm is; refused without a fresh, valid estimate."""
        try:
            if self._latest is None:
                raise ContactEstimationError(
                    f"no estimate on '{self.settings.estimates}' yet; start an estimator, or correct 'estimates'"
                )
            controller, latest = self._configured(), self._decoded(self._latest)
            with self._lock:
                first = controller.activate(self._observation(latest))
        except ContactEstimationError as error:
            return self._refuse("activate", error)
        self._rule.choose(latest.observer)
        self._logged = 0
        self._log_warnings(first)
        rate, max_age = controller.settings.rate, controller.settings.safety.max_age
        self._task_clock = TaskClock(max(max_age, 2.0 / rate))
        self._timer = steady_timer(self, 1.0 / rate, self._tick, simulated=True)
        return super().on_activate(state)

    def on_deactivate(self, state: State) -> TransitionCallbackReturn:
        """Leave the equilibrium where the arm is, and command nothing from now on."""
        self._stop("deactivated")
        return super().on_deactivate(state)

    def on_cleanup(self, state: State) -> TransitionCallbackReturn:
        """Forget the task."""
        self._stop("not configured")
        if self._offset_timer is not None:
            self.destroy_timer(self._offset_timer)
            self._offset_timer = None
        self._controller = None
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: State) -> TransitionCallbackReturn:
        """Leave the equilibrium where the arm is, and command nothing from now on."""
        self._stop("shut down")
        return TransitionCallbackReturn.SUCCESS

    def _refuse(self, what: str, error: Exception) -> TransitionCallbackReturn:
        self.get_logger().error(f"cannot {what}: {error}")
        self._health.inactive(f"cannot {what}: {error}")
        self._report()
        return TransitionCallbackReturn.FAILURE

    def _stop(self, reason: str) -> None:
        """End the task, with a last equilibrium where the arm is."""
        if self._timer is not None:
            self.destroy_timer(self._timer)
            self._timer = None
        with self._lock:
            self._last = None
        if self._controller is not None:
            with self._lock:
                hold = self._controller.deactivate()
            self._rule.choose("")
            if hold is not None:
                self._pose.publish(mpc_outputs.pose_stamped(self._head(self.get_clock().now().nanoseconds), hold))
        self._health.inactive(reason)

    # -- work --

    def _on_estimate(self, raw: bytes) -> None:
        self._latest = raw  # most are never planned from: decoding waits for a tick

    def _configured(self) -> ContactController:
        """Return the controller, which a configured node has."""
        if self._controller is None:
            raise ContactEstimationError("the MPC is not configured; configure it first")
        return self._controller

    def _observation(self, message: ContactEstimate) -> Observation:
        """Return what the controller takes from an estimate: invalid where it may not plan from it."""
        age, problem = self._rule.judge(message, self.get_clock().now().nanoseconds)
        estimate = convert.from_contact_estimate(message)
        observation = Observation.of(replace(estimate, valid=not problem, reason=problem), age)
        observation = replace(observation, executed=self._driver is None or self._driver.active)
        controller = self._configured()
        # The controller refuses it, too, but the filter of the sensor may not learn from it.
        if self._wrist is None or unusable(observation, controller.arm.n, [], controller.settings.safety.max_age):
            return observation
        return self._wrist.corrected(observation, estimate, convert.stamp_ns(message.header.stamp))

    def _learn_sensor_offset(self) -> None:
        """Let the wrist sensor learn its offset while no task runs."""
        if self._timer is None and self._latest is not None and self._latest is not self._learnt_from:
            self._learnt_from = self._latest
            with contextlib.suppress(RecordingError):  # it is told when a task shall begin
                self._observation(self._decoded(self._latest))

    def _decoded(self, raw: bytes | None) -> ContactEstimate:
        """Return an estimate; raises RecordingError where the bytes are none."""
        return decode(raw or b"", ContactEstimate, f"'{self.settings.estimates}'")

    def _tick(self) -> None:
        """Command an equilibrium for now, from the newest estimate."""
        controller, now_ns = self._configured(), self.get_clock().now().nanoseconds
        try:
            latest = self._decoded(self._latest)
            stamp_ns, observation = convert.stamp_ns(latest.header.stamp), self._observation(latest)
        except RecordingError as error:
            unknown = np.zeros(controller.arm.n)
            stamp_ns, observation = now_ns, Observation(unknown, unknown, valid=False, reason=str(error))
        # A plan has the stamp of its estimate. A fallback is made without one, and has the present time.
        head = self._head(stamp_ns if observation.valid else now_ns)
        with self._lock:
            command = controller.update(self._task_clock.advance(1e-9 * now_ns), observation)
            self._last = None if command is None else _Commanded(command, head)
        if command is None:
            return
        self._pose.publish(mpc_outputs.pose_stamped(head, command))
        self._log_ended_steps(controller)
        self._log_warnings(command)
        if self._health.add(command):
            self._report()
            if command.state is not ControllerState.ACTIVE:
                self.get_logger().warning(command.reason)

    def _head(self, stamp_ns: int) -> Header:
        """Return the header of what is for the time ``stamp_ns`` [ns], in the base frame."""
        return convert.header(stamp_ns, self.settings.tf_prefix + self._configured().arm.base_frame)

    def _draw(self) -> None:
        """Show the last command and its plan, once."""
        with self._lock:
            last, self._last = self._last, None
            if last is None:
                return
            controller, solution = self._configured(), last.command.solution
            plan = controller.prediction(solution) if solution is not None and solution.ok else None
        (command, head), task = last, controller.settings
        self._prediction.publish(mpc_outputs.prediction(head, command, self._solver(command), task.dt, plan))
        positions, forces = plan if plan is not None else (None, None)
        scale = self.settings.arrow_scale
        shapes = prediction_shapes(positions, forces, task.horizon, command.position, head.frame_id, scale)
        self._markers.publish(marker_array(shapes, convert.stamp_ns(head.stamp)))

    def _not_drawn(self, error: Exception) -> None:
        self.get_logger().error(f"drawing: {type(error).__name__}: {error}", throttle_duration_sec=5.0)

    def _log_ended_steps(self, controller: ContactController) -> None:
        """Log the steps of a task that have ended since the last tick."""
        if isinstance(controller, SequenceController):
            for name, why in controller.ended[self._logged :]:
                self.get_logger().info(f"step '{name}' ended: {why}")
            self._logged = len(controller.ended)
            self._health.step = "" if controller.over else controller.step.name

    def _log_warnings(self, command: Command) -> None:
        """Log, and report, in what the plan's contacts differ from the estimate's; a task in steps tells it once."""
        for text in command.warnings:
            if text not in self._health.warnings:
                self._health.warnings.append(text)
                self.get_logger().warning(text)

    def _solver(self, command: Command) -> str:
        """Return the solver's name, or the controller's where it makes no plan."""
        controller = self._configured()
        return (self.settings.solver or controller.settings.solver) if command.solution else controller.name

    def _apply(self, settings: MpcParameters) -> None:
        self.settings = settings
        self._painter.set_rate(settings.visualization_rate)

    def _report(self) -> None:
        now_ns, error = self.get_clock().now().nanoseconds, self._estimates.second_estimator()
        self._diagnostics.publish(self._health.report(now_ns, error))

    def close(self) -> None:
        """Leave no push in force: a signal may end the node in the middle of a task."""
        self._stop("ended")
        self._pose.wait_for_all_acked(_LAST_HEARD)

    def destroy_node(self) -> None:
        """Stop drawing first: its publishers go with the node."""
        self._painter.close()
        super().destroy_node()


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Mpc, args)
