"""The driver node as a process: samples and truth on topics; commands only while active, ended by a dead estimator."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import rclpy
from contact_estimation.msg import ContactEstimate
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped, WrenchStamped
from lifecycle_msgs.msg import State, Transition
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from contact_estimation.control.safety import SafetyState
from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.drivers.registry import make_backend
from contact_estimation.exceptions import ConfigError, ContactEstimationError
from contact_estimation.nodes.driver import Driver
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, mpc_outputs, qos
from contact_estimation.ros.processes import free_domain

CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
CLEANUP, DEACTIVATE = Transition.TRANSITION_CLEANUP, Transition.TRANSITION_DEACTIVATE
#: [N/m] what the arm's own controller is set to.
STIFFNESS = [800.0, 800.0, 600.0]


def good_estimate(arm, stamp) -> ContactEstimate:
    """The least that an estimate of ``arm`` must be to count."""
    return ContactEstimate(
        header=Header(stamp=stamp, frame_id=arm.base_frame), valid=True, observer="test", joint_names=arm.joint_names
    )


def patient_limits(folder: Path) -> str:
    """Limits whose deadman a busy machine does not reach: it has tests of its own, on a clock of theirs."""
    path = folder / "limits.yaml"
    path.write_text("hold_after: 2.0\nstop_after: 4.0\n")
    return str(path)


def activate(graph) -> None:
    """Activate the driver, once it has heard of a sample and an estimate that count."""
    assert graph.spin(lambda: graph.change("driver", ACTIVATE))


def test_commands_act_only_while_active_and_end_with_the_estimates(graph, tmp_path):
    arm = load_arm("fr3")
    states = graph.watch(JointState, "/joint_states", qos.NEWEST)
    truth = graph.watch(WrenchStamped, "/truth/external_wrench")
    health = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    poses = graph.node.create_publisher(PoseStamped, "equilibrium_pose", qos.SENSOR)
    estimates = graph.node.create_publisher(ContactEstimate, "estimator/contact_estimate", qos.SENSOR)

    def commands() -> dict:
        said = [s for m in health for s in m.status if s.name.startswith("driver")]
        return {v.key: v.value for v in said[-1].values} if said else {}

    limits = patient_limits(tmp_path)
    parameters = {"driver": "sim", "robot": "fr3", "scenario": "plane", "duration": 600.0, "safety": limits}
    with graph.start("driver", parameters) as driver:
        graph.wait_for_subscriber("/estimator/contact_estimate")
        assert graph.state("driver") == State.PRIMARY_STATE_UNCONFIGURED, driver.text()
        assert not graph.spin(lambda: states, 0.5), "nothing is connected before configure"
        assert graph.change("driver", CONFIGURE), driver.text()
        assert graph.spin(lambda: len(states) > 50 and truth), driver.text()
        assert list(states[-1].name) == list(arm.joint_names)
        assert not graph.change("driver", ACTIVATE)  # no estimate comes in

        message = PoseStamped()
        message.header.frame_id = arm.base_frame
        height = lambda: arm.tcp_pose(np.array(states[-1].position))[0][2]  # noqa: E731

        def want(lift: float) -> None:
            position, rotation = arm.tcp_pose(np.array(states[-1].position))
            p, o = message.pose.position, message.pose.orientation
            p.x, p.y, p.z = position + [0.0, 0.0, lift]
            o.x, o.y, o.z, o.w = pin.Quaternion(rotation).coeffs()

        def feed() -> None:
            estimates.publish(good_estimate(arm, states[-1].header.stamp))
            poses.publish(message)

        want(0.0)
        with graph.meanwhile(feed):
            activate(graph)
            before = height()
            want(0.05)
            assert graph.spin(lambda: height() > before + 0.005), commands()
        # The estimator dies, the planner does not know: what it wants no longer counts.
        with graph.meanwhile(lambda: poses.publish(message)):
            assert graph.spin(lambda: commands().get("commands") == "stop"), commands()
            assert "estimate" in commands()["commands say"]
            inactive = lambda: graph.state("driver") == State.PRIMARY_STATE_INACTIVE  # noqa: E731
            assert graph.spin(inactive), "a stop shows in the lifecycle"
        with graph.meanwhile(feed):  # "activate again", and it works
            activate(graph)
            before = height()
            want(0.05)
            assert graph.spin(lambda: height() > before + 0.005), commands()


def test_the_deadman_needs_no_clock_that_may_stop(graph, tmp_path):
    """A wall clock that is set back, and a /clock that nobody publishes, silence the timers that wait on them."""
    arm = load_arm("fr3")
    states = graph.watch(JointState, "/joint_states", qos.NEWEST)
    estimates = graph.node.create_publisher(ContactEstimate, "estimator/contact_estimate", qos.SENSOR)
    parameters = {"driver": "sim", "robot": "fr3", "scenario": "plane", "duration": 600.0, "configure_at_start": True}
    with graph.start("driver", {**parameters, "safety": patient_limits(tmp_path), "use_sim_time": True}) as driver:
        assert graph.spin(lambda: len(states) > 50), driver.text()
        with graph.meanwhile(lambda: estimates.publish(good_estimate(arm, states[-1].header.stamp))):
            activate(graph)
        assert graph.spin(lambda: graph.state("driver") == State.PRIMARY_STATE_INACTIVE, 60.0), driver.text()
        assert "no fresh, valid estimate" in driver.text()


class ImpedanceArm:
    """An FR3 behind topics, as its own ROS driver and a Cartesian impedance controller show it; simulated."""

    def __init__(self, graph, arm) -> None:
        self.graph, self.arm = graph, arm
        self.poses = graph.watch(PoseStamped, "/driver/equilibrium_pose", qos.COMMANDS)
        self.impedances = graph.watch(WrenchStamped, "/driver/impedance", qos.LATCHED)
        self._states = graph.node.create_publisher(JointState, "/arm/joint_states", qos.SENSOR)
        self._estimates = graph.node.create_publisher(ContactEstimate, "/estimator/contact_estimate", qos.SENSOR)
        self._targets = graph.node.create_publisher(PoseStamped, "/equilibrium_pose", qos.SENSOR)
        self.target: PoseStamped | None = None
        self.jammed = False  # it stands, whatever is commanded
        self._followed = 0
        options = {"scenario": "plane", "duration": 600.0, "imperfections": "ideal", "impedance_stiffness": STIFFNESS}
        self.backend = make_backend("simulated", self.arm, options)
        self.backend.connect()
        self.sample = self.backend.read()

    def turn(self) -> None:
        """One sample out, the newest command in."""
        if not self.jammed:
            self.sample = self.backend.read()
        head = convert.header(self.graph.node.get_clock().now().nanoseconds, "")
        s = self.sample
        self._states.publish(convert.joint_state(head, self.arm.joint_names, s.q, s.dq, s.tau))
        self._estimates.publish(good_estimate(self.arm, head.stamp))
        if self.target is not None:
            self._targets.publish(self.target)
        if len(self.poses) > self._followed:
            self._followed = len(self.poses)
            pose = self.poses[-1].pose
            p, o = pose.position, pose.orientation
            rotation = pin.Quaternion(np.array([o.x, o.y, o.z, o.w])).toRotationMatrix()
            self.backend.command(EquilibriumPose(np.array([p.x, p.y, p.z]), rotation))


def impedance_parameters(folder: Path) -> dict[str, object]:
    """Parameters of a driver that commands an :class:`ImpedanceArm`."""
    return {
        "driver": "joint_torque",
        "robot": "fr3",
        "joint_states_in": "arm/joint_states",
        "safety": patient_limits(folder),
        "control": True,
        "impedance_stiffness": STIFFNESS,
        "options": "{max_sample_age: 2.0}",
    }


@pytest.mark.parametrize("prefix", ["", "left_"])
def test_joint_names_of_an_arm_may_have_the_prefix_of_its_frames(graph, prefix):
    arm = load_arm("fr3")
    arrives = graph.node.create_publisher(JointState, "arm/joint_states", qos.SENSOR)
    names = [prefix + name for name in arm.joint_names]
    q = np.array(arm.settings.ready)

    def send():
        head = convert.header(graph.now_ns(), "left_" + arm.base_frame)
        arrives.publish(convert.joint_state(head, names, q, np.zeros(arm.n), arm.gravity(q)))

    parameters = {"driver": "joint_torque", "robot": "fr3", "joint_states_in": "arm/joint_states", "tf_prefix": "left_"}
    with graph.start("driver", parameters) as driver:
        states = graph.watch(JointState, "/joint_states", qos.NEWEST)
        with graph.meanwhile(send):
            assert graph.change("driver", CONFIGURE), driver.text()
            assert graph.spin(lambda: len(states) > 5), driver.text()


def test_a_joint_torque_arm_is_commanded_through_topics(graph, tmp_path):
    """Equilibrium and impedance leave the driver; an arm that follows them moves, and the driver sees it move."""
    arm = load_arm("fr3")
    parameters = impedance_parameters(tmp_path)
    with graph.start("driver", parameters) as driver:
        real = ImpedanceArm(graph, arm)
        states = graph.watch(JointState, "/joint_states", qos.NEWEST)
        with graph.meanwhile(real.turn):
            assert graph.change("driver", CONFIGURE), driver.text()
            assert graph.spin(lambda: len(states) > 50), driver.text()
            assert not real.poses and not real.impedances, "an inactive driver commands nothing"

            activate(graph)
            assert graph.spin(lambda: real.impedances), driver.text()
            wrench = real.impedances[-1].wrench
            assert convert.xyz(wrench.force).tolist() == STIFFNESS
            assert convert.xyz(wrench.torque).tolist() == [40.0, 40.0, 40.0]

            position, rotation = arm.tcp_pose(real.sample.q)
            goal = position + [0.0, 0.0, 0.04]
            real.target = PoseStamped()
            real.target.header.frame_id = arm.base_frame
            p, o = real.target.pose.position, real.target.pose.orientation
            p.x, p.y, p.z = goal
            o.x, o.y, o.z, o.w = pin.Quaternion(rotation).coeffs()
            height = lambda: arm.tcp_pose(real.sample.q)[0][2]  # noqa: E731
            assert graph.spin(lambda: height() > goal[2] - 0.005), driver.text()
            assert real.poses[-1].header.frame_id == arm.base_frame

            assert graph.change("driver", DEACTIVATE)
            ended = graph.now_ns()
            graph.spin(timeout=0.5)
            late = [m for m in real.poses if convert.stamp_ns(m.header.stamp) > ended]
            assert not late, "nothing passes once it is inactive"
            assert graph.change("driver", CLEANUP)
            assert graph.state("driver") == State.PRIMARY_STATE_UNCONFIGURED


def test_a_planner_that_dies_or_a_driver_that_rests_or_ends_leaves_the_equilibrium_at_the_arm(graph, tmp_path):
    """What the arm's own controller keeps is where the arm is; another planner goes on from there."""
    arm = load_arm("fr3")
    parameters = {**impedance_parameters(tmp_path), "configure_at_start": True}
    health = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    with graph.start("driver", parameters) as driver:
        real = ImpedanceArm(graph, arm)
        real.jammed = True

        def ahead() -> float:
            """How far the equilibrium is above the arm [m]."""
            return real.poses[-1].pose.position.z - arm.tcp_pose(real.sample.q)[0][2] if real.poses else 0.0

        with graph.meanwhile(real.turn):
            activate(graph)
            assert graph.spin(lambda: real.impedances), driver.text()
            said = "no command for more than 0.3 s"
            for ends in ("planner", "activity", "driver"):
                position, rotation = arm.tcp_pose(real.sample.q)
                goal = PoseStamped()
                goal.header.frame_id = arm.base_frame
                goal.pose = mpc_outputs.pose(position + [0.0, 0.0, 0.1], rotation)
                real.target = goal
                assert graph.spin(lambda: ahead() > 0.02), driver.text()
                real.target = None
                if ends == "planner":
                    assert graph.spin(lambda: said in driver.text()), driver.text()
                    assert graph.spin(lambda: any(said in s.message for m in health[-1:] for s in m.status))
                    assert graph.state("driver") == State.PRIMARY_STATE_ACTIVE, "another planner may take over"
                elif ends == "activity":
                    assert graph.change("driver", DEACTIVATE)
                else:
                    assert driver.stop() == 0, driver.text()
                assert graph.spin(lambda: abs(ahead()) < 1e-6, 10.0), ahead()
                if ends == "activity":
                    activate(graph)


