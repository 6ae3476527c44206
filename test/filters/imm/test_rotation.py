"""A point that sticks: turning the tool about it shows where on the tool it is (paper 1, section 5.4)."""

import dataclasses

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.observer import ContactImm
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.robot import load_arm
from contact_estimation.simulation.session import open_simulation


@pytest.fixture(scope="module")
def rotation():
    """Estimates of an FR3 over both turns of the shipped scenario, with the truth."""
    arm = load_arm("fr3")
    simulation = open_simulation("single_point_rotation", "fr3", seed=3)
    settings = load_observer_settings("contact_imm")
    contact = dataclasses.replace(settings.contacts[0], point_std=[0.1, 0.1, 0.05], law="sticking")
    observer = ContactImm(arm, dataclasses.replace(settings, contacts=[contact]))
    point, estimates, forces = np.array(simulation.scenario.tool_points[0]), [], []
    for k, sample in enumerate(simulation.run(14.0)):
        if k == 0:
            observer.reset(1e-9 * sample.stamp_ns, sample.q)
        else:
            observer.step(0.002, sample.q, sample.dq, sample.tau)
        estimates.append(observer.estimate())
        forces.append(simulation.plant.wrench_tcp[:3].copy())
    return point, estimates, np.array(forces)


def test_all_three_coordinates_of_the_point_are_found(rotation):
    point, estimates, _ = rotation
    assert np.linalg.norm(point) > 0.12  # the estimate starts at the TCP
    assert np.linalg.norm(estimates[-1].contacts[0].point_tcp - point) < 0.005
    assert not {"point_x", "point_y", "point_z"} & set(estimates[-1].contacts[0].unseen)


def test_the_force_is_held_sideways_too(rotation):
    _, estimates, forces = rotation
    last = slice(3000, None)
    error = np.array([e.force_tcp for e in estimates[last]]) - forces[last]
    assert np.sqrt((error**2).mean()) < 2.0 and np.linalg.norm(forces[last], axis=1).min() > 20.0


def test_rest_is_where_the_point_is_held(rotation):
    _, estimates, _ = rotation
    contact = estimates[-1].contacts[0]
    assert contact.parameters[-2:] == ("rest_1", "rest_2")
    assert np.linalg.norm(contact.rest - contact.point_base) < 4e-3  # the spring's deflection, not the tool's 13 cm


def test_a_point_that_sticks_needs_its_rest_estimated():
    with pytest.raises(ConfigError, match="law 'sticking' feels slip, so 'estimate' must have 'tangential'"):
        ImmContact(normal=[0.0, 0.0, 1.0], law="sticking", estimate=["stiffness", "rest"])
