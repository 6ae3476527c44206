"""The time of a task on a clock that is set while the task runs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from mpc_tasks import START, arm

from contact_estimation.control.controller import ControllerState, Observation
from contact_estimation.control.mpc import load_mpc_settings
from contact_estimation.control.registry import make_controller
from contact_estimation.control.task_clock import TaskClock
from contact_estimation.settings import replace

TICK, FELT = 0.01, np.array([0.0, 0.0, 10.0])


def test_it_follows_a_steady_clock():
    clock = TaskClock(0.06)
    assert [clock.advance(1.8e9 + t) for t in (0.0, 0.01, 0.02, 0.07)] == pytest.approx([0.0, 0.01, 0.02, 0.07])


def test_a_clock_set_back_stops_it_and_one_set_ahead_is_a_short_step():
    clock = TaskClock(0.06)
    clock.advance(100.0)
    assert clock.advance(100.01) == pytest.approx(0.01)
    assert clock.advance(40.0) == pytest.approx(0.01)
    assert clock.advance(40.01) == pytest.approx(0.02)
    assert clock.advance(4000.0) == clock.now == pytest.approx(0.08)


@pytest.fixture
def controller():
    task = replace(load_mpc_settings("mpc_plane_fr3"), "test", path=[0.2, 0.0, 0.0], path_time=4.0)
    retract = dataclasses.replace(task, safety=dataclasses.replace(task.safety, on_loss="retract"))
    return make_controller("pi", arm(), retract)


def seen(age: float = 0.0, force: np.ndarray = FELT) -> Observation:
    position, rotation = arm().tcp_pose(START)
    local = np.array([0.0, 0.0, 0.10])
    phi = np.array([0.0, 0.0, 1000.0, *(position + rotation @ local), *local])
    return Observation(START, np.zeros(7), {"contact_1": phi}, force=force, age=age)


def lift(command) -> float:
    return float(command.position[2] - arm().tcp_pose(START)[0][2])


def test_a_retreat_goes_on_where_the_clock_was_set_back(controller):
    """On the clock itself the retreat would run backwards, into the surface."""
    controller.activate(seen())
    clock, wall = TaskClock(0.06), 1000.0
    for k in range(120):
        wall += TICK
        command = controller.update(clock.advance(wall), seen(force=FELT * (k < 10)))
    assert command.state is ControllerState.RETRACTING and lift(command) > 0.01
    before, wall = lift(command), wall - 10.0
    assert lift(controller.update(clock.advance(wall), seen())) >= before
    assert lift(controller.update(clock.advance(wall + TICK), seen())) > before


def test_a_path_is_not_left_out_where_the_clock_was_set_ahead(controller):
    controller.activate(seen())
    clock, wall = TaskClock(0.06), 1000.0
    ahead = []
    for k in range(20):
        wall += TICK + 4.0 * (k == 10)
        ahead.append(controller.update(clock.advance(wall), seen()).position[0])
    assert np.abs(np.diff(ahead)).max() < 1e-3  # [m]