def test_a_pose_of_the_past_and_a_second_planner_are_refused_and_told(graph, tmp_path):
    """As from a log that plays beside the planner: its poses must not move the arm."""
    arm = load_arm("fr3")
    states = graph.watch(JointState, "/joint_states", qos.NEWEST)
    health = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    estimates = graph.node.create_publisher(ContactEstimate, "estimator/contact_estimate", qos.SENSOR)
    planner, second = (graph.node.create_publisher(PoseStamped, "equilibrium_pose", qos.SENSOR) for _ in range(2))
    parameters = {"driver": "sim", "robot": "fr3", "scenario": "plane", "duration": 600.0, "configure_at_start": True}
    late, planners = 0, [planner]

    def feed() -> None:
        estimates.publish(good_estimate(arm, states[-1].header.stamp))
        position, rotation = arm.tcp_pose(np.array(states[-1].position))
        head = convert.header(convert.stamp_ns(states[-1].header.stamp) - late, arm.base_frame)
        for one in planners:
            one.publish(PoseStamped(header=head, pose=mpc_outputs.pose(position + [0.0, 0.0, 0.05], rotation)))

    def count(name: str) -> int:
        said = [v for m in health for s in m.status for v in s.values if v.key == name]
        return int(said[-1].value) if said else 0

    with graph.start("driver", {**parameters, "safety": patient_limits(tmp_path)}) as driver:
        assert graph.spin(lambda: len(states) > 50), driver.text()
        with graph.meanwhile(feed):
            activate(graph)
            assert graph.spin(lambda: count("commands passed") > 10), driver.text()
            assert not count("commands of a second planner")
            planners.append(second)
            told = "commands of a second planner on /equilibrium_pose refused"
            assert graph.spin(lambda: any(told in s.message for s in health[-1].status)), driver.text()
            late = 60_000_000_000
            assert graph.spin(lambda: any("for 60.0" in s.message for s in health[-1].status)), driver.text()
            before = count("commands passed")
            health.clear()
            assert graph.spin(lambda: len(health) > 1) and count("commands passed") == before
    for one in (planner, second):
        graph.node.destroy_publisher(one)


