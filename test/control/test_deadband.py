"""The dead band: a force error within it moves nothing; one beyond it, or of a sensed force, is controlled."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from mpc_tasks import START, arm

from contact_estimation.control.controller import Observation
from contact_estimation.control.deadband import Deadband
from contact_estimation.control.mpc import load_mpc_settings
from contact_estimation.control.registry import make_controller
from contact_estimation.settings import replace

TICK, WANTED = 0.01, 10.0
CONTROLLERS = ("mpc", "pi", "admittance", "feedforward")


def reached(deadband: Deadband, width: float = 2.0) -> float | None:
    """Let the force approach the wanted one, while the equilibrium shakes around 0.3 m."""
    for k in range(600):
        t, shake = TICK * k, 0.001 * (-1) ** k
        place = deadband.update(t, -10.0 * np.exp(-t / 0.3), width, 0.3 + shake)
    return place


def test_it_rests_at_the_mean_equilibrium_once_the_force_is_reached():
    deadband = Deadband()
    assert deadband.update(0.0, -10.0, 2.0, 0.3) is None
    assert reached(deadband) == pytest.approx(0.3, abs=1e-4)


def test_an_error_beyond_the_band_is_brought_to_its_edge_where_it_rests_again():
    """Most likely the estimate has drifted: to bring all of it to zero would double the error."""
    deadband = Deadband()
    place = reached(deadband)
    assert deadband.update(6.0, -1.9, 2.0, 0.3) == deadband.update(6.01, 1.9, 2.0, 0.3) == place
    assert deadband.update(6.02, 2.1, 2.0, 0.3) is None and deadband.aim == pytest.approx(1.8)
    places = [deadband.update(6.04 + TICK * k, 1.8, 2.0, 0.4) for k in range(600)]
    assert places[0] is None and places[-1] == pytest.approx(0.4, abs=1e-4)


def test_a_large_error_is_controlled_to_zero():
    deadband = Deadband()
    reached(deadband)
    assert deadband.update(6.0, -2.5, 2.0, 0.3) is None and deadband.aim == pytest.approx(-1.8)
    assert deadband.update(6.01, -4.1, 2.0, 0.3) is None and deadband.aim == 0.0
    assert all(deadband.update(6.02 + TICK * k, -1.8, 2.0, 0.3) is None for k in range(600))
    assert [deadband.update(13.0 + TICK * k, 0.0, 2.0, 0.3) for k in range(600)][-1] == pytest.approx(0.3)


def test_an_error_that_stays_within_the_band_but_off_zero_is_controlled():
    """Otherwise the force would stay where it entered the band."""
    deadband = Deadband()
    assert all(deadband.update(TICK * k, -1.5, 2.0, 0.3) is None for k in range(600))


def observation(force: float, sensed: bool = False) -> Observation:
    """A tool that presses with ``force`` [N] on a surface below it."""
    position, _ = arm().tcp_pose(START)
    phi = np.array([0.0, 0.0, 5000.0, *(position + [0.0, 0.0, force / 5000.0]), 0.0, 0.0, 0.0])
    estimated = Observation(START, np.zeros(7), {"contact_1": phi}, force=np.array([0.0, 0.0, force]))
    return estimated.with_sensor(estimated.force, drift=0.0) if sensed else estimated


def pressing(name: str, force_deadband: float, sensed: bool = False):
    """Return a controller that presses with the wanted force."""
    settings = replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=8, force_deadband=force_deadband)
    contacts = [dataclasses.replace(settings.contacts[0], point=[0.0] * 3)]
    settings = dataclasses.replace(settings, modes={}, path=[0.0] * 3, force=[0.0, 0.0, WANTED], contacts=contacts)
    controller = make_controller(name, arm(), settings, deadline=10.0)
    pushed = arm().tcp_pose(START)[0] - [0.0, 0.0, WANTED / settings.impedance.stiffness[2]]
    controller.activate(observation(WANTED, sensed), pushed)
    return controller


def commanded(name: str, force_deadband: float, sensed: bool = False) -> tuple[float, float]:
    """Return how far [m] a controller moves the equilibrium while the force drifts by 0.08 N, and after it jumped."""
    controller, heights = pressing(name, force_deadband, sensed), []
    for k in range(600):
        error = 0.02 * TICK * max(k - 200, 0)  # [N]
        heights.append(controller.update(TICK * k, observation(WANTED + error, sensed)).position[2])
    for k in range(600, 640):
        command = controller.update(TICK * k, observation(WANTED + 1.9, sensed))
    return abs(heights[-1] - heights[250]), abs(command.position[2] - heights[-1])


@pytest.mark.parametrize("name", CONTROLLERS)
def test_an_estimate_that_drifts_within_the_band_moves_nothing(name):
    moved, after_jump = commanded(name, 1.0)
    assert moved < 1e-9
    assert after_jump > 1e-4


@pytest.mark.parametrize("force_deadband, sensed", [(1.0, True), (0.0, False)])
@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_sensed_force_and_every_one_without_a_band_are_controlled(name, force_deadband, sensed):
    moved, _ = commanded(name, force_deadband, sensed)
    assert moved > 1e-6


def test_the_band_ends_where_the_contact_no_longer_counts_as_made():
    """A band wider than the wanted force must not let a contact go."""
    controller = pressing("admittance", 200.0)
    places = [controller.update(TICK * k, observation(WANTED)).position[2] for k in range(300)]
    weak = controller.update(3.0, observation(0.55 * WANTED)).position[2]
    assert weak == places[-1] == places[-2]
    assert controller.update(3.01, observation(0.45 * WANTED)).position[2] < weak


def test_a_surface_that_rises_against_a_resting_push_is_not_pressed_beyond_the_overload():
    controller = pressing("admittance", 200.0)
    places = [controller.update(TICK * k, observation(WANTED)).position for k in range(300)]
    stiffness, overload = controller.settings.impedance.stiffness[2], controller.settings.safety.overload
    lifted = START + np.linalg.pinv(arm().tcp_jacobian(START)[:3]) @ [0.0, 0.0, 5.0 / stiffness]
    height = arm().tcp_pose(lifted)[0][2]
    assert stiffness * (height - places[-1][2]) > 1.4 * WANTED
    yielded = controller.update(3.0, dataclasses.replace(observation(WANTED), q=lifted)).position
    assert stiffness * (height - yielded[2]) <= overload * WANTED + 0.3  # the balance of forces has changed, too
