"""The way of a command: only while active, limited, and never without a fresh estimate or a known arm."""

import time

import numpy as np
import pinocchio as pin
import pytest
from rtde_controller import HOST, Controller, require_client_library

from contact_estimation.control.safety import SafetySettings, SafetyState
from contact_estimation.drivers.backend import Sample
from contact_estimation.drivers.registry import make_backend
from contact_estimation.exceptions import DriverError, StaleSampleError
from contact_estimation.robot import load_arm
from contact_estimation.ros.arrival import JUST_NOW, Arrival
from contact_estimation.ros.command_gate import CommandGate

UPRIGHT = (1.0, 0.0, 0.0, 0.0)
#: Of the impedance: [N/m] and [Nm/rad].
STIFFNESS = np.full(3, 700.0), np.full(3, 40.0)


class Bench:
    """A gate over a simulated arm, with a clock of its own."""

    def __init__(self):
        self.now = 10.0
        self.arm = load_arm("fr3")
        self.backend = make_backend("sim", self.arm, scenario="plane", duration=5.0)
        self.backend.connect()
        self.gate = CommandGate(self.arm, self.backend, SafetySettings(), STIFFNESS, clock=lambda: self.now)

    def tick(self, seconds=0.002, estimate=True, age=0.001):
        for _ in range(max(round(seconds / 0.002), 1)):
            self.now += 0.002
            sample = self.backend.read()
            self.gate.sample(sample, sample.stamp_ns)
            if estimate:
                self.gate.estimate(age, "")
            self.gate.watch()
        return sample


def test_activation_needs_sample_and_estimate():
    bench = Bench()
    with pytest.raises(DriverError, match="no fresh sample"):
        bench.gate.activate()
    bench.tick(estimate=False)
    with pytest.raises(DriverError, match="estimate"):
        bench.gate.activate()
    bench.tick()
    bench.gate.activate()
    assert bench.gate.state is SafetyState.ACTIVE


def test_the_gate_writes_into_no_buffer_of_the_thread_that_reads():
    bench = Bench()
    q = bench.tick().q
    buffer = bench.arm._numeric.inputs["q"]
    buffer[:] = 9.0
    bench.gate.activate()
    bench.gate.set_target(bench.gate._arm.tcp_pose(q)[0], UPRIGHT)
    bench.gate.release("a test says so")
    assert bench.gate.counters["commands passed"] == 1 and (buffer == 9.0).all()


def test_inactive_lets_nothing_pass_and_activation_does_not_jump():
    bench = Bench()
    before = bench.tick()
    bench.gate.set_target((5.0, 5.0, 5.0), UPRIGHT)
    assert bench.backend.simulation.equilibrium[0] == pytest.approx(bench.arm.tcp_pose(before.q)[0], abs=1e-3)
    bench.gate.activate()
    here = bench.arm.tcp_pose(bench.tick().q)[0]
    bench.gate.set_target(here + [0.3, 0.0, 0.0], UPRIGHT)
    assert np.linalg.norm(bench.backend.simulation.equilibrium[0] - here) < 1e-3
    assert "rate" in bench.gate.reason
    assert bench.gate.counters["commands passed"] == bench.gate.counters["commands limited in rate"] == 1


def test_a_dead_estimator_holds_then_stops_for_good():
    bench = Bench()
    bench.tick()
    bench.gate.activate()
    here = bench.arm.tcp_pose(bench.tick(0.02).q)[0]
    bench.tick(0.06, estimate=False)
    bench.gate.set_target(here + [0.05, 0, 0], UPRIGHT)
    assert bench.gate.state is SafetyState.HOLD
    bench.tick(0.2, estimate=False)
    assert bench.gate.state is SafetyState.STOP
    assert bench.gate.counters["commands held"] == bench.gate.counters["commands stopped"] == 1
    frozen = bench.backend.simulation.equilibrium[0].copy()
    bench.tick(0.05)
    bench.gate.set_target(here + [0.05, 0, 0], UPRIGHT)
    assert np.array_equal(bench.backend.simulation.equilibrium[0], frozen)
    bench.gate.activate()
    assert bench.gate.state is SafetyState.ACTIVE


class ImpedanceArm:
    """An arm that keeps the last equilibrium it was given, and does not tell its own."""

    commandable = True

    def __init__(self):
        self.poses = []

    def equilibrium(self) -> None:
        return None

    def command(self, pose) -> None:
        self.poses.append(pose)