def test_a_second_estimator_is_told_and_neither_keeps_nor_ends_the_commands(graph, tmp_path):
    arm = load_arm("fr3")
    states = graph.watch(JointState, "/joint_states", qos.NEWEST)
    health = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    topic = "estimator/contact_estimate"
    first, second = (graph.node.create_publisher(ContactEstimate, topic, qos.SENSOR) for _ in range(2))
    parameters = {"driver": "sim", "robot": "fr3", "scenario": "plane", "duration": 600.0, "configure_at_start": True}
    both, sent = False, 0

    def feed() -> None:
        nonlocal sent
        message = good_estimate(arm, states[-1].header.stamp)
        first.publish(message)
        sent += 1
        if both:
            message.valid = False
            second.publish(message)

    def said(words: str) -> bool:
        driver = [s for s in health[-1].status if s.name.startswith("driver")] if health else []
        return any(s.level == DiagnosticStatus.ERROR and words in s.message for s in driver)

    with graph.start("driver", {**parameters, "safety": patient_limits(tmp_path)}) as driver:
        assert graph.spin(lambda: len(states) > 50), driver.text()
        with graph.meanwhile(feed):
            activate(graph)
            assert graph.spin(lambda: sent > 500)  # near its own number it would take the other's for its own
            both = True
            assert graph.spin(lambda: said("of a second estimator on /estimator/contact_estimate")), driver.text()
            # what it says is invalid: heard, each of its messages would be one that does not count
            uncounted = [int(v.value) for s in health[-1].status for v in s.values if v.key == "estimates not counted"]
            assert sum(uncounted) < 5, "a busy machine makes a few estimates late, not as many as the second one sends"
    for one in (first, second):
        graph.node.destroy_publisher(one)


