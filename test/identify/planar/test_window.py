"""Eq. 18 over windows: planted parameters and impulses come back; what a window cannot tell is said."""

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.identify.planar.identifiability import analyse
from contact_estimation.identify.planar.shapes import square
from contact_estimation.identify.planar.stepping import FallingBody, gravity, simulate
from contact_estimation.identify.planar.window import Slack, Step, body_step, identify_window

BODY = FallingBody(square(0.2), 150.0, body_mass=0.8, friction=0.4, restitution=0.3)
SLACK = Slack(1e-3, 1e-6)


def drop(external=None, theta=0.4):
    start = [0.0, 0.15 - BODY.shape.levers(theta)[:, 1].min(), theta]
    return simulate(BODY, start, [0.5, 0.0, 2.0], 0.005, 100, external)


def steps_of(run, known=None):
    known = np.zeros((len(run.q) - 1, 3)) if known is None else known
    states = zip(run.q, run.v, run.v[1:])
    return [body_step(BODY.shape, each, run.h, BODY.friction, gravity(), force) for each, force in zip(states, known)]


def test_without_force_only_ratios_follow_from_a_given_mass():
    run = drop()
    steps = steps_of(run)
    with pytest.raises(IdentificationError, match="homogeneous"):
        identify_window(steps, SLACK)
    for mass in (0.8, 1.6):
        found = identify_window(steps, SLACK, known={0: mass})
        assert found.status == "global"
        assert mass / found.theta[1] == pytest.approx(150.0, rel=1e-6)
        np.testing.assert_allclose(found.normal, run.normal * mass / 0.8, atol=1e-7)
        single = (run.normal > 0).sum(axis=1) < 2  # at rest on two corners only the sum of friction is determined
        np.testing.assert_allclose(found.tangent[single], run.friction_impulse[single] * mass / 0.8, atol=1e-7)
        np.testing.assert_allclose(found.tangent.sum(axis=1), run.friction_impulse.sum(axis=1) * mass / 0.8, atol=1e-7)


def test_a_known_force_separates_mass_and_inertia():
    def push(k, q, v):
        return np.array([2.0 * np.sin(0.3 * k), 1.5 * np.cos(0.2 * k), 0.05 * np.sin(0.5 * k)])

    run = drop(push)
    known = np.array([push(k, None, None) for k in range(100)])
    found = identify_window(steps_of(run, known), SLACK)
    assert found.status == "global" and all(found.identifiability.determined)
    np.testing.assert_allclose(found.theta, [0.8, 0.8 / 150.0], rtol=1e-6)
    np.testing.assert_allclose(found.normal, run.normal, atol=1e-7)


def test_a_body_at_rest_does_not_determine_its_inertia():
    run = simulate(BODY, [0, 0.1, 0], [0, 0, 0], 0.005, 20)
    steps = steps_of(run)
    found = identify_window(steps, SLACK, known={0: 0.8})
    assert found.status == "undetermined" and "[1]" in found.reason


def test_bounds_are_kept():
    run = drop()
    steps = steps_of(run)
    found = identify_window(steps, SLACK, known={0: 0.8}, bounds=([0.0, 0.006], [9.0, 0.02]))
    assert found.theta[1] == pytest.approx(0.006)


def test_bad_input():
    with pytest.raises(ConfigError, match="no steps"):
        identify_window([])
    step = Step(np.full((1, 1), np.nan), np.ones(1), *(np.zeros((0, 1)),) * 2, *(np.zeros(0),) * 3)
    with pytest.raises(IdentificationError, match="finite"):
        identify_window([step])
    with pytest.raises(ConfigError, match="known"):
        identify_window([step], known={4: 1.0})


def test_excitation_is_what_forces_cannot_explain():
    regressor = np.eye(4)[:, :2]
    full = analyse(regressor)
    assert full.rank == 2 and full.excitation == pytest.approx(1.0)
    hidden = analyse(regressor, np.eye(4)[:, :1])
    assert hidden.rank == 1 and hidden.determined == (False, True) and hidden.excitation == pytest.approx(0.0)
    assert analyse(np.zeros((4, 1))).determined == (False,)
