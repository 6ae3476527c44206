"""Limits and deadman: nothing wanted gets past them, and nothing jumps."""

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.control.safety import Deadman, SafetyFilter, SafetySettings, SafetyState
from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.settings import from_mapping

K, TURN_K = np.array([700.0, 700.0, 700.0]), np.full(3, 40.0)


class Filter(SafetyFilter):
    """A filter of an arm that follows every turn, where a test does not say how it is turned."""

    def filter(self, now, position, rotation, measured, measured_rotation=None):
        followed = self._pose[1] if measured_rotation is None and self._pose else measured_rotation
        return super().filter(now, position, rotation, measured, np.eye(3) if followed is None else followed)


def make(**changes):
    return Filter(from_mapping(SafetySettings, changes, "test"), K, TURN_K)


def test_nothing_passes_before_activation_and_after_deactivation():
    safety = make()
    assert safety.filter(0.0, np.zeros(3), np.eye(3), np.zeros(3)) is None
    safety.activate(0.0, np.zeros(3), np.eye(3))
    assert safety.filter(0.01, np.zeros(3), np.eye(3), np.zeros(3)) is not None
    safety.deactivate()
    assert safety.filter(0.02, np.zeros(3), np.eye(3), np.zeros(3)) is None


def test_activation_starts_where_the_arm_is():
    safety = make()
    here = np.array([0.3, 0.1, 0.5])
    command = safety.activate(0.0, here, np.eye(3))
    assert np.array_equal(command.position, here)
    far = safety.filter(0.002, here + 0.2, np.eye(3), here)
    assert np.linalg.norm(far.position - here) <= 0.25 * 0.002 + 1e-12
    assert "rate" in far.limited


def test_random_walk_respects_every_limit():
    rng = np.random.default_rng(3)
    safety = make(
        max_step=0.002,
        max_rate=0.4,
        max_force=10.0,
        workspace_lower=[-0.1, -0.1, -0.1],
        workspace_upper=[0.1, 0.1, 0.1],
    )
    s = safety.settings
    before = safety.activate(0.0, np.zeros(3), np.eye(3)).position
    t, hit = 0.0, set()
    for _ in range(3000):
        dt = rng.uniform(0.001, 0.02)
        t += dt
        safety.deadman.fresh(t)
        measured = before + rng.normal(0, 0.004, 3)
        command = safety.filter(t, rng.normal(0, 0.2, 3), np.eye(3), measured)
        assert np.linalg.norm(command.position - before) <= s.max_step + 1e-12
        assert (np.abs(command.position) <= 0.1 + 1e-12).all()
        if (
            "force" not in command.limited
        ):  # yielding to a force may be faster than the rate, never larger than the step
            assert np.linalg.norm(command.position - before) <= s.max_rate * dt + 1e-12
        hit.update(command.limited)
        before = command.position
    assert {"rate", "step", "force", "workspace"} <= hit


def test_spring_force_is_limited_when_the_arm_stands_still():
    safety = make()
    safety.activate(0.0, np.zeros(3), np.eye(3))
    for i in range(1, 1000):
        t = 0.002 * i
        safety.deadman.fresh(t)
        command = safety.filter(t, np.array([0.0, 0.0, -0.5]), np.eye(3), np.zeros(3))
    assert np.linalg.norm(K * command.position) == pytest.approx(30.0, rel=1e-9)


@pytest.mark.parametrize(("speed", "kept"), [(0.4, True), (1.0, False)])
def test_the_equilibrium_yields_to_an_arm_that_is_pushed_away_by_max_step_per_command(speed, kept):
    """The force keeps its limit up to that speed (0.5 m/s); beyond it, once the arm stands again."""
    safety, forces = make(), []
    safety.activate(0.0, np.zeros(3), np.eye(3))
    before = np.zeros(3)
    for k in range(1, 60):
        measured = np.array([min(0.01 * k * speed, 0.2), 0.0, 0.0])
        safety.deadman.fresh(0.01 * k)
        command = safety.filter(0.01 * k, np.zeros(3), np.eye(3), measured)
        assert np.linalg.norm(command.position - before) <= safety.settings.max_step + 1e-12
        before = command.position
        forces.append(float(np.linalg.norm(K * (command.position - measured))))
    assert (max(forces) <= 30.0 + 1e-9) == kept
    assert forces[-1] == pytest.approx(30.0)


def test_deadman_holds_at_50_ms_and_stops_at_200_ms_for_good():
    safety = make()
    safety.activate(0.0, np.zeros(3), np.eye(3))
    goal = np.array([0.01, 0.0, 0.0])
    assert safety.filter(0.04, goal, np.eye(3), np.zeros(3)).state is SafetyState.ACTIVE
    held = safety.filter(0.06, goal, np.eye(3), np.zeros(3))
    assert held.state is SafetyState.HOLD
    again = safety.filter(0.15, goal, np.eye(3), np.zeros(3))
    assert np.array_equal(again.position, held.position)
    assert safety.filter(0.21, goal, np.eye(3), np.zeros(3)) is None
    safety.deadman.fresh(0.22)
    assert safety.filter(0.22, goal, np.eye(3), np.zeros(3)) is None and not safety.active
    safety.activate(0.3, np.zeros(3), np.eye(3))
    assert safety.filter(0.301, goal, np.eye(3), np.zeros(3)).state is SafetyState.ACTIVE


