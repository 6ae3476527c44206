"""The driver node as a process: samples and truth on topics; commands only while active, ended by a dead estimator."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pinocchio as pin
from contact_estimation.msg import ContactEstimate
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped, WrenchStamped
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from contact_estimation.drivers.backend import EquilibriumPose
from contact_estimation.drivers.registry import make_backend
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos

CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
CLEANUP, DEACTIVATE = Transition.TRANSITION_CLEANUP, Transition.TRANSITION_DEACTIVATE
INACTIVE = State.PRIMARY_STATE_INACTIVE
#: [N/m] what the arm's own controller is set to.
STIFFNESS = [800.0, 800.0, 600.0]


def state_of(graph, node: str) -> int:
    """Lifecycle state of a node."""
    return graph.call(GetState, f"/{node}/get_state").current_state.id


def change(graph, client, transition: int) -> bool:
    """Ask for a lifecycle transition; whether it succeeded."""
    request = ChangeState.Request()
    request.transition.id = transition
    future = client.call_async(request)
    assert graph.spin(future.done)
    return future.result().success


def good_estimate(arm, stamp) -> ContactEstimate:
    """The least that an estimate of ``arm`` must be to count."""
    return ContactEstimate(
        header=Header(stamp=stamp, frame_id=arm.base_frame), valid=True, observer="test", joint_names=arm.joint_names
    )


def test_commands_act_only_while_active_and_end_with_the_estimates(graph):
    arm = load_arm("fr3")
    states = graph.watch(JointState, "/joint_states")
    truth = graph.watch(WrenchStamped, "/truth/external_wrench")
    health = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    poses = graph.node.create_publisher(PoseStamped, "equilibrium_pose", qos.SENSOR)
    estimates = graph.node.create_publisher(ContactEstimate, "estimator/contact_estimate", qos.SENSOR)
    client = graph.node.create_client(ChangeState, "/driver/change_state")

    def commands() -> dict:
        said = [s for m in health for s in m.status if s.name.startswith("driver")]
        return {v.key: v.value for v in said[-1].values} if said else {}

    parameters = {"driver": "sim", "robot": "fr3", "scenario": "plane", "duration": 60.0}
    with graph.start("driver", parameters):
        graph.wait_for_subscriber("/estimator/contact_estimate")
        assert graph.spin(client.service_is_ready, 20.0)
        assert not graph.spin(lambda: states, 0.5), "nothing is connected before configure"
        assert change(graph, client, CONFIGURE)
        assert graph.spin(lambda: len(states) > 50 and truth, 20.0)
        assert list(states[-1].name) == list(arm.joint_names)
        assert not change(graph, client, ACTIVATE)  # no estimate comes in

        message = PoseStamped()
        message.header.frame_id = arm.base_frame

        def drive(lift: float, seconds: float, also=lambda: False) -> bool:
            position, rotation = arm.tcp_pose(np.array(states[-1].position))
            p, o = message.pose.position, message.pose.orientation
            p.x, p.y, p.z = position + [0.0, 0.0, lift]
            o.x, o.y, o.z, o.w = pin.Quaternion(rotation).coeffs()

            def turn():
                estimates.publish(good_estimate(arm, states[-1].header.stamp))
                poses.publish(message)
                return also()

            return graph.spin(turn, seconds)

        drive(0.0, 0.5)
        for _ in range(5):  # on a busy machine the estimates just sent may be too old when the request is served
            drive(0.0, 0.2)
            if change(graph, client, ACTIVATE):
                break
        before = arm.tcp_pose(np.array(states[-1].position))[0][2]
        height = lambda: arm.tcp_pose(np.array(states[-1].position))[0][2]  # noqa: E731
        assert drive(0.05, 10.0, lambda: height() > before + 0.005), commands()
        # The estimator dies, the planner does not know: what it wants no longer counts.
        assert graph.spin(lambda: poses.publish(message) or commands().get("commands") == "stop", 10.0)
        assert "estimate" in commands()["commands say"]
        assert state_of(graph, "driver") == INACTIVE, "a stop shows in the lifecycle"


class ImpedanceArm:
    """An FR3 behind topics, as its own ROS driver and a Cartesian impedance controller show it; simulated."""

    def __init__(self, graph, arm) -> None:
        self.graph, self.arm = graph, arm
        self.poses = graph.watch(PoseStamped, "/driver/equilibrium_pose", qos.COMMANDS)
        self.impedances = graph.watch(WrenchStamped, "/driver/impedance", qos.LATCHED)
        self._states = graph.node.create_publisher(JointState, "/arm/joint_states", qos.SENSOR)
        self._estimates = graph.node.create_publisher(ContactEstimate, "/estimator/contact_estimate", qos.SENSOR)
        self._wanted = graph.node.create_publisher(PoseStamped, "/equilibrium_pose", qos.SENSOR)
        self._followed = 0
        options = {"scenario": "plane", "duration": 600.0, "imperfections": "ideal", "impedance_stiffness": STIFFNESS}
        self.backend = make_backend("simulated", self.arm, options)
        self.backend.connect()
        self.sample = self.backend.read()

    def turn(self, want: PoseStamped | None = None) -> None:
        """One sample out, the newest command in."""
        self.sample = self.backend.read()
        head = convert.header(self.graph.node.get_clock().now().nanoseconds, "")
        s = self.sample
        self._states.publish(convert.joint_state(head, self.arm.joint_names, s.q, s.dq, s.tau))
        self._estimates.publish(good_estimate(self.arm, head.stamp))
        if want is not None:
            self._wanted.publish(want)
        if len(self.poses) > self._followed:
            self._followed = len(self.poses)
            pose = self.poses[-1].pose
            p, o = pose.position, pose.orientation
            rotation = pin.Quaternion(np.array([o.x, o.y, o.z, o.w])).toRotationMatrix()
            self.backend.command(EquilibriumPose(np.array([p.x, p.y, p.z]), rotation))

    def run(self, seconds: float, want: PoseStamped | None = None, until=lambda: False) -> bool:
        def step() -> bool:
            self.turn(want)
            return until()

        return self.graph.spin(step, seconds)


def test_a_joint_torque_arm_is_commanded_through_topics(graph, tmp_path):
    """Equilibrium and impedance leave the driver; an arm that follows them moves, and the driver sees it move."""
    arm = load_arm("fr3")
    patient = tmp_path / "limits.yaml"  # the deadman has a test of its own; a busy machine shall not trip it here
    patient.write_text("hold_after: 4.0\nstop_after: 8.0\n")
    parameters = {
        "driver": "joint_torque",
        "robot": "fr3",
        "joint_states_in": "arm/joint_states",
        "safety": str(patient),
        "control": True,
        "impedance_stiffness": STIFFNESS,
    }
    with graph.start("driver", parameters) as driver:
        real = ImpedanceArm(graph, arm)
        client = graph.node.create_client(ChangeState, "/driver/change_state")
        assert graph.spin(client.service_is_ready, 20.0)
        assert change(graph, client, CONFIGURE)
        graph.wait_for_subscriber("/arm/joint_states")
        states = graph.watch(JointState, "/joint_states")
        assert real.run(20.0, until=lambda: len(states) > 50), driver.text()
        assert not real.poses and not real.impedances, "an inactive driver commands nothing"

        want = PoseStamped()
        want.header.frame_id = arm.base_frame
        for _ in range(10):
            real.run(0.3)
            if change(graph, client, ACTIVATE):
                break
        assert real.run(5.0, until=lambda: real.impedances), driver.text()
        force, torque = (convert.xyz(v) for v in (real.impedances[-1].wrench.force, real.impedances[-1].wrench.torque))
        assert force.tolist() == STIFFNESS and torque.tolist() == [40.0, 40.0, 40.0]

        position, rotation = arm.tcp_pose(real.sample.q)
        goal = position + [0.0, 0.0, 0.04]
        want.pose.position.x, want.pose.position.y, want.pose.position.z = goal
        o = want.pose.orientation
        o.x, o.y, o.z, o.w = pin.Quaternion(rotation).coeffs()
        height = lambda: arm.tcp_pose(real.sample.q)[0][2]  # noqa: E731
        assert real.run(20.0, want, lambda: height() > goal[2] - 0.005), driver.text()
        assert real.poses[-1].header.frame_id == arm.base_frame

        assert change(graph, client, DEACTIVATE)
        real.run(0.3)
        count = len(real.poses)
        real.run(0.5, want)
        assert len(real.poses) == count, "nothing passes once it is inactive"
        assert change(graph, client, CLEANUP) and state_of(graph, "driver") == State.PRIMARY_STATE_UNCONFIGURED


def test_a_robot_that_does_not_answer_stays_unconfigured(graph):
    with graph.start("driver", {"driver": "rtde", "robot": "ur16e", "host": "127.0.0.9"}) as driver:
        request = ChangeState.Request(transition=Transition(id=CONFIGURE))
        assert not graph.call(ChangeState, "/driver/change_state", request, 40.0).success
        assert state_of(graph, "driver") == State.PRIMARY_STATE_UNCONFIGURED
        assert "127.0.0.9" in driver.text()


def test_a_thread_that_dies_is_told_and_the_node_can_be_configured_again(graph, monkeypatch):
    health = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    states = graph.watch(JointState, "/joint_states")
    client = graph.node.create_client(ChangeState, "/driver/change_state")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)

    def told() -> list[DiagnosticStatus]:
        return [s for m in health for s in m.status if "ZeroDivisionError: a defect" in s.message]

    with graph.start("driver", {"driver": "broken_driver:BreaksAfterFifty", "robot": "fr3"}) as driver:
        assert graph.spin(client.service_is_ready, 20.0), driver.text()
        for _ in range(2):
            states.clear()
            health.clear()
            assert change(graph, client, CONFIGURE), driver.text()
            assert graph.spin(lambda: len(states) >= 10, 20.0), driver.text()
            assert graph.spin(told, 20.0), driver.text()
            assert told()[-1].level == DiagnosticStatus.ERROR
            assert state_of(graph, "driver") == State.PRIMARY_STATE_UNCONFIGURED
        assert not change(graph, client, ACTIVATE) and driver.running
