"""The node ``recorder``: a bag that opens, and what is left of it after a kill or on a full disk."""

from __future__ import annotations

import itertools
import resource
import signal
import time

import arm_samples as samples
import numpy as np
import pytest
from contact_estimation.msg import ContactEstimate
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from sensor_msgs.msg import JointState
from test_graph import STATES, WHOLE

from contact_estimation.cli import main
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.open import open_recording, recorded_arm
from contact_estimation.io.recovery import whole_bag
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def test_recorder_writes_a_bag_that_opens(graph, arm, tmp_path):
    bag, copy = write_bag(tmp_path / "bag", samples.recording(arm, 100)), tmp_path / "copy"
    with graph.start(
        "recorder", {"bag": str(copy), "topics": ["/joint_states:sensor_msgs/msg/JointState"], "complete": True}
    ) as recorder:
        with graph.start("replay_driver", {"recording": str(bag), **WHOLE, "wait_for": ["recorder"]}) as driver:
            assert driver.wait() == 0, driver.text()
        assert recorder.stop() == 0, recorder.text()
    one, other = open_recording(bag, arm.joint_names), open_recording(copy, arm.joint_names)
    np.testing.assert_array_equal(one.stamps_ns, other.stamps_ns)
    np.testing.assert_array_equal(one.tau, other.tau)


@pytest.mark.parametrize(
    "bag, topic, words",
    [
        ("/proc/bag", "/joint_states", "cannot be made (No such file or directory); name a folder"),
        ("bag", "/joint states", "correct the parameter or the remapping"),
    ],
    ids=["folder", "topic"],
)
def test_a_recorder_that_cannot_begin_says_why(graph, tmp_path, bag, topic, words):
    given = {"bag": str(tmp_path / bag), "topics": [f"{topic}:sensor_msgs/msg/JointState"]}
    with graph.start("recorder", given) as recorder:
        assert recorder.wait() == 2 and words in recorder.text() and "Traceback" not in recorder.text()
    assert not (tmp_path / "bag").exists()


def test_a_recorder_tells_that_two_estimators_share_a_topic(graph, tmp_path):
    topic = "/twice/contact_estimate"
    given = {"bag": str(tmp_path / "bag"), "topics": [f"{topic}:contact_estimation/msg/ContactEstimate"]}
    publishers = [graph.node.create_publisher(ContactEstimate, topic, qos.SENSOR) for _ in range(2)]
    with graph.start("recorder", given) as recorder:
        graph.wait_for_subscriber(topic)
        with graph.meanwhile(lambda: [publisher.publish(ContactEstimate()) for publisher in publishers], 0.01):
            said = f"two estimators publish on {topic}, and the bag mixes their estimates"
            assert graph.spin(lambda: said in recorder.text()), recorder.text()
        assert recorder.stop() == 0, recorder.text()
    for publisher in publishers:
        graph.node.destroy_publisher(publisher)


def test_a_recorder_tells_what_it_lost_while_it_was_suspended(graph, arm, tmp_path):
    """More samples come than queues hold, beside the estimates of an estimator and a gripper on the arm's topic."""
    recording, bag, sent = samples.recording(arm, 3000), tmp_path / "bag", itertools.count()
    told = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    estimates = "/estimator/contact_estimate"
    made = [("/joint_states", JointState), ("/joint_states", JointState), (estimates, ContactEstimate)]
    states, gripper, estimator = [graph.node.create_publisher(cls, topic, qos.SENSOR) for topic, cls in made]

    def send(count: int) -> None:
        for _ in range(count):
            row = next(sent)
            head = convert.header(int(recording.stamps_ns[row]), arm.base_frame)
            values = recording.q[row], recording.dq[row], recording.tau[row]
            states.publish(convert.joint_state(head, arm.joint_names, *values))
            if row % 10 == 0:
                gripper.publish(convert.joint_state(head, ["finger"], *[np.zeros(1)] * 3))
            estimator.publish(ContactEstimate())
            time.sleep(0.001)

    def last() -> DiagnosticStatus:
        return [s for m in told for s in m.status if s.name == "recorder"][-1]

    def report() -> tuple[bytes, int]:
        told.clear()
        assert graph.spin(lambda: sum(s.name == "recorder" for m in told for s in m.status) > 1)
        return last().level, int(next(v.value for v in last().values if v.key == "lost"))

    topics = ["/joint_states:sensor_msgs/msg/JointState", f"{estimates}:contact_estimation/msg/ContactEstimate"]
    with graph.start("recorder", {"bag": str(bag), "topics": topics}) as recorder:
        for topic in ("/joint_states", estimates):
            graph.wait_for_subscriber(topic)
        send(200)
        assert report() == (DiagnosticStatus.OK, 0)
        recorder.process.send_signal(signal.SIGSTOP)
        send(2000)
        recorder.process.send_signal(signal.SIGCONT)
        graph.spin(timeout=1.0)
        send(100)
        level, lost = report()
        assert level == DiagnosticStatus.WARN and lost > 500
        assert " of /joint_states, " in last().message and f" of {estimates})" in last().message
        assert recorder.stop() == 0, recorder.text()
        words = recorder.text()
    assert " of /joint_states, " in words.splitlines()[-1] and words.rstrip().endswith(f" of {estimates} lost")
    assert "two estimators" not in words
    stamps = open_recording(bag, arm.joint_names).stamps_ns
    first = recording.stamps_ns.tolist().index(stamps[0])
    missing = 2300 - first - len(stamps)
    of_states = int(words.split(" messages recorded, ")[1].split()[0])
    assert missing <= of_states <= 1.2 * missing, "the gripper lost some, too"
    for publisher in (states, gripper, estimator):
        graph.node.destroy_publisher(publisher)


