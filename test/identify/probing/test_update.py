"""The compiled update: regression, Kalman step, merge and motion against textbook formulas in numpy."""

import functools

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from contact_estimation.codegen import named_function, symbols
from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.model import Mean
from contact_estimation.identify.probing.planar import NO_AXES, PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.update import (
    Density,
    Lines,
    Motion,
    Regression,
    Steps,
    bind,
    compile_update,
    differentiate,
    wrench_library,
    wrenches,
)

RNG = np.random.default_rng(0)


def toy(size, *equations):
    """Library of a wrench that is given as functions of c, one per mode."""
    s = symbols(c=size, conditions=1)
    return compile_update(named_function("ce_wrench", s, {"wrench": ca.horzcat(*(f(s.c) for f in equations))}), 1)


def regressed(library, density, modes, size, varying=None):
    """Regressions of every mode on the last ``varying`` entries of c."""
    varying = varying or len(density.mean)
    lines = tuple(np.zeros((modes, *shape)) for shape in ((size,), (size, varying), (size, size)))
    regression = Regression(library, density, lines, 7)
    regression.spread()
    for mode in range(modes):
        regression.fit(mode)
    return Lines(*lines, np.zeros_like(lines[2]))


def density_of(mean, covariance):
    return Density(np.array(mean, float), np.array(covariance, float), np.zeros(1))


def spd(size):
    root = RNG.standard_normal((size, size))
    return root @ root.T


def test_linear_wrenches_give_the_kalman_update_and_its_merge():
    """Two modes whose slopes differ, a slow error beside c, coloured and white residual: against the formulas."""
    h = RNG.standard_normal((2, 3, 4))
    library = toy(4, *(functools.partial(ca.mtimes, ca.DM(one)) for one in h))
    covariance, mean, noise, bias_map = spd(7), RNG.standard_normal(4), spd(3), RNG.standard_normal((3, 2))
    selector = np.zeros((4, 7))
    selector[:, :4] = RNG.standard_normal((4, 4))
    lines = regressed(library, density_of(mean, selector @ covariance @ selector.T), 2, 3)
    assert np.allclose(lines.mean, h @ mean) and np.allclose(lines.slope, h) and np.allclose(lines.residual, 0.0)
    lines.residual[:], lines.white[:] = 0.3 * np.eye(3), 0.1 * np.eye(3)
    predicted, weights, z = covariance.copy(), np.array([0.3, 0.7]), RNG.standard_normal(3)
    steps = Steps(library, covariance, selector, lines, (5, 2), 8.0)
    steps.noise[:], steps.bias_map[:] = noise, bias_map
    means, covariances = [], []
    for mode in range(2):
        steps.innovation[:] = z - lines.mean[mode]
        steps.add(mode)
        jacobian = h[mode] @ selector
        jacobian[:, 5:] = bias_map
        total = jacobian @ predicted @ jacobian.T + noise + (0.1 + 8.0 * 0.2) * np.eye(3)
        gain, error = predicted @ jacobian.T @ np.linalg.inv(total), z - h[mode] @ mean
        means.append(gain @ error)
        covariances.append(predicted - gain @ jacobian @ predicted)
        density = -0.5 * (error @ np.linalg.solve(total, error) + np.linalg.slogdet(2.0 * np.pi * total)[1])
        assert steps.log_likelihoods[mode] == pytest.approx(density)
        assert steps.whitened[mode] @ steps.whitened[mode] == pytest.approx(error @ np.linalg.solve(total, error))
    steps.merge(weights)
    merged = weights @ np.array(means)
    spread = [np.outer(m - merged, m - merged) + c for m, c in zip(means, covariances)]
    assert np.allclose(steps.increment, merged) and np.allclose(covariance, np.tensordot(weights, spread, 1))


def test_regression_is_the_papers_unscented_update():
    """slope P_cc slope^T + residual = P_zz and slope P_cc = P_zc, which is eq. 16-21, against a large Monte Carlo
    sample."""
    library = toy(3, lambda c: ca.vertcat(c[0] * ca.exp(0.3 * c[1]), c[0] * c[1] * c[2]))
    mean, root = np.array([1.0, 0.5, -0.3]), np.array([[0.5, 0, 0], [0.2, 0.4, 0], [0.1, -0.1, 0.3]])
    lines = regressed(library, density_of(mean, root @ root.T), 1, 2)
    draws = mean[:, None] + root @ np.random.default_rng(3).standard_normal((3, 400000))
    values = np.vstack([draws[0] * np.exp(0.3 * draws[1]), draws[0] * draws[1] * draws[2]])
    slope, covariance = lines.slope[0], root @ root.T
    assert np.allclose(lines.mean[0], values.mean(axis=1), atol=5e-3)
    assert np.allclose(slope @ covariance, np.cov(values, draws)[:2, 2:], atol=5e-3)
    assert np.allclose(slope @ covariance @ slope.T + lines.residual[0], np.cov(values), rtol=0.02, atol=5e-3)