def test_a_robot_that_does_not_answer_stays_unconfigured(graph):
    parameters = {"driver": "rtde", "robot": "ur16e", "host": "127.0.0.9", "options": "{connect_timeout: 1.0}"}
    with graph.start("driver", parameters) as driver:
        assert not graph.change("driver", CONFIGURE)
        assert graph.state("driver") == State.PRIMARY_STATE_UNCONFIGURED
        assert "127.0.0.9" in driver.text()


def test_a_thread_that_dies_is_told_and_the_node_can_be_configured_again(graph, monkeypatch):
    health = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    states = graph.watch(JointState, "/joint_states", qos.NEWEST)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)

    def told() -> list[DiagnosticStatus]:
        return [s for m in health for s in m.status if "ZeroDivisionError: a defect" in s.message]

    with graph.start("driver", {"driver": "broken_driver:BreaksSoon", "robot": "fr3"}) as driver:
        graph.wait_for_publisher("/joint_states")
        for _ in range(2):
            states.clear()
            health.clear()
            assert graph.change("driver", CONFIGURE), driver.text()
            assert graph.spin(lambda: len(states) >= 10), driver.text()
            assert graph.spin(told), driver.text()
            assert told()[-1].level == DiagnosticStatus.ERROR
            assert graph.spin(lambda: graph.state("driver") == State.PRIMARY_STATE_UNCONFIGURED), driver.text()
        assert not graph.change("driver", ACTIVATE) and driver.running


