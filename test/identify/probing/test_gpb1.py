"""Merging of the sign modes."""

import numpy as np
import pytest

from contact_estimation.identify.probing import gpb1


def test_merge_has_the_moments_of_the_mixture():
    rng = np.random.default_rng(1)
    weights, means = np.array([0.3, 0.7]), np.array([[0.0, 1.0], [2.0, -1.0]])
    covariances = np.array([np.diag([1.0, 0.5]), [[0.4, 0.1], [0.1, 0.3]]])
    pick = rng.random(200000) < weights[0]
    draws = [rng.multivariate_normal(m, c, 200000) for m, c in zip(means, covariances)]
    samples = np.where(pick[:, None], *draws)
    mean, covariance = gpb1.merge(weights, means, covariances)
    assert np.allclose(mean, samples.mean(axis=0), atol=0.02)
    assert np.allclose(covariance, np.cov(samples.T), atol=0.03)


def test_posterior_is_bayes_rule_and_survives_tiny_likelihoods():
    assert gpb1.posterior(np.array([0.5, 0.5]), np.log([0.2, 0.6])) == pytest.approx([0.25, 0.75])
    assert gpb1.posterior(np.array([0.0, 1.0]), np.array([0.0, -5000.0])) == pytest.approx([0.0, 1.0])


def test_mode_probabilities_agree_with_sampling():
    rng = np.random.default_rng(2)
    slip, std = np.array([0.01, -0.03]), np.array([0.02, 0.02])
    modes = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
    drawn = np.sign(slip + std * rng.standard_normal((100000, 2)))
    shares = [np.mean(np.all(drawn == mode, axis=1)) for mode in modes]
    assert gpb1.mode_probabilities(slip, std, modes) == pytest.approx(shares, abs=5e-3)
    assert gpb1.mode_probabilities(np.array([-1.0]), np.zeros(1), ((1.0,), (-1.0,))) == pytest.approx([0.0, 1.0])
