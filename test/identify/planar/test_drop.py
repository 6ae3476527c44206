"""State, m/I and impulses of a drop together: exact Jacobian, planted truth, honest intervals, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.identify.planar.drop import identify_drop
from contact_estimation.identify.planar.drop_model import DOUBLE, MODES, Compressed, DropProblem, Impact, linearise
from contact_estimation.identify.planar.levenberg_marquardt import damped_step
from contact_estimation.identify.planar.segmentation import noise_levels
from contact_estimation.identify.planar.shapes import Ellipse, square
from contact_estimation.identify.planar.stepping import fall, simulate
from contact_estimation.studies.planar.table1 import BODIES, add_noise, random_drop, run_row


@pytest.mark.parametrize("shape", [square(1.0), Ellipse(2.0, 1.0)])
@pytest.mark.parametrize("mode", [*MODES, DOUBLE])
def test_jacobian_against_finite_differences(shape, mode):
    rng = np.random.default_rng(abs(mode) + 7)
    q, v = rng.standard_normal((2, 60, 3))
    problem = DropProblem(shape, 0.7, 0.01, q, v, np.full(6, 0.1), slope=0.1)
    impacts = [Impact(20, mode), Impact(40, 0)]
    compressed, gaps = Compressed(problem, [20, 40]), np.array([0.02, 0.03])
    u = np.concatenate([rng.standard_normal(6), rng.uniform(1, 3, 6), [2.5]])
    rest = problem, impacts, compressed, gaps
    jacobian = linearise(u, *rest).jacobian
    numeric = np.array(
        [(linearise(u + d, *rest).residual - linearise(u - d, *rest).residual) / 2e-6 for d in 1e-6 * np.eye(len(u))]
    ).T
    np.testing.assert_allclose(jacobian, numeric, rtol=1e-5, atol=1e-4 * np.abs(numeric).max())


@pytest.mark.parametrize("name", list(BODIES))
def test_planted_truth_states_and_impulses_come_back(name):
    body, rng = BODIES[name], np.random.default_rng(5)
    run = random_drop(body, rng)
    q, v = add_noise(run, 50.0, rng)
    found = identify_drop(body.shape, q, v, run.h, body.friction)
    used = len(found.q)
    assert found.status == "local" and found.interval[0] < found.m_over_i < found.interval[1]
    assert found.m_over_i == pytest.approx(body.mass_over_inertia, rel=0.03)
    assert np.abs(found.q - run.q[:used]).max() < 0.3 * np.abs(q[:used] - run.q[:used]).max()
    for impact, jump in zip(found.impacts, found.jumps):
        assert jump[1] == pytest.approx(run.normal[impact.k].sum() / body.body_mass, rel=0.02)


def test_intervals_are_as_wide_as_the_errors():
    body, rng, z = BODIES["ellipse"], np.random.default_rng(8), []
    for _ in range(8):
        q, v = add_noise(random_drop(body, rng), 40.0, rng)
        found = identify_drop(body.shape, q, v, 0.01, body.friction)
        assert np.ptp(found.interval) < 0.02 * found.m_over_i
        z.append((found.m_over_i - body.mass_over_inertia) / (np.ptp(found.interval) / 3.92))
    low, high = chi2.ppf([0.005, 0.995], len(z))
    assert low < np.sum(np.square(z)) < high


def test_a_row_of_the_table_is_reproducible():
    first, again = (run_row("ellipse", 30, seed=3, drops=1) for _ in range(2))
    np.testing.assert_array_equal(first.estimates, again.estimates)
    np.testing.assert_array_equal(first.bodies.estimates, again.bodies.estimates)


def test_noise_is_measured_before_anything_is_fitted():
    run = random_drop(BODIES["square"], np.random.default_rng(2))
    rng = np.random.default_rng(3)
    q, v = run.q + 0.02 * rng.standard_normal(run.q.shape), run.v + 0.05 * rng.standard_normal(run.v.shape)
    np.testing.assert_allclose(noise_levels(q, v, run.h), [0.02] * 3 + [0.05] * 3, rtol=0.35)


def test_positions_of_another_source_at_another_rate_are_enough():
    """Stepped at 0.5 ms, recorded at 250 Hz: impacts fall between samples, and nothing but noisy positions is known."""
    body, rng, errors = BODIES["square"], np.random.default_rng(3), []
    for _ in range(4):
        fine = random_drop(body, rng, 1, 0.0005)
        q, _ = fall(body, fine.q[0], fine.v[0], fine.h, 2400)
        q = q[::8] + 0.003 * rng.standard_normal(q[::8].shape)
        found = identify_drop(body.shape, q, None, 0.004, body.friction)
        errors.append(found.m_over_i / body.mass_over_inertia - 1.0)
        assert found.status == "local" and np.isinf(found.sigma[3:]).all()
    assert np.median(np.abs(errors)) < 0.06


def test_an_impact_the_segmentation_lumps_together_is_found():
    """A square that lands on one corner and a step later on the next."""
    body = BODIES["square"]
    run = simulate(body, [0.0, 0.8964, -0.5495], [-0.3029, -0.2763, 0.428], 0.01, 80)
    assert np.flatnonzero(run.normal.any(axis=1))[:3].tolist() == [18, 47, 48]
    q, v = add_noise(run, 40.0, np.random.default_rng(0))
    found = identify_drop(body.shape, q, v, run.h, body.friction)
    assert [impact.k for impact in found.impacts][:3] == [18, 47, 48]
    assert found.m_over_i == pytest.approx(body.mass_over_inertia, rel=0.01)


def test_a_bounce_of_two_impacts_in_a_row_is_followed_and_its_sharp_likelihood_resolved():
    body = replace(BODIES["square"], mass_over_inertia=19.33)
    run = simulate(body, [0.0, 1.60142852, -0.67159453], [0.9467524, 0.20236919, -0.07379634], 0.01, 150)
    assert np.flatnonzero(run.normal.any(axis=1))[:4].tolist() == [44, 96, 133, 134]
    q, v = add_noise(run, 40.0, np.random.default_rng(2))
    found = identify_drop(body.shape, q, v, run.h, body.friction)
    assert [impact.k for impact in found.impacts] == [44, 96, 133, 134]
    assert found.m_over_i == pytest.approx(body.mass_over_inertia, rel=4e-3)


def test_noise_is_found_where_most_of_the_recording_is_rest():
    rng = np.random.default_rng(6)
    q, v = 0.01 * rng.standard_normal((200, 3)), 0.02 * rng.standard_normal((200, 3))
    v[:60, 1] -= 9.81 * 0.01 * np.arange(60)
    np.testing.assert_allclose(noise_levels(q, v, 0.01)[3:], 0.02, rtol=0.25)


@pytest.mark.parametrize("name", list(BODIES))
def test_flights_in_closed_form_are_stepped_ones(name):
    body = replace(BODIES[name], slope=0.1)
    run = random_drop(body, np.random.default_rng(6))
    q, v = fall(body, run.q[0], run.v[0], run.h, len(run.q) - 1)
    np.testing.assert_allclose(q, run.q, atol=1e-10)
    np.testing.assert_allclose(v, run.v, atol=1e-10)


def test_bad_input():
    shape, q = square(1.0), np.zeros((20, 3))
    with pytest.raises(ConfigError, match="shape"):
        identify_drop(shape, q, q[:, :2], 0.01, 0.5)
    with pytest.raises(ConfigError, match=r"q has shape \(20, 2\), expected \('N', 3\)"):
        identify_drop(shape, q[:, :2], q, 0.01, 0.5)
    for h, friction in ((0.0, 0.5), (0.01, -0.1), (np.nan, 0.5)):
        with pytest.raises(ConfigError, match="identify_drop"):
            identify_drop(shape, q, q, h, friction)
    with pytest.raises(IdentificationError, match="at least 8"):
        identify_drop(shape, q[:4], q[:4], 0.01, 0.5)
    with pytest.raises(IdentificationError, match="are not"):
        identify_drop(shape, np.full((20, 3), np.nan), q, 0.01, 0.5)


def test_free_flight_alone_is_refused():
    body = BODIES["square"]
    run = random_drop(body, np.random.default_rng(4), steps=15)
    q, v = add_noise(run, 40.0, np.random.default_rng(1))
    with pytest.raises(IdentificationError, match="no impact"):
        identify_drop(body.shape, q, v, run.h, body.friction)


def test_a_step_is_found_whatever_the_columns_sizes():
    """At 10 dB a fit went through one residual of slope 1e31 on its way: pivots of the plain equations vanish."""
    rng, jacobian = np.random.default_rng(0), np.zeros((40, 9))
    jacobian[:, :7] = 100.0 * rng.normal(size=(40, 7))
    r = rng.normal(size=40)
    jacobian[0, :6] *= [1e-6, 1e-9, 1e29, 1e29, 1e29, 1e29]
    step = damped_step(jacobian, r, 1.0)
    unit = np.sqrt(2.0 * (jacobian**2).sum(axis=0)[:7])
    scaled = jacobian[:, :7] / unit  # the same problem in units of the columns' lengths
    expected = np.linalg.solve(scaled.T @ scaled + 0.5 * np.eye(7), scaled.T @ r) / unit
    np.testing.assert_allclose(step[:7], expected, rtol=1e-6)
    assert not step[7:].any()


def test_what_a_settling_body_tells_counts_where_one_restitution_explains_it():
    """The body settles after its sixth bounce, 0.97 s after the release."""
    body, rng = BODIES["ellipse"], np.random.default_rng(10)
    run = random_drop(body, rng)
    q, v = add_noise(run, 40.0, rng)
    softer_q, softer_v = fall(replace(body, restitution=0.2), run.q[60], run.v[60], run.h, len(q) - 61)
    changed_q, changed_v = q.copy(), v.copy()
    changed_q[60:] += softer_q - run.q[60:]
    changed_v[60:] += softer_v - run.v[60:]
    drops = (q, v), (q[:97], v[:97]), (changed_q, changed_v)
    whole, first, changed = (identify_drop(body.shape, *drop, run.h, body.friction) for drop in drops)
    assert [found.whole for found in (whole, first, changed)] == [True, True, False]
    assert np.ptp(whole.interval) < 0.5 * np.ptp(first.interval)
    assert whole.m_over_i == pytest.approx(body.mass_over_inertia, rel=3e-3)