@pytest.fixture
def make_driver():
    """Make the node in this process."""
    rclpy.init(domain_id=free_domain())
    made = []

    def make(driver: str, **parameters: object) -> Driver:
        made.append(Driver(defaults={"driver": driver, "robot": "fr3", **parameters}))
        return made[-1]

    yield make
    for node in made:
        node.close()
        node.destroy_node()
    rclpy.shutdown()


def until(condition) -> None:
    """Wait for what another thread does."""
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def state_of(node: Driver) -> str:
    return node._state_machine.current_state[1]


def test_samples_that_end_by_themselves_are_a_fault_that_is_told(make_driver):
    node = make_driver("broken_driver:EndsSoon")
    node.trigger_configure()
    until(lambda: not node._thread.is_alive())
    level, told = node._problem()
    assert level == DiagnosticStatus.ERROR and "samples of the arm have ended" in told
    node._watch()
    assert state_of(node) == "unconfigured"


def test_a_live_arm_without_samples_is_an_error_whatever_its_driver_says(make_driver):
    node = make_driver("broken_driver:FallsSilent")
    assert node._problem()[0] == DiagnosticStatus.OK, "it is not configured"
    node.trigger_configure()
    assert node._problem() == (DiagnosticStatus.ERROR, "the arm has sent no sample yet")
    now = 10.0
    node.gate._clock = lambda: now
    node.gate.sample(Sample(1, np.zeros(7), np.zeros(7), np.zeros(7)), 1)
    assert node._problem()[0] == DiagnosticStatus.OK
    now = 3610.0
    assert node._problem() == (DiagnosticStatus.ERROR, "the arm has sent no sample for 3600.0 s")


def test_late_joint_states_of_an_arm_do_not_look_fresh(make_driver):
    node = make_driver("joint_torque")
    node.trigger_configure()
    for late, words in ((400_000_000, "max_sample_age"), (0, "")):
        head = convert.header(node.get_clock().now().nanoseconds - late, "")
        node._on_states(convert.joint_state(head, node.arm.joint_names, np.zeros(7), np.zeros(7), np.zeros(7)))
        assert words in node.backend.problem if words else not node.backend.problem


def test_a_defect_in_a_transition_leaves_the_driver_stopped_and_disconnected(make_driver):
    node = make_driver("broken_driver:CannotClose")
    node.trigger_configure()
    reader = node._thread
    node.trigger_cleanup()
    assert state_of(node) == "unconfigured" and node.backend.closed == 2
    assert not reader.is_alive() and node.gate.state is SafetyState.INACTIVE


def test_a_start_that_fails_by_a_defect_says_where_to_look(make_driver):
    with pytest.raises(ContactEstimationError, match="cannot be configured: the log above"):
        make_driver("broken_driver:CannotConnect", configure_at_start=True)


@pytest.mark.parametrize("given", [{"rate": 2.0}, {"keep_stamps": True}, {"clock": True}, {"wait_for": ["estimator"]}])
def test_what_a_live_arm_cannot_obey_is_refused(make_driver, given):
    with pytest.raises(ConfigError, match=f"live: {next(iter(given))} has no effect"):
        make_driver("joint_torque", **given)
