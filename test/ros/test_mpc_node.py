"""The MPC node as a process over real DDS: a lifecycle, an equilibrium pose, and a fallback that says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import yaml
from contact_estimation.msg import ContactEstimate, MpcPrediction
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped, WrenchStamped
from lifecycle_msgs.msg import Transition, TransitionEvent
from lifecycle_msgs.srv import GetState
from rclpy.serialization import serialize_message
from visualization_msgs.msg import MarkerArray

from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos
from contact_estimation.settings import find_config

START = np.array([0.0, -0.7853981, 0.0, -2.3561944, 0.0, 1.5707963, 0.7853981])


@pytest.fixture(scope="module")
def arm():
    return load_arm("fr3")


def estimate(arm, valid: bool = True, push: float = 0.0) -> Estimate:
    """Return an estimate of a standing arm with ``push`` [N] along base z."""
    position, rotation = arm.tcp_pose(START)
    local = np.array([0.0, 0.0, 0.10])
    tip = position + rotation @ local
    contact = ContactState("contact_1", 1.0, np.array([0.0, 0.0, 1000.0]), tip, local, tip, np.zeros((9, 9)))
    return Estimate(
        t=0.0,
        q=START,
        dq=np.zeros(7),
        tau_ext=np.zeros(7),
        force_base=np.array([0.0, 0.0, push]),
        force_tcp=rotation.T @ [0.0, 0.0, push],
        torque_tcp=np.zeros(3),
        force_covariance=np.eye(3),
        contacts=(contact,),
        mode="contact" if push else "free",
        modes={"contact": float(push > 0), "free": float(push == 0)},
        valid=valid,
        reason="" if valid else "a test says so",
    )


def message(arm, stamp_ns: int, valid: bool = True, push: float = 0.0) -> ContactEstimate:
    """Return that estimate as an estimator publishes it."""
    head = convert.header(stamp_ns, arm.base_frame)
    return convert.contact_estimate(estimate(arm, valid, push), head, arm.tcp_frame, arm.joint_names, "test")


def asked(poses, arm) -> float:
    """Return the force [N] that the newest equilibrium asks for, none where there is no command yet."""
    position, _ = arm.tcp_pose(START)
    return 700.0 * np.linalg.norm(convert.xyz(poses[-1].pose.position) - position) if poses else 0.0


@pytest.fixture
def task(tmp_path) -> str:
    """Return the shipped task, with deadlines that a machine busy with other work meets."""
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
    valid = True

    def feed() -> None:  # an estimator that never pauses: while services are called, too
        publish(message(arm, graph.now_ns(), valid))

    def push() -> float:
        return asked(poses, arm)

    with graph.start("mpc", {"robot": "fr3", "task": task, "diagnostics_rate": 5.0}) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        assert not graph.change("mpc", Transition.TRANSITION_ACTIVATE)  # no estimate yet
        with graph.meanwhile(feed):
            assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
            assert graph.spin(lambda: push() > 1.0 and len(predictions) > 5 and len(markers) > 5), process.text()
            active = [m for m in predictions if m.state == "active"]
            assert active and active[-1].solver == "rti" and len(active[-1].positions) == 16
            assert active[-1].solve_time > 0
            assert poses[-1].header.frame_id == arm.base_frame and push() <= 20.0  # it presses, within the limit

            valid = False
            assert graph.spin(lambda: any(m.state == "holding" and "a test says so" in m.reason for m in predictions))
            held = len(poses)
            assert graph.spin(lambda: len(poses) > held and push() < 0.1), process.text()  # it no longer pushes
            assert graph.spin(lambda: any("holding until" in s.message for a in diagnostics for s in a.status))

            assert graph.change("mpc", Transition.TRANSITION_DEACTIVATE)
            ended = graph.now_ns()
            graph.spin(timeout=0.5)
            assert not [m for m in poses if convert.stamp_ns(m.header.stamp) > ended], "deactivated: silent"
        assert process.stop() == 0, process.text()


@pytest.fixture
def press(graph, arm):
    """Return functions that send an estimate of a press with 5 N, and that tell the commands' push; the commands."""
    poses = graph.watch(PoseStamped, "/mpc/equilibrium_pose", qos.COMMANDS)
    publish = graph.node.create_publisher(ContactEstimate, "/estimator/contact_estimate", qos.VISUALIZATION).publish
    return lambda: publish(message(arm, graph.now_ns(), True, 5.0)), lambda: asked(poses, arm), poses


