"""Nodes as separate processes over real DDS: same numbers as offline, and nothing bad published as good."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import subprocess
import sys
import time

import arm_samples as samples
import numpy as np
import pytest
from contact_estimation.msg import ContactEstimate
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from test_messages import assert_same
from visualization_msgs.msg import MarkerArray

from contact_estimation.filters.registry import open_stream
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.open import open_recording
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos
from contact_estimation.ros.processes import NodeProcess

STATES = "/joint_states"
#: A replay of which nothing is lost, however busy the machine is.
WHOLE = {"keep_stamps": True, "complete": True}
#: [Hz] Markers are drawn at most as often.
DRAWN = 15.0


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def offline(recording, observer: str, sensors: str) -> list:
    stream = open_stream("ur16e", observer, sensors)
    return [
        stream.push(int(ns), *rows) for ns, *rows in zip(recording.stamps_ns, recording.q, recording.dq, recording.tau)
    ]


def assert_close(a, b) -> None:
    """Two estimates agree to 1e-9, relative to the size of what is compared."""
    for name in ("q", "dq", "tau_ext", "force_base", "force_tcp", "torque_tcp", "force_covariance"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-9, atol=1e-9, err_msg=name)
    assert len(a.contacts) == len(b.contacts) and (a.valid, a.reason, a.mode) == (b.valid, b.reason, b.mode)
    for one, other in zip(a.contacts, b.contacts):
        for name in ("stiffness", "rest", "point_tcp", "point_base", "covariance"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-9, err_msg=name)


#: Node -> its executable and observer: they all hear the same replay.
NODES = {
    "estimator": ("estimator", "contact_imm"),
    "second": ("estimator", "ekf"),
    "momentum_observer": ("momentum_observer", "momentum"),
}


@contextlib.contextmanager
def listeners(graph):
    """Every node of :data:`NODES` as a process of its own, once it listens; ends them with Ctrl-C."""
    with contextlib.ExitStack() as stack:
        processes = {}
        for name, (executable, observer) in NODES.items():
            parameters = {"observer": observer, "sensors": "joint_torque", "complete": True}
            parameters["visualization_rate"] = DRAWN
            processes[name] = stack.enter_context(graph.start(executable, parameters, remap={"__node": name}))
        for name in NODES:
            graph.wait_for_publisher(f"/{name}/contact_estimate")
        yield
        for process in processes.values():
            assert process.stop() == 0, process.text()


def test_nodes_equal_offline_replay(graph, arm, tmp_path):
    """Replay driver and estimators as processes of their own, against the library on the same bag, by the sample."""
    recording = samples.recording(arm, 600)
    bag = write_bag(tmp_path / "bag", recording)
    got = {name: graph.watch(ContactEstimate, f"/{name}/contact_estimate", qos.COMPLETE) for name in NODES}
    wrenches = {name: graph.watch(WrenchStamped, f"/{name}/external_wrench") for name in NODES}
    markers = {name: graph.watch(MarkerArray, f"/{name}/markers", qos.VISUALIZATION) for name in NODES}
    began = time.monotonic()
    source = {"recording": str(bag), **WHOLE, "wait_for": list(NODES)}
    with listeners(graph), graph.start("replay_driver", source) as driver:
        assert graph.spin(lambda: all(len(messages) == len(recording) for messages in got.values())), driver.text()
        assert driver.wait() == 0, driver.text()
    for name, (_, observer) in NODES.items():
        assert [convert.stamp_ns(message.header.stamp) for message in got[name]] == recording.stamps_ns.tolist()
        expected = offline(open_recording(bag, arm.joint_names), observer, "joint_torque")
        for message, estimate in zip(got[name], expected):
            assert_close(convert.from_contact_estimate(message), estimate)
            assert message.header.frame_id == arm.base_frame and message.tcp_frame == arm.tcp_frame
            assert message.max_age == 0.0, "recorded estimates do not grow old"
        assert np.isfinite(expected[-1].force_tcp).all() and expected[-1].valid
        by_stamp = {convert.stamp_ns(m.header.stamp): m for m in wrenches[name]}
        assert len(by_stamp) > 100 and {m.header.frame_id for m in wrenches[name]} == {arm.tcp_frame}
        force = convert.xyz(by_stamp[max(by_stamp)].wrench.force)
        row = recording.stamps_ns.tolist().index(max(by_stamp))
        np.testing.assert_allclose(force, expected[row].force_tcp, rtol=1e-9)
        assert 0 < len(markers[name]) <= 1 + DRAWN * (time.monotonic() - began), "markers are decimated"
        drawn = [convert.stamp_ns(message.markers[-1].header.stamp) for message in markers[name]]
        assert drawn == sorted(drawn) and set(drawn) <= set(recording.stamps_ns.tolist())


class Feed:
    """A running estimator, fed by hand; every sample gets the next stamp."""

    def __init__(self, graph, arm, process):
        self.graph, self.arm, self.process = graph, arm, process
        self.estimates = graph.watch(ContactEstimate, "/estimator/contact_estimate")
        self.diagnostics = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
        self.wrenches = graph.watch(WrenchStamped, "/estimator/external_wrench")
        self._publisher = graph.node.create_publisher(JointState, STATES, qos.VISUALIZATION)
        self._recording = samples.recording(arm, 4000)
        self._rows = itertools.cycle(range(len(self._recording)))
        self.stamp = samples.START_NS

    def sample(self, advance_ns: int = samples.PERIOD_NS) -> JointState:
        """The next good sample."""
        row = next(self._rows)
        self.stamp += advance_ns
        recording = self._recording
        return convert.joint_state(
            convert.header(self.stamp, "base_link"),
            self.arm.joint_names,
            recording.q[row],
            recording.dq[row],
            recording.tau[row],
        )

    def send(self, message: JointState) -> ContactEstimate:
        """Publish and return the answer, which has the sample's stamp."""
        before = len(self.estimates)
        self._publisher.publish(message)

        def answers() -> list[ContactEstimate]:
            return [e for e in self.estimates[before:] if e.header.stamp == message.header.stamp]

        assert self.graph.spin(answers), self.process.text()
        return answers()[-1]

    def settle(self) -> ContactEstimate:
        """The first valid answer: an observer that restarts while the arm moves settles for a while."""
        for _ in range(300):
            answer = self.send(self.sample())
            if answer.valid:
                break
        return answer

    def begin(self) -> None:
        """Return once a sample was answered: both ends have discovered each other."""

        def answered() -> bool:
            self._publisher.publish(self.sample())
            return bool(self.estimates)

        assert self.graph.spin(answered), self.process.text()

    def wrench_at(self, stamp_ns: int) -> bool:
        """Whether a wrench was published for that sample."""
        return any(convert.stamp_ns(message.header.stamp) == stamp_ns for message in self.wrenches)

    def told(self, words: str) -> bool:
        """Whether diagnostics said so."""
        return self.graph.spin(
            lambda: any(
                words in status.message or any(words in value.value for value in status.values)
                for array in self.diagnostics
                for status in array.status
            )
        )


