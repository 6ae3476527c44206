"""The MPC node as a process over real DDS: a lifecycle, an equilibrium pose, and a fallback that says so."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import yaml
from contact_estimation.msg import ContactEstimate, MpcPrediction
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from visualization_msgs.msg import MarkerArray

from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos
from contact_estimation.settings import find_config

START = np.array([0.0, -0.7853981, 0.0, -2.3561944, 0.0, 1.5707963, 0.7853981])


@pytest.fixture(scope="module")
def arm():
    return load_arm("fr3")


def estimate(arm, valid: bool = True) -> Estimate:
    position, rotation = arm.tcp_pose(START)
    local = np.array([0.0, 0.0, 0.10])
    tip = position + rotation @ local
    contact = ContactState("contact_1", 1.0, np.array([0.0, 0.0, 1000.0]), tip, local, tip, np.zeros((9, 9)))
    return Estimate(
        t=0.0,
        q=START,
        dq=np.zeros(7),
        tau_ext=np.zeros(7),
        force_base=np.zeros(3),
        force_tcp=np.zeros(3),
        torque_tcp=np.zeros(3),
        force_covariance=np.eye(3),
        contacts=(contact,),
        mode="contact",
        modes={"contact": 1.0},
        valid=valid,
        reason="" if valid else "a test says so",
    )


@pytest.fixture
def task(tmp_path) -> str:
    """The shipped task, with deadlines that a machine busy with other work meets."""
    settings = yaml.safe_load(find_config("tasks", "mpc_plane_fr3").read_text())
    settings["safety"] = {**settings.get("safety", {}), "deadline": 10.0, "max_age": 5.0}
    path = tmp_path / "patient.yaml"
    path.write_text(yaml.safe_dump(settings))
    return str(path)


def test_lifecycle_poses_and_fallback(graph, arm, task):
    poses = graph.watch(PoseStamped, "/mpc/equilibrium_pose")
    predictions = graph.watch(MpcPrediction, "/mpc/prediction", qos.VISUALIZATION)
    markers = graph.watch(MarkerArray, "/mpc/markers", qos.VISUALIZATION)
    diagnostics = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    publish = graph.node.create_publisher(ContactEstimate, "/estimator/contact_estimate", qos.VISUALIZATION).publish

    def send(valid: bool = True) -> None:
        head = convert.header(time.time_ns(), arm.base_frame)
        publish(convert.contact_estimate(estimate(arm, valid), head, arm.tcp_frame, arm.joint_names, "test"))

    def feed() -> None:  # an estimator that never pauses: while services are called, too
        while not stop.wait(0.01):
            send(not invalid.is_set())

    stop, invalid = threading.Event(), threading.Event()
    feeder = threading.Thread(target=feed, daemon=True)

    def change(transition: int) -> bool:
        return graph.call(
            ChangeState, "/mpc/change_state", ChangeState.Request(transition=Transition(id=transition)), 120.0
        ).success

    with graph.start("mpc", {"robot": "fr3", "task": task, "diagnostics_rate": 5.0}) as process:
        graph.wait_for_subscriber("/estimator/contact_estimate")
        assert change(Transition.TRANSITION_CONFIGURE), process.text()
        assert not change(Transition.TRANSITION_ACTIVATE)  # no estimate yet
        feeder.start()
        graph.spin(timeout=0.3)
        assert change(Transition.TRANSITION_ACTIVATE), process.text()
        assert graph.spin(lambda: len(poses) > 30 and len(predictions) > 5 and len(markers) > 5), process.text()
        active = [m for m in predictions if m.state == "active"]
        assert active and active[-1].solver == "rti" and len(active[-1].positions) == 16 and active[-1].solve_time > 0
        position, _ = arm.tcp_pose(START)
        reached = convert.xyz(poses[-1].pose.position)
        assert poses[-1].header.frame_id == arm.base_frame
        assert 1.0 < 700.0 * np.linalg.norm(reached - position) <= 20.0  # it presses, within the limit
        held = len(poses)
        invalid.set()
        assert graph.spin(lambda: any(m.state == "holding" and "a test says so" in m.reason for m in predictions))
        assert len(poses) > held
        np.testing.assert_allclose(convert.xyz(poses[-1].pose.position), position, atol=1e-4)  # it no longer pushes
        assert graph.spin(lambda: any("holding until" in s.message for a in diagnostics for s in a.status), 3.0)
        assert change(Transition.TRANSITION_DEACTIVATE)
        graph.spin(timeout=0.3)
        count = len(poses)
        graph.spin(timeout=0.3)
        assert len(poses) == count  # deactivated: silent
        stop.set()
        feeder.join()
        assert process.stop() == 0, process.text()