def test_what_it_commands_last_is_where_the_arm_is(graph, press, task):
    """Deactivated or ended by a signal in a press: an arm that keeps its last equilibrium must not push for ever."""
    feed, push, _ = press
    with graph.start("mpc", {"robot": "fr3", "task": task}) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            for ends in ("deactivated", "a signal"):
                assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
                assert graph.spin(lambda: push() > 1.0), process.text()
                if ends == "deactivated":
                    assert graph.change("mpc", Transition.TRANSITION_DEACTIVATE)
                else:
                    assert process.stop() == 0, process.text()
                assert graph.spin(lambda: push() < 0.1, 10.0), ends


class FakeDriver:
    """The life cycle of a driver: a service that tells its state, and its transitions."""

    def __init__(self, node, label: str) -> None:
        self.label, self.asked = label, 0
        self._node, self._service = node, node.create_service(GetState, "/driver/get_state", self._answer)
        self._tell = node.create_publisher(TransitionEvent, "/driver/transition_event", qos.VISUALIZATION).publish

    def _answer(self, request: GetState.Request, response: GetState.Response) -> GetState.Response:
        response.current_state.label = self.label
        self.asked += 1
        return response

    def change(self, label: str) -> None:
        """Make a transition."""
        event = TransitionEvent()
        event.goal_state.label = self.label = label
        self._tell(event)

    def vanish(self) -> None:
        """End without a transition, as a process that was killed."""
        self._node.destroy_service(self._service)


def test_it_holds_while_the_driver_executes_nothing(graph, press, task):
    """A protective stop ends the driver's activity: what integrates must not grow until commands count again."""
    driver = FakeDriver(graph.node, "active")
    feed, push, _ = press
    with graph.start("mpc", {"robot": "fr3", "task": task, "controller": "pi", "executor": "driver"}) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
            assert graph.spin(lambda: push() > 1.0), process.text()
            driver.change("inactive")
            assert graph.spin(lambda: push() < 0.1), process.text()
            driver.change("active")
            assert graph.spin(lambda: push() > 1.0), process.text()
        assert process.stop() == 0, process.text()
    driver.vanish()


def test_it_asks_the_driver_whose_transitions_it_did_not_hear(graph, press, task):
    """The driver was configured before the MPC began to listen, and ends without a word."""
    driver = FakeDriver(graph.node, "inactive")
    feed, push, poses = press
    with graph.start("mpc", {"robot": "fr3", "task": task, "controller": "pi", "executor": "driver"}) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
            answered, most = driver.asked, []
            assert graph.spin(lambda: most.append(push()) or (driver.asked > answered + 1 and len(poses) > 50))
            assert max(most) < 0.1, process.text()  # it stands, from its first command on
            driver.label = "active"
            assert graph.spin(lambda: push() > 1.0), process.text()
            driver.vanish()
            assert graph.spin(lambda: push() < 0.1), process.text()
        assert process.stop() == 0, process.text()


def test_a_fallback_is_for_the_present_and_a_plan_for_the_time_of_its_estimate(graph, arm, task):
    """The driver refuses what is for the past; a hold without a new estimate must reach the arm all the same."""
    poses = graph.watch(PoseStamped, "/mpc/equilibrium_pose", qos.COMMANDS)
    predictions = graph.watch(MpcPrediction, "/mpc/prediction", qos.VISUALIZATION)
    publish = graph.node.create_publisher(ContactEstimate, "/estimator/contact_estimate", qos.VISUALIZATION).publish
    stamps = []

    def feed() -> None:
        stamps.append(graph.now_ns())
        publish(message(arm, stamps[-1], True, 5.0))

    with graph.start("mpc", {"robot": "fr3", "task": task}) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
            assert graph.spin(lambda: len(poses) > 5), process.text()
            assert convert.stamp_ns(poses[-1].header.stamp) in stamps
        assert graph.spin(lambda: any(m.state == "holding" for m in predictions)), process.text()
        poses.clear()
        assert graph.spin(lambda: len(poses) > 5), process.text()
        assert convert.stamp_ns(poses[-1].header.stamp) > stamps[-1] + 4_000_000_000