@pytest.fixture(scope="module")
def running(graph, arm):
    with graph.start(
        "estimator", {"observer": "ekf", "sensors": "joint_torque", "diagnostics_rate": 5.0, "max_age": 0.0}
    ) as process:
        graph.wait_for_publisher("/estimator/contact_estimate")
        feed = Feed(graph, arm, process)
        graph.wait_for_subscriber(STATES)
        graph.wait_for_publisher("/diagnostics")
        feed.begin()
        yield feed
        assert process.stop() == 0, process.text()


@pytest.fixture
def feed(running):
    """The running estimator after some good samples."""
    running.graph.call(Trigger, "/estimator/reset")
    answer = running.settle()
    assert answer.valid, answer.reason
    running.diagnostics.clear()
    return running


def misspelt(message):
    message.name = [name.replace("elbow_joint", "elbow_jont") for name in message.name]


def one_joint_less(message):
    message.name = list(message.name)[:-1]
    for field in ("position", "velocity", "effort"):
        setattr(message, field, getattr(message, field)[:-1])


def no_effort(message):
    message.effort = []


def put(field, value):
    def change(message):
        getattr(message, field)[1] = value

    return change


def no_stamp(message):
    message.header.stamp.sec = message.header.stamp.nanosec = 0


@pytest.mark.parametrize(
    "spoil, words",
    [
        (misspelt, "no joint 'elbow_joint' (nearest there: 'elbow_jont')"),
        (one_joint_less, "no joint 'wrist_3_joint'"),
        (no_effort, "effort has 0 entries for 6 joint names"),
        (put("position", float("nan")), "not finite: position of shoulder_lift_joint"),
        (put("effort", float("inf")), "not finite: torque of shoulder_lift_joint"),
        (put("effort", 5000.0), "torque is beyond"),
        (put("position", 3.0), "velocity limit"),
        (no_stamp, "header.stamp is zero"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_bad_sample_is_invalid_told_and_survived(feed, spoil, words):
    message = feed.sample()
    spoil(message)
    answer = feed.send(message)
    assert not answer.valid and words in answer.reason
    assert feed.told(words)
    assert feed.settle().valid and feed.process.running
    assert feed.graph.spin(lambda: feed.wrench_at(feed.stamp))
    assert not feed.wrench_at(convert.stamp_ns(message.header.stamp)), "a bad number reached a topic without validity"


@pytest.mark.parametrize(
    "advance_ns, words",
    [(0, "came again"), (-500_000_000, "time went back by 0.500 s"), (700_000_000, "a gap of 0.700 s")],
)
def test_bad_time_is_invalid_told_and_survived(feed, advance_ns, words):
    answer = feed.send(feed.sample(advance_ns))
    assert not answer.valid and words in answer.reason
    assert feed.told(words)
    assert feed.settle().valid and feed.process.running


def test_a_sample_of_the_past_is_invalid_and_told(feed):
    def limit(seconds: float) -> None:
        value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=seconds)
        request = SetParameters.Request(parameters=[Parameter(name="max_age", value=value)])
        assert feed.graph.call(SetParameters, "/estimator/set_parameters", request).results[0].successful

    limit(0.2)
    answer = feed.send(feed.sample())
    limit(0.0)
    assert not answer.valid and "s old, allowed is max_age 0.2 s" in answer.reason
    assert answer.max_age == 0.2, "the message tells its own horizon"
    assert feed.told("s old, allowed is max_age")
    assert feed.settle().valid


def test_the_state_goes_stale_by_itself(feed):
    states = feed.graph.watch(String, "/estimator/contact_state", qos.LATCHED)
    assert feed.graph.spin(lambda: states and states[-1].data == "stale")
    seen = len(states)

    def fresh() -> bool:
        feed.send(feed.sample())
        return any(state.data != "stale" for state in states[seen:])

    assert feed.graph.spin(fresh)


def test_current_where_torque_is_configured(feed):
    """Torque becomes current in mid run, and torque again: named within a second of motion, then forgiven."""
    gain = feed.arm.motor.drive_gain

    def until(valid: bool, factor: np.ndarray) -> ContactEstimate:
        for _ in range(500):
            message = feed.sample()
            message.effort = (np.array(message.effort) * factor).tolist()
            answer = feed.send(message)
            if answer.valid == valid:
                break
        return answer

    answer = until(False, 1 / gain)
    assert not answer.valid and "current" in answer.reason
    assert feed.told("current")
    assert until(True, np.ones(6)).valid and feed.process.running


def test_other_joints_beside_a_working_stream_are_ignored(feed):
    gripper = JointState(header=convert.header(feed.stamp + 1, ""), name=["finger_joint"], position=[0.0])
    count = len(feed.estimates)
    feed._publisher.publish(gripper)
    feed.graph.spin(timeout=0.2)
    assert len(feed.estimates) == count
    assert feed.settle().valid


def test_zero_is_measured_and_told(feed):
    """A torque offset on the shoulder, arm still: after zeroing it is gone from the torque the observer gets."""
    standing = feed.sample()  # the arm stops where it is: one that jumped elsewhere would not be zeroed
    assert feed.send(standing).valid
    response = feed.graph.call(Trigger, "/estimator/zero")
    assert response.success
    offset = np.array([0.0, 6.0, 0.0, 0.0, 0.0, 0.0])
    q = np.array(standing.position)
    for _ in range(260):
        feed.stamp += samples.PERIOD_NS
        feed.send(
            convert.joint_state(
                convert.header(feed.stamp, ""), feed.arm.joint_names, q, np.zeros(6), feed.arm.gravity(q) + offset
            )
        )
    assert feed.told("zeroed: offset 0.00, 6.00, 0.00, 0.00, 0.00, 0.00 Nm")
    feed.graph.call(Trigger, "/estimator/reset")


def test_unknown_parameter_ends_the_node(graph):
    with graph.start("estimator", {"observr": "ekf"}) as process:
        assert process.wait() == 2
        assert "unknown key 'observr'; the nearest known key is 'observer'" in process.text()


def test_replay_driver_names_what_is_missing(graph):
    with graph.start("replay_driver", {"recording": "/no/such/bag"}) as process:
        assert process.wait() == 2
        assert "there is no such file" in process.text()


def test_loop_with_kept_stamps_restarts_the_observer(graph, arm, tmp_path):
    bag = write_bag(tmp_path / "bag", samples.recording(arm, 100))
    got = graph.watch(ContactEstimate, "/looping/contact_estimate", qos.COMPLETE)
    with graph.start("estimator", {"sensors": "joint_torque", "complete": True}, remap={"__node": "looping"}):
        graph.wait_for_publisher("/looping/contact_estimate")
        with graph.start("replay_driver", {"recording": str(bag), **WHOLE, "loop": True}) as driver:
            assert graph.spin(lambda: len(got) > 350), driver.text()
    reasons = [message.reason for message in got if not message.valid]
    assert any("time went back" in reason for reason in reasons)
    assert all("time went back" in reason or "it settles" in reason for reason in reasons)
    again = [m for m in got if convert.stamp_ns(m.header.stamp) == samples.START_NS + 50 * samples.PERIOD_NS]
    whole = again[-2:]  # the first loop may begin before the estimator listens
    assert_same(*(dataclasses.replace(convert.from_contact_estimate(m), reason="") for m in whole))


def test_driver_and_estimator_in_one_process(graph, arm, tmp_path):
    recording = samples.recording(arm, 1500)  # long enough that slow discovery costs only its begin
    bag = write_bag(tmp_path / "bag", recording)
    parameters = {
        "driver": "replay",
        "recording": str(bag),
        **WHOLE,
        "sensors": "joint_torque",
        "observer": "momentum",
        "wait_for_subscribers": 1,
    }
    states = graph.watch(JointState, STATES)
    got = graph.watch(ContactEstimate, "/alone/contact_estimate", qos.COMPLETE)
    with graph.start("combined", parameters, remap={"__node": "alone"}) as process:
        assert graph.spin(lambda: not process.running), process.text()
        assert process.wait() == 0, process.text()
    # The node starts with its first listener on joint_states; the estimates' listener may be matched a little later.
    expected = dict(zip(recording.stamps_ns.tolist(), offline(recording, "momentum", "joint_torque")))
    # What came before the node ended may still wait in the queue of this listener.
    assert graph.spin(lambda: bool(got) and convert.stamp_ns(got[-1].header.stamp) == recording.stamps_ns[-1])
    assert len(states) > 100 and len(got) > 50
    for message in got:
        assert_close(convert.from_contact_estimate(message), expected[convert.stamp_ns(message.header.stamp)])


@pytest.mark.parametrize("early", [True, False])
def test_signal_ends_a_node_cleanly(graph, early):
    """While it runs, and while it is still being made."""
    with graph.start("momentum_observer", {"sensors": "joint_torque"}) as process:
        assert isinstance(process, NodeProcess)
        graph.wait_for_publisher("/momentum_observer/contact_estimate")
        assert early or graph.spin(lambda: "backend" in process.text())
        process.process.terminate()
        assert process.wait() == 0 and "Traceback" not in process.text(), process.text()


@pytest.mark.parametrize("signals", [1, 2])
def test_a_node_that_is_interrupted_while_it_starts_leaves_the_graph(graph, signals):
    """At once: what is left without a word keeps its name until its lease ends, after 20 s. A launch repeats Ctrl-C."""
    here = lambda: "interrupted" in graph.node.get_node_names()  # noqa: E731
    with graph.start("estimator", remap={"__node": "interrupted"}) as process:
        assert graph.spin(here), process.text()
        for _ in range(signals):
            process.process.terminate()
            time.sleep(0.005)
        assert process.wait() == 0 and "Traceback" not in process.text(), process.text()
    assert graph.spin(lambda: not here(), 10.0)


SWALLOWED = """
import signal, sys
from contact_estimation.ros.executor import run

def make_node():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as stop:
        raise ImportError("initialization failed") from stop

sys.exit(run(make_node))
"""


def test_an_interrupt_that_an_import_replaces_ends_a_start_quietly():
    """As modules written in C do."""
    end = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True, timeout=120)
    assert end.returncode == 0 and "Traceback" not in end.stderr, end.stderr
