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


def test_closed_form_agrees_with_sampling():
    rng = np.random.default_rng(2)
    velocities = 0.01 + 0.02 * rng.standard_normal((1, 100000))
    sampled = gpb1.sampled_probabilities(velocities, ((1.0,), (-1.0,)))
    assert gpb1.closed_probability(0.01, 0.02) == pytest.approx(sampled[0], abs=5e-3)
    assert sampled.sum() == pytest.approx(1.0)
    assert gpb1.closed_probability(-1.0, 0.0) == 0.0


def test_modes_of_several_contacts_are_joint():
    velocities = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]])
    modes = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
    assert np.allclose(gpb1.sampled_probabilities(velocities, modes), 0.25)