def test_a_second_estimator_is_told_and_not_planned_from(graph, arm, task):
    """Two of one observer on one topic: what the second says, here that it is not valid, changes no plan."""
    poses = graph.watch(PoseStamped, "/mpc/equilibrium_pose", qos.COMMANDS)
    predictions = graph.watch(MpcPrediction, "/mpc/prediction", qos.VISUALIZATION)
    diagnostics = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    topic = "/estimator/contact_estimate"
    first, second = (graph.node.create_publisher(ContactEstimate, topic, qos.VISUALIZATION) for _ in range(2))
    both = False

    def feed() -> None:
        head = convert.header(graph.now_ns(), arm.base_frame)
        for publisher, valid in ((first, True), (second, False)) if both else ((first, True),):
            seen = estimate(arm, valid, 5.0)
            publisher.publish(convert.contact_estimate(seen, head, arm.tcp_frame, arm.joint_names, "contact_imm"))

    def push() -> float:
        return asked(poses, arm)

    def told() -> bool:
        states = [s for m in diagnostics for s in m.status if s.name.startswith("mpc")]
        return any(s.level == DiagnosticStatus.ERROR and "of a second estimator on" in s.message for s in states)

    with graph.start("mpc", {"robot": "fr3", "task": task, "diagnostics_rate": 5.0}) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
            assert graph.spin(lambda: push() > 1.0), process.text()
            assert not told()
            both, predictions[:] = True, []
            assert graph.spin(told), process.text()
            assert graph.spin(lambda: len(predictions) > 20), process.text()
            assert {m.state for m in predictions} == {"active"} and push() > 1.0
        assert process.stop() == 0, process.text()
    for publisher in (first, second):
        graph.node.destroy_publisher(publisher)


def test_a_plan_with_another_contact_than_the_estimate_is_logged_and_reported_at_every_activation(graph, arm, task):
    diagnostics = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    publish = graph.node.create_publisher(ContactEstimate, "/estimator/contact_estimate", qos.VISUALIZATION).publish

    def feed() -> None:
        told = message(arm, graph.now_ns(), True, 5.0)
        told.contacts[0].stiffness.x = 2000.0
        publish(told)

    def reported() -> bool:
        states = [s for m in diagnostics for s in m.status if s.name.startswith("mpc")]
        return any(s.level == DiagnosticStatus.WARN and "but planned with stiffness" in s.message for s in states)

    with graph.start("mpc", {"robot": "fr3", "task": task, "diagnostics_rate": 5.0}) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            for times in (1, 2):
                assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
                assert graph.spin(reported), process.text()
                assert process.text().count("but planned with stiffness") == times
                assert graph.change("mpc", Transition.TRANSITION_DEACTIVATE)
                graph.spin(timeout=0.5)
                diagnostics.clear()
        assert process.stop() == 0, process.text()


def test_an_estimate_that_cannot_be_read_or_planned_from_ends_the_push_and_not_the_node(graph, arm, task):
    """Bytes of another message, and a contact without stiffness: the last push may not stay in force."""
    poses = graph.watch(PoseStamped, "/mpc/equilibrium_pose")
    predictions = graph.watch(MpcPrediction, "/mpc/prediction", qos.VISUALIZATION)
    publish = graph.node.create_publisher(ContactEstimate, "/estimator/contact_estimate", qos.VISUALIZATION).publish
    kind = "good"

    def feed() -> None:
        told = message(arm, graph.now_ns(), True, 5.0)
        if kind == "soft":
            told.contacts[0].stiffness.z = 0.0
        raw = serialize_message(told)
        publish(raw[:200] if kind == "cut" else raw)

    def push() -> float:
        return asked(poses, arm)

    with graph.start("mpc", {"robot": "fr3", "task": task}) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
            for bad, words in (("cut", "200 bytes are no ContactEstimate"), ("soft", "stiffness of contact_1 is zero")):
                kind = "good"
                assert graph.spin(lambda: push() > 1.0), process.text()
                kind = bad
                assert graph.spin(lambda w=words: any(m.state == "holding" and w in m.reason for m in predictions))
                assert graph.spin(lambda: push() < 0.1), process.text()
        assert process.stop() == 0, process.text()


