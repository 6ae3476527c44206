"""Cubature update."""

import numpy as np
import pytest

from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.model import Mean
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.update import cholesky, correct, differentiate, regress


@pytest.mark.parametrize("linearise", [lambda f, m, p: regress(f, m, p, 7), differentiate])
def test_a_linear_wrench_gives_the_kalman_update(linearise):
    rng = np.random.default_rng(0)
    h, root = rng.standard_normal((3, 4)), rng.standard_normal((4, 4))
    covariance, noise, mean = root @ root.T, np.diag([0.1, 0.2, 0.3]), rng.standard_normal(4)
    z = rng.standard_normal(3)
    line = linearise(lambda c: [h @ c], mean, covariance)[0]
    got = correct(line, z, noise, mean, line.slope, covariance)
    innovation = h @ covariance @ h.T + noise
    gain = covariance @ h.T @ np.linalg.inv(innovation)
    assert np.allclose(got.increment, gain @ (z - h @ mean), atol=1e-6)
    assert np.allclose(got.covariance, covariance - gain @ h @ covariance, atol=1e-6)
    error = z - h @ mean
    density = -0.5 * (error @ np.linalg.solve(innovation, error) + np.linalg.slogdet(2 * np.pi * innovation)[1])
    assert got.log_likelihood == pytest.approx(density, abs=1e-6)
    assert got.nis == pytest.approx(error @ np.linalg.solve(innovation, error), abs=1e-6)


def test_regression_is_the_papers_unscented_update():
    """slope P_cc slope^T + residual = P_zz and slope P_cc = P_zc, which is eq. 16-21, against a large Monte Carlo
    sample."""

    def wrench(c):
        return [np.vstack([c[0] * np.exp(0.3 * c[1]), c[0] * c[1] * c[2]])]

    rng = np.random.default_rng(3)
    mean, root = np.array([1.0, 0.5, -0.3]), np.array([[0.5, 0, 0], [0.2, 0.4, 0], [0.1, -0.1, 0.3]])
    line = regress(wrench, mean, root @ root.T, 7)[0]
    draws = mean[:, None] + root @ rng.standard_normal((3, 400000))
    values = wrench(draws)[0]
    assert np.allclose(line.mean, values.mean(axis=1), atol=5e-3)
    assert np.allclose(line.slope @ root @ root.T, np.cov(values, draws)[:2, 2:], atol=5e-3)
    assert np.allclose(line.slope @ root @ root.T @ line.slope.T + line.residual, np.cov(values), rtol=0.02, atol=5e-3)


def test_reduced_coordinates_lose_nothing_against_the_full_state():
    """The rule over parameters and one deformation noise predicts what the rule over parameters and the whole pose
    does."""
    cfg = ProbingSettings()
    model = PlanarModel(Bounds(0.0, cfg.stiffness_max), Bounds(0.0, cfg.friction_max))
    pose = np.array([0.3, 0.5, 0.4])
    s, covariance, origin = model.start(cfg, pose, np.array([0.02, -0.18]), 0.3)
    s[3] += 0.004
    local, twist = model.shift(pose, origin), np.array([0.03, 0.0, 0.0])
    noise = np.diag([cfg.position_noise**2] * 2 + [cfg.angle_noise**2])
    rows, _ = model.prepare(Mean(local, twist, s))

    def block(p, q):
        return np.block([[p, np.zeros((len(p), len(q)))], [np.zeros((len(q), len(p))), q]])

    reduced = regress(
        lambda c: model.wrenches(Mean(local, twist, s), c, None, model.modes[:1]),
        np.append(s, 0.0),
        block(covariance, rows[:, :3] @ noise @ rows[:, :3].T),
        7,
    )[0]

    def full(c):
        posed = local[:, None] + c[6:]
        quiet = np.vstack([c[:6], np.zeros(c.shape[1])])
        return model.wrenches(Mean(posed, twist, s), quiet, [], model.modes[:1])

    whole = regress(full, np.concatenate([s, np.zeros(3)]), block(covariance, noise), 7)[0]
    spread = np.sqrt(np.diag(whole.slope @ block(covariance, noise) @ whole.slope.T + whole.residual))
    assert np.all(np.abs(reduced.mean - whole.mean) < 1e-3 * spread)
    assert np.all(
        np.abs(reduced.slope[:, :6] @ covariance - whole.slope[:, :6] @ covariance)
        < 1e-3 * np.outer(spread, np.sqrt(np.diag(covariance)))
    )


def test_cholesky_lifts_what_rounding_made_indefinite():
    root = cholesky(np.array([[1.0, 1.0], [1.0, 1.0 - 1e-12]]))
    assert np.allclose(root @ root.T, np.ones((2, 2)), atol=1e-9)


def test_noise_of_pose_and_twist_is_white_and_only_the_parameters_residual_repeats():
    """f = s + s^2 + n^2: the residual of s is 2 var(s)^2 (repeats), that of n 2 var(n)^2 (white)."""

    def function(c):
        return [(c[0] + c[0] ** 2 + c[1] ** 2)[None]]

    mean, covariance = np.zeros(2), np.diag([0.3**2, 0.2**2])
    line = regress(function, mean, covariance, 7, parameters=1)[0]
    assert line.white[0, 0] == pytest.approx(2.0 * 0.2**4, rel=1e-9)
    assert line.noise(8.0)[0, 0] == pytest.approx(8.0 * 2.0 * 0.3**4 + 2.0 * 0.2**4, rel=1e-9)
    assert line.noise(1.0)[0, 0] == pytest.approx(2.0 * 0.3**4 + 2.0 * 0.2**4, rel=1e-9)