class Press:
    """A gate over an arm that stands still while its equilibrium is commanded 30 mm below it, every 10 ms."""

    def __init__(self, commands: int = 20):
        self.now, self.backend, arm = 10.0, ImpedanceArm(), load_arm("fr3")
        self.gate = CommandGate(arm, self.backend, SafetySettings(), STIFFNESS, clock=lambda: self.now)
        q = np.array([0.1, -0.7, 0.05, -2.2, 0.02, 1.6, 0.7])
        self.position, rotation = arm.tcp_pose(q)
        self.sample, self.quaternion = Sample(1, q, np.zeros(7), np.zeros(7)), pin.Quaternion(rotation).coeffs()
        self.target = self.position + [0.0, 0.0, -0.03]
        self.tick()
        self.gate.activate()
        for _ in range(commands):
            self.tick()
            self.want()
        assert not commands or self.pushed > 0.02

    def tick(self) -> None:
        """Let 10 ms pass with a sample and an estimate."""
        self.now += 0.01
        self.gate.sample(self.sample, 1_000_000_000)
        self.gate.estimate(0.0, "")

    def wait(self, seconds: float) -> None:
        """Let time [s] pass without a command."""
        for _ in range(round(seconds / 0.01)):
            self.tick()
            self.gate.watch()

    def want(self, arrival: Arrival = JUST_NOW, stamp_ns: int = 0) -> None:
        """Command it."""
        self.gate.set_target(self.target, self.quaternion, stamp_ns, arrival)

    @property
    def pushed(self) -> float:
        """How far the equilibrium is below the arm [m]."""
        return float(self.position[2] - self.backend.poses[-1].position[2])


@pytest.mark.parametrize("first", ["watch", "command"])
def test_a_dead_estimator_leaves_the_equilibrium_at_the_arm(first):
    """The deadman is asked by a command and by the watch: whichever comes first, no push stays in force."""
    press = Press()
    press.now += 0.3
    press.gate.sample(press.sample, 1)
    if first == "watch":
        press.gate.watch()
    press.want()
    press.gate.watch()
    assert press.gate.state is SafetyState.STOP and press.gate.counters["commands stopped"] == 1
    assert press.backend.poses[-1].position == pytest.approx(press.position)


def test_a_dead_planner_leaves_the_equilibrium_at_the_arm_and_another_takes_over_from_there():
    press = Press()
    press.wait(0.29)
    assert press.pushed > 0.02, "a planner that is late is not gone"
    press.wait(0.02)
    assert press.pushed == pytest.approx(0.0) and press.gate.state is SafetyState.HOLD
    assert "no command for more than 0.3 s" in press.gate.reason
    sent = len(press.backend.poses)
    press.wait(1.0)
    assert len(press.backend.poses) == sent and press.gate.counters["planners fell silent"] == 1
    for number in (1, 2):
        press.tick()
        press.want(Arrival(number))
    assert press.gate.state is SafetyState.ACTIVE
    assert 0.0 < press.pushed < 0.008, "it starts at the arm, within the limits"


def test_a_dead_planner_leaves_a_ur_standing():
    """Over the loopback controller, with a client process that would go on with the last speed for two seconds."""
    require_client_library()
    arm, patient = load_arm("ur16e"), {"connect_timeout": 120.0, "stall_timeout": 20.0, "command_timeout": 2.0}
    limits = SafetySettings(hold_after=1.0, stop_after=2.0, release_after=0.3)
    with Controller():
        backend = make_backend("rtde", arm, {"host": HOST, "control": True, **patient})
        backend.connect()
        gate = CommandGate(arm, backend, limits, (np.full(3, 1000.0), np.full(3, 40.0)))

        def present() -> Sample:
            """Read until samples come no faster than the clock: those that waited say what the arm did before."""
            while True:
                first, begin = backend.read(), time.monotonic()
                for _ in range(24):
                    sample = backend.read()
                if sample.stamp_ns - first.stamp_ns < 1.5e9 * (time.monotonic() - begin):
                    return sample

        def follow(seconds: float, lift: float = 0.0) -> float:
            """Let time [s] pass, with a command ``lift`` [m] above the start or none; return the rise [m]."""
            first = sample = present()
            end = time.monotonic() + seconds
            while time.monotonic() < end or sample.stamp_ns < first.stamp_ns + 1e9 * seconds:
                sample = backend.read()
                gate.sample(sample, sample.stamp_ns)
                gate.estimate(0.0, "")
                gate.watch()
                if lift:
                    gate.set_target(position + [0.0, 0.0, lift], quaternion)
            return float(arm.tcp_pose(sample.q)[0][2] - arm.tcp_pose(first.q)[0][2])

        try:
            follow(0.1)
            position, rotation = arm.tcp_pose(backend.read().q)
            quaternion = pin.Quaternion(rotation).coeffs()
            gate.activate()
            for planner in ("one", "another"):
                assert follow(1.0, 0.03) > 1e-3, planner
                silent = time.monotonic()
                while gate.state is not SafetyState.HOLD:
                    follow(0.01)
                    assert time.monotonic() < silent + 60.0
                follow(0.2)
                assert abs(follow(0.5)) < 1e-4, "it stands"
        finally:
            backend.close()