class WristRig:
    """A still arm whose wrist sensor and estimates have a force along z of the base [N], and the commanded push."""

    def __init__(self, graph, arm, poses) -> None:
        self._arm, self._poses = arm, poses
        self._felt = graph.node.create_publisher(ContactEstimate, "/estimator/contact_estimate", qos.VISUALIZATION)
        self._sensed = graph.node.create_publisher(WrenchStamped, "/wrist", qos.VISUALIZATION)
        self._position, self._rotation = arm.tcp_pose(START)

    def sense(self, stamp_ns: int, force: float) -> None:
        """Publish a reading of the sensor."""
        tip = convert.header(stamp_ns, self._arm.tcp_frame)
        self._sensed.publish(convert.wrench_stamped(tip, self._rotation.T @ [0.0, 0.0, force], np.zeros(3)))

    def feel(self, stamp_ns: int, force: float, positions: bool = True) -> None:
        """Publish an estimate, with or without joint positions."""
        arm, head = self._arm, convert.header(stamp_ns, self._arm.base_frame)
        told = estimate(arm, True, force)
        told = told if positions else replace(told, q=np.zeros(0))
        self._felt.publish(convert.contact_estimate(told, head, arm.tcp_frame, arm.joint_names, "test"))

    def pull(self) -> float:
        """Return the force of the commanded spring [N]."""
        return 700.0 * (self._poses[-1].pose.position.z - self._position[2]) if self._poses else 0.0


def test_the_wrist_sensor_replaces_the_force_of_the_estimates_without_its_offset(graph, arm, task):
    """The estimates feel 6 N where the sensor feels 10 N, the wanted force, and 4 N of offset."""
    poses = graph.watch(PoseStamped, "/mpc/equilibrium_pose")
    predictions = graph.watch(MpcPrediction, "/mpc/prediction", qos.VISUALIZATION)
    rig = WristRig(graph, arm, poses)
    felt, sensed, fed = 0.0, 4.0, 0

    def feed() -> None:
        nonlocal fed
        fed += 1
        if sensed is not None:
            rig.sense(graph.now_ns(), sensed)
        rig.feel(graph.now_ns(), felt)

    given = {"robot": "fr3", "task": task, "controller": "pi", "wrench": "wrist"}
    with graph.start("mpc", given) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            assert graph.spin(lambda: fed > 100)  # free space: the offset is learnt
            felt, sensed = 6.0, 14.0
            assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
            active = len(poses)
            assert graph.spin(lambda: len(poses) > active + 25), process.text()
            assert rig.pull() == pytest.approx(-10.0, abs=1.0)  # by the estimates alone it would push ever harder
            sensed = None
            assert graph.spin(lambda: any("wrist sensor" in m.reason for m in predictions)), process.text()
        assert process.stop() == 0, process.text()


def test_an_estimate_without_positions_or_force_ends_the_push_and_not_a_node_with_a_wrist_sensor(graph, arm, task):
    """It never reaches the filter of the sensor, which knows its offset afterwards, too."""
    poses = graph.watch(PoseStamped, "/mpc/equilibrium_pose", qos.COMMANDS)
    predictions = graph.watch(MpcPrediction, "/mpc/prediction", qos.VISUALIZATION)
    rig = WristRig(graph, arm, poses)
    kind, fed = "good", 0

    def feed() -> None:
        nonlocal fed
        fed += 1
        rig.sense(graph.now_ns(), 4.0 + 0.001 * (fed % 7))
        rig.feel(graph.now_ns(), np.nan if kind == "no force" else 0.0, kind != "no positions")

    given = {"robot": "fr3", "task": task, "controller": "pi", "wrench": "wrist"}
    with graph.start("mpc", given) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            assert graph.spin(lambda: fed > 100)
            assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
            for bad, words in (("no positions", "has 0 joint positions"), ("no force", "estimate not finite")):
                kind = "good"
                assert graph.spin(lambda: rig.pull() < -1.0), process.text()
                kind = bad
                assert graph.spin(lambda w=words: any(m.state == "holding" and w in m.reason for m in predictions))
                assert graph.spin(lambda: abs(rig.pull()) < 0.1), process.text()
            kind = "good"
            assert graph.spin(lambda: rig.pull() < -1.0), process.text()
        assert process.stop() == 0, process.text()


