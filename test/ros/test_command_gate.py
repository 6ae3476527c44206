"""The way of a command: only while active, limited, and never without a fresh estimate or a known arm."""

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.control.safety import SafetySettings, SafetyState
from contact_estimation.drivers.backend import Sample
from contact_estimation.drivers.registry import make_backend
from contact_estimation.exceptions import DriverError
from contact_estimation.robot import load_arm
from contact_estimation.ros.command_gate import CommandGate

UPRIGHT = (1.0, 0.0, 0.0, 0.0)


class Bench:
    """A gate over a simulated arm, with a clock of its own."""

    def __init__(self):
        self.now = 10.0
        self.arm = load_arm("fr3")
        self.backend = make_backend("sim", self.arm, scenario="plane", duration=5.0)
        self.backend.connect()
        self.gate = CommandGate(self.arm, self.backend, SafetySettings(), np.full(3, 700.0), clock=lambda: self.now)

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


@pytest.mark.parametrize("first", ["watch", "command"])
def test_a_dead_estimator_leaves_the_equilibrium_at_the_arm(first):
    """The deadman is asked by a command and by the watch: whichever comes first, no push stays in force."""
    now, arm, backend = 10.0, load_arm("fr3"), ImpedanceArm()
    gate = CommandGate(arm, backend, SafetySettings(), np.full(3, 700.0), clock=lambda: now)
    q = np.array([0.1, -0.7, 0.05, -2.2, 0.02, 1.6, 0.7])
    position, rotation = arm.tcp_pose(q)
    sample, quaternion = Sample(1, q, np.zeros(7), np.zeros(7)), pin.Quaternion(rotation).coeffs()
    gate.sample(sample, 1)
    gate.estimate(0.0, "")
    gate.activate()
    for _ in range(20):
        now += 0.01
        gate.sample(sample, 1)
        gate.estimate(0.0, "")
        gate.set_target(position + [0.0, 0.0, -0.03], quaternion)
    assert backend.poses[-1].position[2] < position[2] - 0.02
    now += 0.3
    gate.sample(sample, 1)
    if first == "watch":
        gate.watch()
    gate.set_target(position + [0.0, 0.0, -0.03], quaternion)
    gate.watch()
    assert gate.state is SafetyState.STOP and gate.counters["commands stopped"] == 1
    assert backend.poses[-1].position == pytest.approx(position)


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