@pytest.mark.parametrize("ends", ["planner", "estimator", "deactivated"])
def test_a_simulated_arm_relaxes_as_a_joint_torque_arm_does(ends):
    """Its impedance tells where the equilibrium is; that one pushes on."""
    bench = Bench()
    bench.tick()
    bench.gate.activate()
    x, rotation = bench.arm.tcp_pose(bench.tick().q)
    quaternion = pin.Quaternion(rotation).coeffs()
    for _ in range(100):
        x, _ = bench.arm.tcp_pose(bench.tick(0.01).q)
        bench.gate.set_target(x - [0.0, 0.0, 0.02], quaternion)

    def ahead() -> float:
        """How far the equilibrium is from the arm [m]."""
        return float(np.linalg.norm(bench.backend.simulation.equilibrium[0] - bench.arm.tcp_pose(bench.tick().q)[0]))

    assert ahead() > 0.015
    if ends == "deactivated":
        bench.gate.release("a test says so")
    while bench.gate.state is SafetyState.ACTIVE:
        bench.tick(estimate=ends != "estimator")
    assert ahead() < 2e-3, "the arm moves by less in a sample"


def test_an_arm_that_nobody_commands_is_left_as_it_is():
    press = Press(commands=0)
    press.wait(2.0)
    assert not press.backend.poses and press.gate.state is SafetyState.ACTIVE and not press.gate.reason


@pytest.mark.parametrize("nonsense", ["not finite", "no attitude", "of the past", "of the future", "waited"])
def test_a_planner_of_nonsense_counts_as_gone(nonsense):
    """What it sends last must not stay in force because it goes on sending."""
    press = Press()
    for _ in range(31):
        press.tick()
        if nonsense == "not finite":
            press.gate.set_target((np.nan, 0.0, 0.0), press.quaternion)
        elif nonsense == "no attitude":
            press.gate.set_target(press.target, (0.0, 0.0, 0.0, 0.0))
        elif nonsense == "waited":
            press.want(Arrival(0, 0.31))
        else:
            press.want(stamp_ns=press.gate.now_ns + (-1 if nonsense == "of the past" else 1) * 210_000_000)
        press.gate.watch()
    assert press.pushed == pytest.approx(0.0) and press.gate.counters["planners fell silent"] == 1


def test_a_command_is_for_the_present():
    press = Press()
    press.want(stamp_ns=press.gate.now_ns - 190_000_000)
    assert press.gate.state is SafetyState.ACTIVE
    press.want(stamp_ns=press.gate.now_ns - 250_000_000)
    assert press.gate.state is SafetyState.HOLD and "for 0.25 s ago by the samples' clock" in press.gate.reason


def test_a_command_that_waited_counts_from_when_it_came():
    """The executor stood still for 0.25 s: what it then finds proves no planner of the present."""
    press = Press()
    press.wait(0.25)
    press.want(Arrival(1, 0.25))
    press.wait(0.1)
    assert press.pushed == pytest.approx(0.0)


@pytest.mark.parametrize("ends", ["release", "stop", "command"])
def test_a_driver_with_a_defect_stops_the_commands(ends):
    press = Press()

    def fail(pose) -> None:
        raise ValueError("a defect")

    press.backend.command = fail
    if ends == "release":
        press.gate.release("deactivated")
    elif ends == "stop":
        press.gate.stop("a test says so")
    else:
        press.tick()
        press.want()
    assert press.gate.state is SafetyState.STOP and press.gate.counters["holds failed"] == 1
    assert "holding the arm failed: ValueError: a defect" in press.gate.reason
    passed = press.gate.counters["commands passed"]
    press.tick()
    press.want()
    assert press.gate.counters["commands passed"] == passed, "nothing passes any more"


