"""The stepped motion obeys mechanics and every complementarity condition of eq. 8."""

import numpy as np
import pytest

from contact_estimation.identify.planar.shapes import Ellipse, contact_rows, square
from contact_estimation.identify.planar.stepping import GRAVITY, FallingBody, simulate

DROPS = [(FallingBody(square(1.0), 6.0), 3), (FallingBody(Ellipse(2.0, 1.0), 0.8), 4)]


@pytest.mark.parametrize("body, seed", DROPS)
def test_complementarity_and_newton_hold_in_every_step(body, seed):
    rng = np.random.default_rng(seed)
    theta = rng.uniform(-3, 3)
    start = [0.0, 0.3 - body.shape.levers(theta)[:, 1].min(), theta]
    run = simulate(body, start, rng.uniform(-2, 2, 3), 0.01, 150)
    touched = 0
    for k in range(150):
        _, normal, tangent = contact_rows(body.shape, run.q[k])
        c_n, c_t, slip = run.normal[k], run.friction_impulse[k], tangent @ run.v[k + 1]
        change = body.mass(None) @ (run.v[k + 1] - run.v[k]) + 0.01 * np.array([0.0, GRAVITY, 0.0])
        np.testing.assert_allclose(change, normal.T @ c_n + tangent.T @ c_t, atol=1e-9)
        assert c_n.min() >= 0.0 and (np.abs(c_t) <= body.friction * c_n + 1e-9).all()
        for c in np.flatnonzero(c_n > 1e-9):
            touched += 1
            assert slip[c] * c_t[c] <= 1e-9
            if abs(slip[c]) > 1e-7:
                assert abs(c_t[c]) == pytest.approx(body.friction * c_n[c])
    assert touched > 1 and contact_rows(body.shape, run.q)[0].min() > -0.02


def test_newtons_restitution():
    body = FallingBody(Ellipse(0.2, 0.2), 50.0, restitution=0.6, friction=0.0)
    run = simulate(body, [0, 0.5, 0], [0, 0, 0], 0.01, 60)
    k = int(np.argmax(run.normal[:, 0] > 0))
    assert run.v[k + 1, 1] == pytest.approx(-0.6 * run.v[k, 1])


def test_a_body_at_rest_stays_and_is_carried():
    body = FallingBody(square(1.0), 6.0, body_mass=2.0)
    run = simulate(body, [0, 0.5, 0], [0, 0, 0], 0.01, 50)
    np.testing.assert_allclose(run.q[-1], [0, 0.5, 0], atol=1e-9)
    assert run.normal[-1].sum() == pytest.approx(2.0 * GRAVITY * 0.01)


def test_a_block_slides_when_the_slope_beats_friction():
    for friction, moves in ((0.5, False), (0.2, True)):
        body = FallingBody(square(1.0), 6.0, friction=friction, slope=0.3)
        run = simulate(body, [0, 0.5, 0], [0, 0, 0], 0.01, 100)
        expected = 0.5 * GRAVITY * (np.sin(0.3) - friction * np.cos(0.3)) if moves else 0.0
        assert run.q[-1, 0] == pytest.approx(expected, rel=0.05, abs=1e-6)
