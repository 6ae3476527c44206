"""Of two forces of one contact, the larger one limits the push."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from mpc_tasks import START, arm

from contact_estimation.control.controller import ControllerState, Observation
from contact_estimation.control.mpc import load_mpc_settings
from contact_estimation.control.registry import make_controller
from contact_estimation.settings import replace

TICK, WANTED = 0.01, 10.0


def observation(force: float, second: float | None) -> Observation:
    """A tool on a surface below it, with ``force`` [N] by a sensor and ``second`` [N] without it."""
    position, _ = arm().tcp_pose(START)
    phi = np.array([0.0, 0.0, 5000.0, *(position + [0.0, 0.0, force / 5000.0]), 0.0, 0.0, 0.0])
    other = None if second is None else np.array([0.0, 0.0, second])
    return Observation(START, np.zeros(7), {"contact_1": phi}, force=np.array([0.0, 0.0, force]), second_force=other)


def push(name: str, sensor: float, second: float | None) -> tuple[float, ControllerState]:
    """Return the commanded push [N] after 2 s of a still arm whose forces are ``sensor`` and ``second`` [N]."""
    settings = replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=8)
    contacts = [dataclasses.replace(settings.contacts[0], point=[0.0] * 3)]
    settings = dataclasses.replace(settings, modes={}, path=[0.0] * 3, force=[0.0, 0.0, WANTED], contacts=contacts)
    controller, stiffness = make_controller(name, arm(), settings, deadline=10.0), settings.impedance.stiffness[2]
    height = arm().tcp_pose(START)[0][2]
    controller.activate(
        observation(WANTED, None), np.array([*arm().tcp_pose(START)[0][:2], height - WANTED / stiffness])
    )
    for k in range(200):
        command = controller.update(TICK * k, observation(sensor, second))
    return float(stiffness * (height - command.position[2])), command.state


@pytest.mark.parametrize("name", ["mpc", "pi", "admittance"])
def test_a_push_that_the_second_force_calls_too_large_is_taken_back(name):
    """By the sensor the contact lacks force; by the other one it has twice the allowed force."""
    alone, _ = push(name, 0.8 * WANTED, None)
    limited, state = push(name, 0.8 * WANTED, 2.5 * WANTED)
    assert state is ControllerState.ACTIVE
    assert limited < 0.5 * WANTED < WANTED < alone


@pytest.mark.parametrize("second", [0.0, 0.9 * WANTED])
def test_a_second_force_within_the_limit_changes_nothing(second):
    assert push("pi", 0.9 * WANTED, second) == push("pi", 0.9 * WANTED, None)


def test_what_may_be_drift_of_the_estimate_does_not_limit_the_push():
    """The estimate has twice the allowed force: 5 N of it may be drift, or nearly all of it."""
    estimated = observation(2.5 * WANTED, None)
    sensor = np.array([0.0, 0.0, 0.9 * WANTED])
    for drift, second in ((0.0, 2.5 * WANTED), (5.0, 2.5 * WANTED - 5.0), (100.0, 0.0)):
        seen = estimated.with_sensor(sensor, drift)
        assert seen.force is sensor and seen.second_force == pytest.approx([0.0, 0.0, second])
    assert push("pi", 0.9 * WANTED, 2.5 * WANTED) != push("pi", 0.9 * WANTED, None)


def test_a_second_force_that_is_not_finite_is_no_estimate():
    assert push("pi", WANTED, np.nan)[1] is ControllerState.HOLDING
