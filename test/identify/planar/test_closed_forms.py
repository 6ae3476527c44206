"""Closed forms against the LCP, and regressions that hold for the true parameters."""

import numpy as np
import pytest
from closed_forms import ContactStep, ratio_least_squares

from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.identify.planar.shapes import Ellipse
from contact_estimation.identify.planar.stepping import FallingBody, gravity, simulate


def steps(seed, count, pushed):
    """One LCP step of random bodies that land: (body, v, v_next, lever, force, run)."""
    rng = np.random.default_rng(seed)
    while count:
        body = FallingBody(Ellipse(0.3, 0.2), rng.uniform(10, 40), rng.uniform(0.5, 3), 0.3, 0.4)
        theta = rng.uniform(-3, 3)
        r = body.shape.levers(theta)[0]
        v = np.array([rng.uniform(-2, 2), -2.0, rng.uniform(-5, 5)])
        force = 5.0 * rng.standard_normal(3) if pushed else np.zeros(3)
        run = simulate(body, [0.0, -r[1], theta], v, 0.01, 1, lambda k, q, w, f=force: f)
        if run.normal[0, 0] > 0:
            count -= 1
            yield body, v, run.v[1], r, force, run


def test_both_modes_agree_with_the_lcp_and_their_regressions_hold():
    seen = set()
    for body, v, after, r, force, run in steps(0, 40, pushed=True):
        m, inertia = body.body_mass, body.body_mass / body.mass_over_inertia
        theta = np.array([m / inertia, 1 / m, 1 / inertia])
        step = ContactStep(v, r, 0.01, gravity(), force, 0.4)
        if run.slip[0, 0] > 1e-9:
            sign = np.sign(after[0] - r[1] * after[2])
            impulse = step.sliding_impulse(m, inertia, 0.3, sign)
            y, f = step.sliding_regression(after, 0.3, sign)
        else:
            impulse = step.sticking_impulse(m, inertia)
            y, f = step.sticking_regression(after)
            assert not y[:, 1].any()
        seen.add(run.slip[0, 0] > 1e-9)
        np.testing.assert_allclose(impulse, (run.normal[0, 0], run.friction_impulse[0, 0]), atol=1e-9)
        np.testing.assert_allclose(y @ theta, f, atol=1e-9)
    assert seen == {True, False}


def test_mass_and_inertia_separate_only_under_a_known_force():
    for pushed, rank in ((True, 3), (False, 1)):
        body, v, _, r, _, run = next(s for s in steps(1, 200, pushed) if s[-1].slip[0, 0] > 1e-9)
        rng, rows = np.random.default_rng(2), []
        for _ in range(4):
            push = 5.0 * rng.standard_normal(3) if pushed else np.zeros(3)
            run = simulate(body, run.q[0], v, 0.01, 1, lambda k, q, w, f=push: f)
            slip = run.v[1, 0] - r[1] * run.v[1, 2]
            if abs(slip) > 1e-9:
                step = ContactStep(v, r, 0.01, gravity(), push, 0.4)
                rows.append(step.sliding_regression(run.v[1], 0.3, np.sign(slip))[0])
        assert np.linalg.matrix_rank(np.vstack(rows), tol=1e-9) == rank


def test_ratio_of_a_fall_without_external_force():
    body, v, after, r, _, _ = next(steps(3, 1, pushed=False))
    assert ratio_least_squares([v], [after], [r], 0.01, gravity()) == pytest.approx(body.mass_over_inertia)


def test_a_flat_landing_excites_nothing():
    with pytest.raises(IdentificationError, match="18a"):
        ratio_least_squares([[0, -2.0, 0]], [[0, 1.0, 0]], [[0.0, -0.5]], 0.01, gravity())


def test_sliding_needs_a_direction():
    with pytest.raises(ConfigError, match="slip_sign"):
        ContactStep(np.zeros(3), (0, -1), 0.01, gravity()).sliding_impulse(1, 1, 0.3, 0)