def test_a_killed_recorder_leaves_what_it_flushed(graph, arm, tmp_path):
    bag, copy = write_bag(tmp_path / "bag", samples.recording(arm, 2000)), tmp_path / "copy"
    with graph.start(
        "recorder", {"bag": str(copy), "topics": ["/joint_states:sensor_msgs/msg/JointState"]}
    ) as recorder:
        graph.wait_for_subscriber(STATES)
        with graph.start("replay_driver", {"recording": str(bag), "keep_stamps": True}) as driver:
            written = copy / "copy.mcap"
            assert graph.spin(lambda: written.exists() and written.stat().st_size > 100_000), driver.text()
            recorder.process.kill()
            recorder.process.wait()
    with whole_bag(copy) as (path, lost):
        saved = open_recording(path, arm.joint_names)
    assert len(saved) > 100 and "was cut off" in lost
    whole = open_recording(bag, arm.joint_names)
    row = whole.stamps_ns.tolist().index(saved.stamps_ns[-1])
    np.testing.assert_array_equal(saved.tau[-1], whole.tau[row])


@pytest.mark.parametrize(
    "topics, words", [(["/joint_states"], "PACKAGE/msg/TYPE"), (["/a:no_msgs/msg/Thing"], "no_msgs")]
)
def test_recorder_refuses_unknown_types(graph, tmp_path, topics, words):
    with graph.start("recorder", {"bag": str(tmp_path / "bag"), "topics": topics}) as process:
        assert process.wait() == 2 and words in process.text()


@pytest.mark.parametrize("later", ["stays full", "has room again"])
def test_on_a_full_disk_the_recorder_says_so_and_disturbs_nobody(graph, arm, tmp_path, capsys, later):
    """A file that may not grow stands for the disk. The node goes on, as its end would end a launch."""
    copy = tmp_path / "copy"
    told = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    recorders = lambda: [s for m in told for s in m.status if s.name == "recorder"]  # noqa: E731
    given = {"bag": str(copy), "topics": ["/joint_states:sensor_msgs/msg/JointState"]}
    with graph.start("recorder", given) as recorder, graph.start("momentum_observer") as observer:
        graph.wait_for_subscriber(STATES, 2)
        with graph.start("simulated_driver", {"robot": "ur16e", "duration": 0.0}) as driver:
            assert graph.spin(lambda: any(int(s.values[1].value) > 100 for s in recorders())), driver.text()
            assert {s.level for s in recorders()} <= {DiagnosticStatus.OK, DiagnosticStatus.WARN}
            size = (copy / "copy.mcap").stat().st_size
            whole = resource.prlimit(recorder.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            assert graph.spin(lambda: recorders()[-1].level == DiagnosticStatus.ERROR), recorder.text()
            if later == "has room again":
                resource.prlimit(recorder.process.pid, resource.RLIMIT_FSIZE, whole)
            estimates = graph.watch(ContactEstimate, "/momentum_observer/contact_estimate", qos.SENSOR)
            assert graph.spin(lambda: len(estimates) > 200) and recorder.process.poll() is None
            said = "copy cannot be written (File too large): recording has ended"
            assert said in recorders()[-1].message and said in recorder.text()
            assert observer.process.poll() is None and driver.process.poll() is None
            assert recorder.stop() == 2 and "Traceback" not in recorder.text(), recorder.text()
            saved = int(recorder.text().rsplit(" messages recorded", 1)[0].split()[-1])
    assert main(["convert", str(copy), str(tmp_path / "saved.npz")]) == 0
    assert "was cut off" in capsys.readouterr().out
    assert len(open_recording(tmp_path / "saved.npz", arm.joint_names)) >= saved > 100


def test_a_bag_tells_the_robot_and_a_replay_driver_takes_it(graph, tmp_path):
    """From the recorder over DDS into a bag, and from the bag into ``replay_driver`` without ``robot:=``."""
    arm = load_arm("fr3")
    publisher = graph.node.create_publisher(JointState, "/joint_states", qos.VISUALIZATION)
    bag, stamps = tmp_path / "bag", itertools.count(1_000_000_000, 2_000_000)

    def publish() -> None:
        head, zeros = convert.header(next(stamps), "fr3_link0"), np.zeros(7)
        publisher.publish(convert.joint_state(head, arm.joint_names, 0.5 * (arm.lower + arm.upper), zeros, zeros))

    topics = ["/joint_states:sensor_msgs/msg/JointState"]
    with graph.start("recorder", {"bag": str(bag), "topics": topics, "robot": "fr3", "tool": "gripper"}) as recorder:
        written = bag / "bag.mcap"
        with graph.meanwhile(publish, 0.002):
            assert graph.spin(lambda: written.exists() and written.stat().st_size > 10_000), recorder.text()
        assert recorder.stop() == 0, recorder.text()
    graph.node.destroy_publisher(publisher)
    assert recorded_arm([bag]) == ("fr3", "gripper")
    states = graph.watch(JointState, "/joint_states")
    with graph.start("replay_driver", {"recording": str(bag), "complete": True}) as driver:
        assert driver.wait() == 0, driver.text()
        assert graph.spin(lambda: states, 5.0) and tuple(states[0].name) == tuple(arm.joint_names)
