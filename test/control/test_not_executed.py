"""What integrates does not grow while the arm executes no commands."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from mpc_tasks import START, arm

from contact_estimation.control.controller import ControllerState, Observation
from contact_estimation.control.mpc import load_mpc_settings
from contact_estimation.control.registry import CONTROLLERS, make_controller
from contact_estimation.control.sequence import SequenceController, SequenceSettings, StepSettings
from contact_estimation.control.standstill import Standstill

TICK = 0.01


def pressing(force: float, **changes) -> Observation:
    position, rotation = arm().tcp_pose(START)
    tip = position + rotation @ np.array([0.0, 0.0, 0.10])
    phi = np.array([0.0, 0.0, 1000.0, *tip, 0.0, 0.0, 0.10])
    seen = Observation(START, np.zeros(7), {"contact_1": phi}, force=np.array([0.0, 0.0, force]))
    return dataclasses.replace(seen, **changes)


def push(command) -> float:
    return float(700.0 * (arm().tcp_pose(START)[0] - command.position)[2])


@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_stopped_arm_is_not_pushed_and_the_task_goes_on_as_it_began(name):
    made = make_controller(name, arm(), load_mpc_settings("mpc_plane_fr3"), deadline=np.inf)
    made.activate(pressing(8.0))
    for k in range(1, 21):
        command = made.update(k * TICK, pressing(8.0))
    before = push(command)
    for k in range(21, 321):  # stopped for three seconds, below the wanted force
        command = made.update(k * TICK, pressing(8.0, executed=False))
        assert command.state is ControllerState.HOLDING and "executes commands" in command.reason
        assert push(command) == pytest.approx(0.0, abs=1e-6)
    for k in range(321, 341):
        command = made.update(k * TICK, pressing(8.0))
    assert command.state is ControllerState.ACTIVE
    assert 0.0 < push(command) < before + 0.5  # not what three seconds of error add up to


def test_an_arm_that_is_moved_while_it_is_stopped_is_not_pulled_back():
    made = make_controller("pi", arm(), load_mpc_settings("mpc_plane_fr3"))
    made.activate(pressing(8.0))
    moved = START + 0.02
    for k in range(1, 10):
        command = made.update(k * TICK, pressing(8.0, q=START + 0.002 * k, executed=False))
    command = made.update(0.1, pressing(8.0, q=moved, executed=False))
    np.testing.assert_allclose(command.position, arm().tcp_pose(moved)[0])


@pytest.mark.parametrize("name", CONTROLLERS)
def test_an_arm_that_is_moved_while_a_latched_hold_is_not_executed_is_not_pulled_back(name):
    made = make_controller(name, arm(), load_mpc_settings("mpc_plane_fr3"), deadline=np.inf)
    made.activate(pressing(8.0))
    made.update(TICK, pressing(8.0))
    held = made.update(2 * TICK, pressing(8.0, dq=np.full(7, 3.0)))
    assert held.latched and "limit" in held.reason
    for k in range(3, 23):
        moved = START + 0.004 * (k - 2)
        command = made.update(k * TICK, pressing(0.0, q=moved, executed=False))
    np.testing.assert_allclose(command.position, arm().tcp_pose(moved)[0])
    for k in range(23, 60):
        command = made.update(k * TICK, pressing(0.0, q=moved))
    np.testing.assert_allclose(command.position, arm().tcp_pose(moved)[0])
    assert command.latched and command.reason == held.reason


def asked_turn(command, q) -> float:
    """Return the angle [rad] from the tool at ``q`` to the commanded attitude."""
    return float(np.linalg.norm(pin.log3(arm().tcp_pose(q)[1].T @ command.rotation)))


@pytest.mark.parametrize("hold", [{"executed": False}, {"valid": False, "reason": "a test says so"}])
@pytest.mark.parametrize("name", CONTROLLERS)
def test_an_arm_that_is_turned_while_it_is_held_is_not_turned_back(name, hold):
    """Reoriented by hand about its own flange: the tool is where it was, and looks elsewhere."""
    made = make_controller(name, arm(), load_mpc_settings("mpc_plane_fr3"), deadline=np.inf)
    made.activate(pressing(8.0))
    for k in range(1, 10):
        made.update(k * TICK, pressing(8.0))
    turned = START + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.8])
    for k in range(10, 50):
        made.update(k * TICK, pressing(8.0, q=START if k < 30 else turned, **hold))
    for k in range(50, 90):
        command = made.update(k * TICK, pressing(0.0, q=turned))
        assert asked_turn(command, turned) < 1e-6
    assert command.latched and "the tool was turned by 0.8 rad while it held, at most 0.1 rad" in command.reason


def test_a_turn_that_the_spring_explains_is_none():
    """Without the force of the contact the tool turns towards its equilibrium, here by 0.3 rad about x."""
    stood = Standstill(np.zeros(3), np.zeros(3), np.eye(3), pin.exp3(np.array([0.3, 0.0, 0.0])))
    for angle, beyond in ((0.2, 0.0), (0.3, 0.0), (0.5, 0.2), (-0.2, 0.2)):
        assert stood.turned(pin.exp3(np.array([angle, 0.0, 0.0]))) == pytest.approx(beyond, abs=1e-9)
    assert stood.turned(pin.exp3(np.array([0.0, 0.4, 0.0]))) == pytest.approx(0.4, abs=1e-9)


def test_an_arm_that_is_turned_after_the_end_of_a_task_is_not_turned_back():
    """A task in steps stands at its end until it is deactivated; a person takes the arm over meanwhile."""
    wait = StepSettings(name="wait", controller="feedforward", path_time=0.02, until="arrived")
    made = SequenceController(arm(), SequenceSettings(task="mpc_plane_fr3", steps=[wait]))
    made.activate(pressing(0.0))
    for k in range(1, 10):
        made.update(k * TICK, pressing(0.0))
    assert made.over
    turned = START + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.8])
    for command in (made.update(0.1, pressing(0.0, q=turned, executed=False)), made.deactivate()):
        assert asked_turn(command, turned) < 1e-6
