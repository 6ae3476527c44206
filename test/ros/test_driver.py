"""The driver node as a process: samples and truth on topics; commands only while active, ended by a dead estimator."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from lifecycle_msgs.srv import ChangeState
from sensor_msgs.msg import JointState

from contact_estimation.msg import ContactEstimate
from contact_estimation.robot import load_arm
from contact_estimation.ros import qos

CONFIGURE, ACTIVATE = 1, 3


def change(graph, client, transition: int) -> bool:
    """Ask for a lifecycle transition; whether it succeeded."""
    request = ChangeState.Request()
    request.transition.id = transition
    future = client.call_async(request)
    assert graph.spin(future.done)
    return future.result().success


def test_commands_act_only_while_active_and_end_with_the_estimates(graph):
    arm = load_arm("fr3")
    states = graph.watch(JointState, "/joint_states")
    truth = graph.watch(WrenchStamped, "/truth/external_wrench")
    health = graph.watch(DiagnosticArray, "/diagnostics", qos.PEOPLE)
    poses = graph.node.create_publisher(PoseStamped, "equilibrium_pose", qos.SENSOR)
    estimates = graph.node.create_publisher(ContactEstimate, "estimator/contact_estimate", qos.SENSOR)
    client = graph.node.create_client(ChangeState, "/driver/change_state")

    def commands() -> dict:
        said = [s for m in health for s in m.status if s.name.startswith("driver")]
        return {v.key: v.value for v in said[-1].values} if said else {}

    parameters = {"driver": "sim", "robot": "fr3", "scenario": "plane", "duration": 60.0}
    with graph.start("driver", parameters):
        graph.wait_for_subscriber("/estimator/contact_estimate")
        assert graph.spin(lambda: len(states) > 50 and truth and client.service_is_ready(), 20.0)
        assert list(states[-1].name) == list(arm.joint_names)
        assert change(graph, client, CONFIGURE)
        assert not change(graph, client, ACTIVATE)  # no estimate comes in

        message = PoseStamped()
        message.header.frame_id = arm.base_frame

        def drive(lift: float, seconds: float, also=lambda: False) -> bool:
            position, rotation = arm.tcp_pose(np.array(states[-1].position))
            p, o = message.pose.position, message.pose.orientation
            p.x, p.y, p.z = position + [0.0, 0.0, lift]
            o.x, o.y, o.z, o.w = pin.Quaternion(rotation).coeffs()

            def turn():
                estimates.publish(ContactEstimate(valid=True))
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