def test_the_residual_of_the_noises_alone_is_that_at_the_parameters_mean():
    """f = s + s^2 + n^2: the residual of s is 2 var(s)^2 (repeats), that of n 2 var(n)^2 (white)."""
    library = toy(2, lambda c: c[0] + c[0] ** 2 + c[1] ** 2)
    density = density_of([0.0, 0.0], np.diag([0.3**2, 0.2**2]))
    whole, white = (regressed(library, density, 1, 1, varying).residual for varying in (2, 1))
    assert whole[0, 0, 0] == pytest.approx(2.0 * (0.3**4 + 0.2**4), rel=1e-9)
    assert white[0, 0, 0] == pytest.approx(2.0 * 0.2**4, rel=1e-9)


@pytest.fixture(scope="module")
def planar():
    """Model, start and conditions of a planar probe in contact."""
    cfg = ProbingSettings()
    model = PlanarModel(Bounds(0.0, cfg.stiffness_max), Bounds(0.0, cfg.friction_max))
    pose, twist = np.array([0.3, 0.5, 0.4]), np.array([0.03, 0.0, 0.0])
    s, covariance, origin = model.start(cfg, pose, np.array([0.02, -0.18]), 0.3)
    s[3] += 0.004
    return cfg, model, Mean(model.shift(pose, origin), twist, s), covariance


def test_reduced_coordinates_lose_nothing_against_the_full_state(planar):
    """The rule over parameters and one deformation noise predicts what samples of parameters and whole pose do."""
    cfg, model, mean, covariance = planar
    noise = np.diag([cfg.position_noise**2] * 2 + [cfg.angle_noise**2])
    row = model.prepare(mean)[0][:, :3]
    reduced = np.zeros((7, 7))
    reduced[:6, :6], reduced[6:, 6:] = covariance, row @ noise @ row.T
    density = Density(np.append(mean.s, 0.0), reduced, model.conditions_at(mean, NO_AXES))
    lines = regressed(wrench_library(model), density, 2, 3)
    rng, count = np.random.default_rng(1), 20000
    draws = rng.multivariate_normal(mean.s, covariance, count)
    poses = rng.multivariate_normal(mean.pose, noise, count)
    values = np.array(
        [
            wrenches(model, model.conditions_at(Mean(pose, mean.twist, s), NO_AXES), np.append(s, 0.0)[:, None])
            for pose, s in zip(poses[:2000], draws[:2000])
        ]
    )[:, 0, :, 0]
    spread = np.sqrt(np.diag(lines.slope[0] @ reduced @ lines.slope[0].T + lines.residual[0]))
    assert np.all(np.abs(lines.mean[0] - values.mean(axis=0)) < 0.1 * spread)
    assert np.allclose(values.std(axis=0) / spread, 1.0, atol=0.1)


def test_differentiation_gives_the_slope_of_a_narrow_density(planar):
    _, model, mean, _ = planar
    density = Density(np.append(mean.s, 0.0), 1e-12 * np.eye(7), model.conditions_at(mean, NO_AXES))
    values, slopes = differentiate(model, density)
    lines = regressed(wrench_library(model), density, 2, 3)
    assert np.allclose(lines.mean, values) and np.allclose(lines.slope, slopes, rtol=1e-5, atol=1e-3)


def test_a_factor_of_what_rounding_made_indefinite_is_that_of_the_nearest_matrix():
    library, root = toy(2, lambda c: ca.sum1(c)), np.zeros((2, 2))
    for last in (1.0 - 1e-12, 0.9):
        matrix = np.array([[1.0, 1.0], [1.0, last]])
        values, vectors = np.linalg.eigh(matrix)
        library.ce_root.argtypes = library.ce_spread.argtypes[2:5]
        bind(library.ce_root, 2, matrix, root)()
        assert np.allclose(root @ root.T, (vectors * np.maximum(values, 0.0)) @ vectors.T, atol=1e-9)


def test_prediction_equals_van_loan_and_keeps_other_states():
    library, dt, jerk, size = toy(2, lambda c: ca.sum1(c)), 0.04, 3.0, 4
    covariance = spd(size)
    before = covariance.copy()
    a, noise = np.diag([1.0, 1.0], 1), np.diag([0.0, 0.0, jerk**2])
    block = expm(dt * np.block([[-a, noise], [np.zeros((3, 3)), a.T]]))
    f, q = np.eye(size), np.zeros((size, size))
    f[:3, :3] = block[3:, 3:].T
    q[:3, :3] = f[:3, :3] @ block[:3, 3:]
    Motion(library, covariance, np.array([jerk**2]), np.ones(2)).predict(dt)
    assert np.allclose(covariance, f @ before @ f.T + q, rtol=1e-12, atol=1e-18)


def test_pose_and_twist_enter_as_one_kalman_update():
    library, size, variances = toy(2, lambda c: ca.sum1(c)), 5, np.array([0.2, 0.5])
    covariance, innovation = spd(size), RNG.standard_normal(2)
    gain = covariance[:, :2] @ np.linalg.inv(covariance[:2, :2] + np.diag(variances))
    expected = covariance - gain @ covariance[:2]
    motion = Motion(library, covariance, np.ones(1), variances)
    motion.correct(innovation[:1], innovation[1:])
    assert np.allclose(motion.increment, gain @ innovation) and np.allclose(covariance, expected)
