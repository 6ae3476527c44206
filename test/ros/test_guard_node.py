"""The guard as a process beside the driver of a joint-torque arm: a killed driver leaves no stretched spring."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState
from test_driver import ImpedanceArm, activate, impedance_parameters

from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, mpc_outputs, qos


@pytest.mark.parametrize("launch_ends", [False, True])
def test_a_driver_that_is_killed_leaves_no_stretched_spring(graph, tmp_path, launch_ends):
    """A launch interrupts the other nodes as soon as the driver is dead."""
    arm = load_arm("fr3")
    parameters = {**impedance_parameters(tmp_path), "configure_at_start": True}
    (tmp_path / "limits.yaml").write_text("hold_after: 1.0\nstop_after: 1.0\n")
    given = {"robot": "fr3", "joint_states_in": "arm/joint_states", "safety": parameters["safety"]}
    given["max_sample_age"] = 2.0
    health = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)

    def watches() -> bool:
        return any("driver is watched" in status.message for message in health for status in message.status)

    with graph.start("driver", parameters) as driver, graph.start("guard", given) as guard:
        real = ImpedanceArm(graph, arm)
        real.jammed = True
        position, rotation = arm.tcp_pose(real.sample.q)

        def ahead() -> float:
            """How far the equilibrium is above the arm [m]."""
            return real.poses[-1].pose.position.z - position[2] if real.poses else 0.0

        gripper = graph.node.create_publisher(JointState, "/arm/joint_states", qos.SENSOR)

        def turn() -> None:
            """Between the samples of the arm come those of a gripper."""
            real.turn()
            head = convert.header(graph.now_ns(), "")
            gripper.publish(convert.joint_state(head, ["finger"], np.zeros(1), np.zeros(1), np.zeros(1)))

        with graph.meanwhile(turn):
            activate(graph)
            real.target = PoseStamped()
            real.target.header.frame_id = arm.base_frame
            real.target.pose = mpc_outputs.pose(position + [0.0, 0.0, 0.1], rotation)
            assert graph.spin(lambda: ahead() > 0.02 and watches()), driver.text()
            os.kill(driver.process.pid, signal.SIGKILL)
            if launch_ends:
                guard.process.send_signal(signal.SIGINT)
            assert graph.spin(lambda: abs(ahead()) < 1e-6), guard.text()
            assert real.poses[-1].header.frame_id == arm.base_frame
            released = real.poses[-1].pose
            np.testing.assert_allclose(convert.xyz(released.position), position, atol=1e-6)
            assert guard.stop() == 0 and "left a stretched spring" in guard.text(), guard.text()