def test_a_wrist_sensor_that_is_zeroed_after_its_offset_was_learnt_is_told_and_keeps_its_force(graph, arm, task):
    """Its 12 N of free space become 0 from one sample to the next: with the old offset 10 N would count as -2 N."""
    poses = graph.watch(PoseStamped, "/mpc/equilibrium_pose", qos.COMMANDS)
    rig = WristRig(graph, arm, poses)
    felt, sensed, before, fed = 0.0, 12.0, 12.0, 0

    def feed() -> None:
        nonlocal before, fed
        fed, now = fed + 1, graph.now_ns()
        for late, force in ((2_000_000, before), (0, sensed)):
            rig.sense(now - late, force)
        before = sensed
        rig.feel(now, felt)

    with graph.start("mpc", {"robot": "fr3", "task": task, "controller": "pi", "wrench": "wrist"}) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            assert graph.spin(lambda: fed > 200)
            sensed = 0.0
            assert graph.spin(lambda: "'wrist' jumped by 12.0 N to zero" in process.text()), process.text()
            felt, sensed = 6.0, 10.0
            assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
            active = len(poses)
            assert graph.spin(lambda: len(poses) > active + 25), process.text()
            assert rig.pull() == pytest.approx(-10.0, abs=1.0)
        assert process.stop() == 0, process.text()


def test_a_frozen_wrist_sensor_is_told_and_not_used(graph, arm, task):
    """It repeats the 4 N of free space while the estimates feel the contact: by it the push would grow for ever."""
    poses = graph.watch(PoseStamped, "/mpc/equilibrium_pose", qos.COMMANDS)
    predictions = graph.watch(MpcPrediction, "/mpc/prediction", qos.VISUALIZATION)
    rig = WristRig(graph, arm, poses)
    felt, sensed, fed = 0.0, 4.0, 0

    def feed() -> None:
        nonlocal fed
        fed += 1
        rig.sense(graph.now_ns(), sensed)
        rig.feel(graph.now_ns(), felt)

    with graph.start("mpc", {"robot": "fr3", "task": task, "controller": "pi", "wrench": "wrist"}) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            assert graph.spin(lambda: fed > 100)
            assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
            assert graph.spin(lambda: rig.pull() < -1.0), process.text()
            felt = 10.0
            said = "'wrist' repeats one reading although"
            assert graph.spin(lambda: any(said in m.reason for m in predictions)), process.text()
            assert graph.spin(lambda: abs(rig.pull()) < 0.1), process.text()
            sensed = 14.0
            assert graph.spin(lambda: rig.pull() < -5.0), process.text()
        assert process.stop() == 0, process.text()


def test_a_task_in_steps_goes_on_when_touched_and_stands_still_at_a_fault(graph, arm, task, tmp_path):
    poses = graph.watch(PoseStamped, "/mpc/equilibrium_pose")
    publish = graph.node.create_publisher(ContactEstimate, "/estimator/contact_estimate", qos.VISUALIZATION).publish
    steps = [
        {"name": "approach", "controller": "feedforward", "path": [0.0, 0.0, -0.01], "until": "touched", "limit": 60.0},
        {"name": "press", "controller": "pi", "force": [0.0, 0.0, 10.0], "until": "settled", "limit": 60.0},
    ]
    sequence = tmp_path / "steps.yaml"
    sequence.write_text(yaml.safe_dump({"task": task, "steps": steps}))
    position, _ = arm.tcp_pose(START)
    felt, valid = 0.0, True

    def feed() -> None:
        publish(message(arm, graph.now_ns(), valid, felt))

    def pull() -> float:
        return 700.0 * (poses[-1].pose.position.z - position[2]) if poses else 0.0

    with graph.start("mpc", {"robot": "fr3", "task": str(sequence)}) as process:
        assert graph.change("mpc", Transition.TRANSITION_CONFIGURE), process.text()
        with graph.meanwhile(feed):
            assert graph.spin(lambda: graph.change("mpc", Transition.TRANSITION_ACTIVATE)), process.text()
            assert graph.spin(lambda: pull() < -0.5), process.text()  # it approaches
            felt = 5.0
            assert graph.spin(lambda: pull() < -8.0), process.text()  # it presses
            assert "step 'approach' ended: touched" in process.text()
            valid = False
            assert graph.spin(lambda: abs(pull()) < 0.1), process.text()
            assert graph.spin(lambda: "step 'press' ended: holding until activated again" in process.text())
            valid, held = True, len(poses)
            assert graph.spin(lambda: len(poses) > held + 50) and abs(pull()) < 0.1, process.text()
        assert process.stop() == 0, process.text()
