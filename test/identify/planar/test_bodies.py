"""Wheel, arm with disk, compliant contact, projection: what was simulated is found again."""

import numpy as np
import pytest

from contact_estimation.identify.planar.shapes import square
from contact_estimation.identify.planar.stepping import FallingBody, gravity, simulate
from contact_estimation.identify.planar.window import body_step
from contact_estimation.studies.planar.arm_disk import ArmDisk, identify_push
from contact_estimation.studies.planar.noisy_states import identify_noisy
from contact_estimation.studies.planar.wheel import WHEEL, identify_wheel


def test_impulses_of_the_wheels_spokes():
    for noise, bound in ((0.0, 1e-6), (1e-3, 1.0), (0.02, 10.0)):
        result = identify_wheel(noise)
        assert len(result.impacts) >= 3 and len({i.spoke for i in result.impacts}) >= 3
        assert max(i.error_pct for i in result.impacts) < bound
    assert result.estimate.theta[1] == pytest.approx(WHEEL.body_mass / WHEEL.mass_over_inertia, rel=0.01)


def test_arm_and_disk_are_both_identified_with_their_forces():
    exact = identify_push(0.0)
    assert exact.estimate.status == "global"
    np.testing.assert_allclose(exact.estimate.theta, exact.parameters, rtol=1e-6)
    assert max(max(errors) for errors in exact.impulse_error_pct.values()) < 1e-4
    for noise, rtol, impulses in ((1e-4, 1e-3, 2.0), (1e-3, 0.01, 10.0)):
        noisy = identify_push(noise)
        np.testing.assert_allclose(noisy.estimate.theta, noisy.parameters, rtol=rtol)
        assert max(noisy.impulse_error_pct["arm-disk"]) < impulses


def test_rows_of_arm_and_disk_against_finite_differences():
    system, rng = ArmDisk(), np.random.default_rng(1)
    q = np.array([-0.70, 1.05, 0.53, 0.11, 0.2])
    contacts = system.contacts(q)
    numeric = np.array([(system.contacts(q + d).phi - system.contacts(q - d).phi) / 2e-6 for d in 1e-6 * np.eye(5)]).T
    np.testing.assert_allclose(contacts.normal, numeric, atol=1e-8)
    v = rng.standard_normal(5)
    ground = v[2] + v[4] * system.radius
    assert contacts.tangent[1] @ v == pytest.approx(ground)


def test_arm_dynamics_keep_energy_and_are_linear_in_the_parameters():
    system, rng = ArmDisk(), np.random.default_rng(2)
    q, v, h = rng.uniform(-1, 1, 5), rng.standard_normal(5), 1e-6
    mass = system.mass(q)
    np.testing.assert_allclose(mass, mass.T)
    assert np.linalg.eigvalsh(mass).min() > 0
    change = rng.standard_normal(5)
    explicit = mass @ change - 0.1 * system.force(q, v)
    np.testing.assert_allclose(system.regressor(q, v, change, 0.1) @ system.parameters, explicit)
    rate = (system.mass(q + h * v) - system.mass(q - h * v)) / (2 * h)
    velocity_terms = system.force(q, np.zeros(5)) - system.force(q, v)
    assert v @ velocity_terms == pytest.approx(0.5 * v @ rate @ v, abs=1e-6)


def test_a_free_fall_without_noise_that_determines_no_inertia_fails():
    body, nothing = FallingBody(square(0.2), 150.0, body_mass=0.8), np.zeros(3)
    run = simulate(body, [0.0, 5.0, 0.3], [0.5, 0.0, 2.0], 0.005, 20)

    def model(k, before, rate, after):
        return body_step(body.shape, (before, rate, after), run.h, body.friction, gravity(), nothing)

    found = identify_noisy(model, run, 0.0, 0, known={0: body.body_mass})
    assert found.estimate.status == "undetermined"
    assert found.verdict.verdict == "failed" and found.verdict.reasons == (found.estimate.reason,)