def test_recovery_from_hold_does_not_jump():
    safety = make()
    safety.activate(0.0, np.zeros(3), np.eye(3))
    for t in np.arange(0.01, 0.19, 0.01):
        held = safety.filter(t, np.array([0.05, 0, 0]), np.eye(3), np.zeros(3))
    safety.deadman.fresh(0.19)
    moved = safety.filter(0.19, np.array([0.05, 0, 0]), np.eye(3), np.zeros(3))
    assert np.linalg.norm(moved.position - held.position) <= 0.25 * 0.01 + 1e-12


def test_clock_running_back_stops():
    deadman = Deadman(SafetySettings())
    assert deadman.state(0.0) is SafetyState.STOP
    deadman.fresh(1.0)
    assert deadman.state(0.5) is SafetyState.STOP


def test_not_finite_holds():
    safety = make()
    safety.activate(0.0, np.zeros(3), np.eye(3))
    command = safety.filter(0.01, np.array([np.nan, 0, 0]), np.eye(3), np.zeros(3))
    assert command.state is SafetyState.HOLD and np.array_equal(command.position, np.zeros(3))


def test_refusals():
    with pytest.raises(DriverError, match="outside the workspace"):
        make().activate(0.0, np.array([3.0, 0, 0]), np.eye(3))
    with pytest.raises(DriverError, match="not finite"):
        make().activate(0.0, np.array([np.nan, 0, 0]), np.eye(3))
    with pytest.raises(ConfigError, match="stop_after"):
        make(stop_after=0.01)
    with pytest.raises(ConfigError, match="workspace_lower"):
        make(workspace_lower=[2.0, 0.0, 0.0])


def test_a_planner_that_was_silent_has_not_earned_a_longer_turn():
    safety = make(max_turn_rate=0.5, hold_after=0.05)
    safety.activate(0.0, np.zeros(3), np.eye(3))
    safety.deadman.fresh(10.0)
    command = safety.filter(10.0, np.zeros(3), pin.exp3(np.array([0.0, 0.0, 1.0])), np.zeros(3))
    assert np.linalg.norm(pin.log3(command.rotation)) == pytest.approx(0.5 * 0.05)


def test_a_turn_goes_the_shortest_way_from_any_attitude():
    """Limited step by step, the attitude stays on the geodesic to the wanted one and arrives."""
    start, wanted = pin.exp3(np.array([2.0, -0.5, 0.3])), pin.exp3(np.array([1.0, 0.7, -1.5]))
    safety = make(max_turn_rate=1.0)
    safety.activate(0.0, np.zeros(3), start)
    left = [float(np.linalg.norm(pin.log3(start.T @ wanted)))]
    for k in range(1, 400):
        now = 0.01 * k
        safety.deadman.fresh(now)
        command = safety.filter(now, np.zeros(3), wanted, np.zeros(3))
        left.append(float(np.linalg.norm(pin.log3(command.rotation.T @ wanted))))
    steps = -np.diff(left)
    assert left[-1] < 1e-6
    np.testing.assert_allclose(steps[: int(left[0] / 0.01) - 1], 0.01, atol=1e-9)


def turned(safety, start, wanted, measured, seconds=7.0):
    """Want one attitude for some time; returns the last command, of an arm at ``measured`` (3, 3)."""
    safety.activate(0.0, np.zeros(3), start)
    for now in np.arange(0.01, seconds, 0.01):
        safety.deadman.fresh(now)
        command = safety.filter(now, np.zeros(3), wanted, np.zeros(3), measured)
    return command


def torque(command, measured) -> float:
    return float(40.0 * np.linalg.norm(pin.log3(measured.T @ command.rotation)))


@pytest.mark.parametrize("axis", np.eye(3))
def test_a_blocked_arm_is_turned_within_the_torque(axis):
    measured = pin.exp3(np.array([0.4, -0.2, 1.0]))
    command = turned(make(max_torque=10.0), measured, measured @ pin.exp3(3.0 * axis), measured)
    assert torque(command, measured) == pytest.approx(10.0) and "torque" in command.limited


def test_the_equilibrium_yields_to_an_arm_that_is_turned_away():
    safety, measured = make(max_torque=10.0), pin.exp3(np.array([0.0, 0.0, 0.8]))
    safety.activate(0.0, np.zeros(3), np.eye(3))
    before = np.eye(3)
    for now in np.arange(0.01, 1.0, 0.01):
        safety.deadman.fresh(now)
        command = safety.filter(now, np.zeros(3), np.eye(3), np.zeros(3), measured)
        assert np.linalg.norm(pin.log3(before.T @ command.rotation)) <= 0.05 + 1e-9  # never a jump
        before = command.rotation
    assert torque(command, measured) == pytest.approx(10.0)


def test_an_attitude_that_is_not_finite_is_held():
    safety = make()
    safety.activate(0.0, np.zeros(3), np.eye(3))
    command = safety.filter(0.01, np.zeros(3), np.eye(3), np.zeros(3), np.full((3, 3), np.nan))
    assert command.state is SafetyState.HOLD and command.limited == ("not finite",)