@pytest.mark.parametrize("first", ["command", "deadman", "planner", "thread"])
def test_refused_samples_leave_the_equilibrium_at_the_arm(first):
    """The arm's own driver repeats a stamp: nothing is commanded any more, and the last push must not stay."""
    press, sent = Press(commands=0), []
    arm = load_arm("fr3")
    backend = make_backend("joint_torque", arm, {"torque_meaning": "total"})
    backend.attach(sent.append)
    backend.connect()
    press.gate = CommandGate(arm, backend, SafetySettings(), STIFFNESS, clock=lambda: press.now)
    feed = (arm.joint_names, press.sample.q, np.zeros(7), np.zeros(7))
    backend.feed(1, *feed)
    press.tick()
    press.gate.activate()
    for _ in range(20):
        press.tick()
        press.want()
    assert press.position[2] - sent[-1].position[2] > 0.02
    backend.feed(1, *feed)
    assert "repeats" in backend.problem
    if first == "command":
        press.want()
    elif first == "thread":
        press.gate.stop("reading the arm failed")
    elif first == "deadman":
        press.now += 0.21
        press.gate.watch()
    else:
        press.wait(0.31)
    assert press.gate.state is (SafetyState.HOLD if first == "planner" else SafetyState.STOP)
    assert sent[-1].position == pytest.approx(press.position)


def test_a_sample_that_is_late_for_one_command_holds_and_the_next_goes_on():
    """The deadman, not one late sample, ends a motion for good."""
    bench, command, late = Bench(), None, [True]
    position, rotation = bench.arm.tcp_pose(bench.tick().q)
    quaternion = pin.Quaternion(rotation).coeffs()

    def refuse_once(pose):
        if late.pop() if late else False:
            raise StaleSampleError("nothing is commanded: the last sample is 51 ms old")
        command(pose)

    command, bench.backend.command = bench.backend.command, refuse_once
    bench.gate.activate()
    bench.gate.set_target(position, quaternion)
    assert bench.gate.state is SafetyState.HOLD and "51 ms" in bench.gate.reason
    bench.tick()
    bench.gate.set_target(position, quaternion)
    assert bench.gate.state is SafetyState.ACTIVE


def test_activation_is_refused_while_the_arm_executes_nothing():
    bench = Bench()
    bench.tick()
    bench.backend.state_problem = lambda: "safety mode is 'protective stop'"
    with pytest.raises(DriverError, match="protective stop"):
        bench.gate.activate()
    bench.backend.state_problem = lambda: ""
    bench.gate.activate()
    assert bench.gate.state is SafetyState.ACTIVE


@pytest.mark.parametrize("commands", [0, 20], ids=["idle", "commanded"])
def test_an_arm_that_must_not_move_stops_the_gate_also_where_nobody_commands(commands):
    """Otherwise whoever commands next, after the reason is gone, moves an arm that nobody has activated again."""
    press = Press(commands)
    press.backend.stop_reason = lambda: "safety mode is 'protective stop'"
    press.wait(0.01)
    assert press.gate.state is SafetyState.STOP and press.gate.reason == "safety mode is 'protective stop'"
    press.backend.stop_reason = lambda: ""
    press.wait(0.1)
    passed = press.gate.counters["commands passed"]
    press.want()
    assert press.gate.counters["commands passed"] == passed and press.gate.state is SafetyState.STOP
    press.gate.activate()
    press.want()
    assert press.gate.counters["commands passed"] == passed + 1


def test_a_sample_that_is_late_does_not_stop_an_idle_gate():
    """It is the deadman that ends what lasts."""
    press = Press(commands=0)
    press.backend.state_problem = lambda: "the last sample is 60 ms old"
    press.now += 0.06
    press.gate.watch()
    assert press.gate.state is SafetyState.ACTIVE
    press.now += 0.15
    press.gate.watch()
    assert press.gate.state is SafetyState.STOP


def test_a_driver_that_cannot_tell_its_state_stops_the_gate():
    press = Press()
    press.backend.stop_reason = lambda: 1 / 0
    press.wait(0.01)
    assert press.gate.state is SafetyState.STOP and "cannot be told: ZeroDivisionError" in press.gate.reason


def test_a_stop_without_samples_blames_the_arm_not_the_estimator():
    bench = Bench()
    bench.tick()
    bench.gate.activate()
    bench.backend.problem = "connection lost"
    bench.now += 0.25
    bench.gate.watch()
    assert bench.gate.state is SafetyState.STOP
    assert bench.gate.reason == ("the arm has sent no sample for 0.25 s (connection lost): stopped; activate again")


