"""Launch files run for real, where ROS' own ``launch`` is installed; what needs no launch is in test/test_launch.py."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import arm_samples as samples
import numpy as np
import pytest
import yaml
from contact_estimation.msg import ContactEstimate
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.qos import QoSProfile
from rtde_controller import HOST, Controller
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from test_graph import assert_close, offline
from test_launch import ROBOTS_WITH_MPC

from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.open import open_recording
from contact_estimation.robot import load_arm
from contact_estimation.ros import bringup, convert, qos
from contact_estimation.ros.processes import graph_environment

pytestmark = pytest.mark.skipif(shutil.which("ros2") is None, reason="no ros2 launch in this environment")
ROOT = Path(__file__).resolve().parents[2]
#: Estimates and samples of a replay, none of which may be missing.
ALL = qos.COMPLETE


class Launch:
    """``ros2 launch`` in a session of its own, as from a terminal; its output is in a file."""

    def __init__(self, graph, tmp_path: Path, file: str = "bringup", **arguments: str) -> None:
        self.graph, self.log = graph, tmp_path / f"launch_{time.monotonic_ns()}.log"
        words = [f"{name}:={value}" for name, value in ({"launch_rsp": "false"} | arguments).items()]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                ["ros2", "launch", str(ROOT / "launch" / f"{file}.launch.py"), *words],
                env=graph_environment(graph.domain) | {"ROS_LOG_DIR": str(tmp_path)},
                cwd=tmp_path,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
            )

    def __enter__(self) -> Launch:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.interrupt()

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def until(self, words: str, timeout: float = 120.0) -> None:
        """Take messages until the launch printed ``words``."""
        found = self.graph.spin(lambda: words in self.text() or self.process.poll() is not None, timeout)
        assert found and words in self.text(), self.text()

    def wait(self, timeout: float = 120.0) -> int:
        """Take messages until the launch ended; returns its exit code."""
        assert self.graph.spin(lambda: self.process.poll() is not None, timeout), self.text()
        self.graph.spin(timeout=0.3)
        return self.process.returncode

    def interrupt(self, everyone: bool = True) -> int:
        """Ctrl-C: the terminal tells every process; a supervisor tells the launch alone."""
        (os.killpg if everyone else os.kill)(self.process.pid, signal.SIGINT)
        try:
            return self.process.wait(30.0)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"Ctrl-C does not end it:\n{self.text()}") from None


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(autouse=True)
def nobody_stays(graph):
    """What was launched leaves the graph, also where it was interrupted while it started."""
    yield
    assert graph.spin(lambda: graph.node.get_node_names() == [graph.node.get_name()], 10.0), graph.node.get_node_names()


@pytest.fixture
def bag(arm, tmp_path):
    return write_bag(tmp_path / "bag", samples.recording(arm, 600))


@pytest.fixture
def kept_stamps(tmp_path):
    """Parameters of the nodes that the arguments do not have."""
    file = tmp_path / "parameters.yaml"
    file.write_text(yaml.safe_dump({"/**/driver": {"ros__parameters": {"keep_stamps": True}}}))
    return str(file)


@pytest.mark.parametrize("name", bringup.PRESETS)
def test_a_launch_file_loads_and_tells_its_arguments(name):
    command = ["ros2", "launch", str(ROOT / "launch" / f"{name}.launch.py"), "--show-args"]
    done = subprocess.run(command, capture_output=True, text=True, env=graph_environment(1), timeout=60.0)
    assert done.returncode == 0, done.stderr
    for argument in bringup.arguments(name):
        assert f"'{argument.name}':" in done.stdout
        assert argument.name == "driver" or f"(default: '{argument.default}')" in done.stdout


@pytest.mark.parametrize("word", ["rvis:=true", "driver:=simulatd", "mpc:=maybe", "bag:=/tmp"])
def test_a_wrong_argument_ends_it_with_an_error(graph, tmp_path, word):
    name, value = word.split(":=")
    with Launch(graph, tmp_path, **{name: value}) as launch:
        assert launch.wait() == 1
        assert name in launch.text() and "Traceback" not in launch.text()


@pytest.mark.parametrize("robot", bringup.ROBOTS)
def test_every_robot_starts_simulated(graph, tmp_path, robot):
    with Launch(graph, tmp_path, robot=robot, duration="0.4") as launch:
        assert launch.wait() == 0, launch.text()
        assert "200 samples delivered" in launch.text()


@pytest.mark.parametrize("driver, topic, readers", [("none", "joint_states", 2), ("joint_torque", "arm/states", 1)])
@pytest.mark.parametrize("robot", bringup.ROBOTS)
def test_every_robot_starts_beside_its_own_driver(graph, tmp_path, robot, driver, topic, readers):
    estimates = graph.watch(ContactEstimate, "/estimator/contact_estimate")
    own = load_arm(robot)
    publisher = graph.node.create_publisher(JointState, f"/{topic}", qos.SENSOR)
    with Launch(graph, tmp_path, robot=robot, driver=driver, joint_states_in=topic) as launch:
        graph.wait_for_subscriber(f"/{topic}", readers)
        q, stamp = own.settings.ready or [0.3] * own.n, itertools.count(time.time_ns(), 2_000_000)

        def feed() -> bool:
            head = convert.header(next(stamp), "")
            torque = own.gravity(np.array(q))
            publisher.publish(convert.joint_state(head, own.joint_names, q, [0.0] * own.n, torque))
            return len(estimates) > 10

        assert graph.spin(feed, 20.0), launch.text()
        assert launch.interrupt() == 0
    graph.node.destroy_publisher(publisher)


@pytest.mark.parametrize("robot", [name for name in bringup.ROBOTS if name.startswith("ur")])
def test_a_ur_starts_with_its_controller(graph, tmp_path, robot):
    estimates = graph.watch(ContactEstimate, "/estimator/contact_estimate")
    controller = Controller("--robot", robot)
    try:
        with Launch(graph, tmp_path, robot=robot, driver="rtde", host=HOST) as launch:
            assert graph.spin(lambda: len(estimates) > 100 or launch.process.poll() is not None), launch.text()
            assert launch.interrupt() == 0 and estimates, launch.text()
    finally:
        controller.kill()


@pytest.mark.parametrize("robot", ROBOTS_WITH_MPC)
def test_every_robot_that_has_a_task_starts_with_the_mpc(graph, tmp_path, robot):
    with Launch(graph, tmp_path, robot=robot, mpc="true", duration="600.0") as launch:
        launch.until("start, ")
        request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE))
        assert graph.call(ChangeState, "/mpc/change_state", request).success, launch.text()
        assert launch.interrupt() == 0
        assert "Traceback" not in launch.text()


def test_replay_equals_offline_replay_from_the_first_sample(graph, arm, bag, tmp_path, kept_stamps):
    recording = open_recording(bag, arm.joint_names)
    got = graph.watch(ContactEstimate, "/estimator/contact_estimate", ALL)
    given = {"bag": str(bag), "observer": "ekf", "sensors": "joint_torque", "params_file": kept_stamps, "rate": "0.5"}
    with Launch(graph, tmp_path, "replay", **given) as launch:
        assert launch.wait() == 0, launch.text()
    assert [convert.stamp_ns(message.header.stamp) for message in got] == recording.stamps_ns.tolist()
    for message, estimate in zip(got, offline(recording, "ekf", "joint_torque")):
        assert_close(convert.from_contact_estimate(message), estimate)


def test_replay_at_four_times_the_speed_is_recorded_whole(graph, arm, bag, tmp_path, kept_stamps):
    given = {"bag": str(bag), "observer": "ekf", "params_file": kept_stamps, "rate": "4.0", "record": "true"}
    with Launch(graph, tmp_path, "replay", **given) as launch:
        assert launch.wait() == 0, launch.text()
    (copy,) = tmp_path.glob("bag_*")
    one, other = open_recording(bag, arm.joint_names), open_recording(copy, arm.joint_names)
    np.testing.assert_array_equal(one.stamps_ns, other.stamps_ns)
    np.testing.assert_array_equal(one.tau, other.tau)


def test_a_loop_goes_on(graph, arm, bag, tmp_path, kept_stamps):
    states = graph.watch(JointState, "/joint_states", ALL)
    with Launch(graph, tmp_path, "replay", bag=str(bag), loop="true", params_file=kept_stamps) as launch:
        assert graph.spin(lambda: len(states) > 1900, 120.0), launch.text()
        assert launch.interrupt() == 0
    stamps = [convert.stamp_ns(message.header.stamp) for message in states]
    begin = stamps.index(min(stamps))  # the driver waits for the estimators, not for this listener
    stamps = stamps[begin : begin + 1200]
    assert stamps[:600] == stamps[600:] == sorted(stamps[:600])


@pytest.mark.parametrize("robot, driver, words", [("ur16e", "rtde", "127.0.0.9"), ("fr3", "franka", "pylibfranka")])
def test_a_driver_that_cannot_run_fails_the_launch(graph, tmp_path, robot, driver, words):
    with Launch(graph, tmp_path, robot=robot, driver=driver, host="127.0.0.9") as launch:
        assert launch.wait() == 1
        assert "driver ended with exit code 2" in launch.text() and words in launch.text()
        assert "Traceback" not in launch.text()


def services(graph) -> set[str]:
    """Names of services of other nodes; those the watcher asked are its own."""
    others = [each for each in graph.node.get_node_names_and_namespaces() if each[0] != graph.node.get_name()]
    return {name for each in others for name, _ in graph.node.get_service_names_and_types_by_node(*each)}


def test_two_arms_share_no_name(graph, tmp_path):
    seen = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    common = {"duration": "600.0", "record": "true"}
    sides = {}
    with (
        Launch(graph, tmp_path, namespace="left", tf_prefix="left_", **common) as left,
        Launch(graph, tmp_path, namespace="right", tf_prefix="right_", robot="fr3", **common) as right,
    ):
        got = {side: graph.watch(ContactEstimate, f"/{side}/estimator/contact_estimate") for side in ("left", "right")}
        for launch in (left, right):
            launch.until("start, ")
        assert graph.spin(lambda: all(got.values()) and len({s.name for m in seen for s in m.status}) >= 6, 60.0)
        for side in got:
            sides[side] = {got[side][-1].header.frame_id, got[side][-1].tcp_frame}
            assert all(frame.startswith(f"{side}_") for frame in sides[side])
        names = [status.name for message in seen for status in message.status]
        assert all(name.startswith(("left/", "right/")) for name in names)
        mine = {"/diagnostics", "/rosout", "/parameter_events", "/tf", "/tf_static"}
        published = {name for name, _ in graph.node.get_topic_names_and_types() if graph.node.count_publishers(name)}
        topics = published - mine
        assert topics and services(graph)
        strange = [name for name in topics | services(graph) if not name.startswith(("/left/", "/right/"))]
        assert not strange


def test_the_description_is_not_published_twice(graph, tmp_path):
    publisher = graph.node.create_publisher(String, "/robot_description", QoSProfile(depth=1))
    with Launch(graph, tmp_path, driver="none", launch_rsp="auto") as launch:
        launch.until("/robot_description is published already")
        assert "[robot_state_publisher-" not in launch.text()
        assert launch.interrupt() == 0
    graph.node.destroy_publisher(publisher)


def test_ctrl_c_twenty_times_leaves_no_traceback(graph, tmp_path):
    for k in range(20):
        with Launch(graph, tmp_path, duration="600.0") as launch:
            launch.until("[driver-3]: process started")
            graph.spin(timeout=1.0 + 0.4 * k)  # from the first import to samples that flow
            launch.interrupt(everyone=k % 2 == 0)
            text = launch.text()
            # Python 3.11 may lose the exit code of a process that ends while it is signalled, and launch reports 255.
            lost = re.findall(r"Unknown child process pid (\d+)", text)
            died = [pid for pid in re.findall(r"process has died \[pid (\d+)", text) if pid not in lost]
            assert "Traceback" not in text and not died, text