def test_a_second_planner_is_refused_until_the_first_is_silent():
    press = Press(commands=0)
    other = press.position + [0.0, 0.0, 0.03]
    for k in range(20):
        press.tick()
        press.want(Arrival(100 + k))
        press.gate.set_target(other, press.quaternion, 0, Arrival(1 + k))
    assert press.pushed > 0.02 and press.gate.counters["commands of a second planner"] == 20
    assert press.gate.planner.others() == 20 and press.gate.planner.others() == 0
    press.wait(0.4)
    press.gate.set_target(other, press.quaternion, 0, Arrival(21))
    assert press.gate.state is SafetyState.ACTIVE and press.pushed < 0.0


def test_invalid_estimates_do_not_count():
    bench = Bench()
    bench.tick()
    bench.gate.activate()
    for _ in range(150):
        bench.tick(estimate=False)
        bench.gate.estimate(0.0, "a test says so")
    assert bench.gate.state is SafetyState.STOP


def test_the_deadman_counts_the_age_of_the_sample_not_the_arrival_of_the_estimate():
    bench = Bench()
    bench.tick(0.1, age=0.3)
    with pytest.raises(DriverError, match="no fresh, valid estimate"):
        bench.gate.activate()
    bench.tick()
    bench.gate.activate()
    bench.tick(0.06, age=0.06)
    bench.gate.set_target((0.3, 0.0, 0.5), UPRIGHT)
    assert bench.gate.state is SafetyState.HOLD
    bench.tick(0.25, age=0.25)
    assert bench.gate.state is SafetyState.STOP


def test_the_present_is_that_of_the_samples():
    bench = Bench()
    sample = bench.tick()
    bench.now += 0.5
    assert bench.gate.now_ns - sample.stamp_ns == pytest.approx(500_000_000, abs=2)


def test_without_fresh_samples_nothing_passes_and_nothing_is_activated():
    """The arm fell silent; somebody's estimates still come."""
    bench = Bench()
    bench.tick()
    bench.gate.activate()
    bench.now += 0.06
    bench.gate.estimate(0.0, "")
    bench.gate.set_target((0.3, 0.0, 0.5), UPRIGHT)
    assert bench.gate.state is SafetyState.HOLD and "no fresh sample" in bench.gate.reason
    bench.gate.deactivate()
    with pytest.raises(DriverError, match="no fresh sample"):
        bench.gate.activate()
    bench.tick()
    bench.gate.activate()


@pytest.mark.parametrize("wanted, name", [([0.0, 0.0, -0.1], "force"), ([3.0, 0.0, 0.0], "workspace, force")])
def test_a_plan_beyond_the_limits_is_told(wanted, name):
    """A press that the limits keep from its force, or a path that leaves the workspace, looks well to its planner."""
    bench = Bench()
    bench.tick()
    bench.gate.activate()
    told = []
    for k in range(180):
        x = bench.arm.tcp_pose(bench.tick(0.01).q)[0]
        bench.gate.set_target(x + wanted if 20 <= k < 150 else x, UPRIGHT)
        told.append(bench.gate.limited)
    assert not any(told[:120]), "a second is not over"
    assert f"limited in {name}: the planner wants more" in told[149]
    assert told[-1] == ""


def test_nonsense_attitude_holds():
    bench = Bench()
    bench.tick()
    bench.gate.activate()
    bench.gate.set_target((0.3, 0.0, 0.5), (0.0, 0.0, 0.0, 0.0))
    assert bench.gate.state is SafetyState.HOLD and "quaternion" in bench.gate.reason


def test_activation_in_contact_keeps_the_spring_as_it_is():
    """An arm that presses keeps pressing: what is commanded first is the equilibrium it has, not where it stands."""
    bench = Bench()
    bench.tick(4.0)
    force = np.linalg.norm(bench.backend.simulation.plant.wrench_tcp)
    assert force > 5.0
    present = bench.backend.simulation.equilibrium[0].copy()
    bench.gate.activate()
    bench.gate.set_target(present, pin.Quaternion(bench.backend.simulation.equilibrium[1]).coeffs())
    assert bench.backend.simulation.equilibrium[0] == pytest.approx(present, abs=1e-6)
    bench.tick(0.2)
    assert np.linalg.norm(bench.backend.simulation.plant.wrench_tcp) == pytest.approx(force, rel=0.05)
