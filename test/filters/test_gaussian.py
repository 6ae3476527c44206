"""The normal distribution of mean zero, against scipy's."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from contact_estimation.filters.gaussian import ZeroMeanGaussian


@pytest.fixture
def covariance():
    root = np.random.default_rng(3).standard_normal((4, 4))
    return root @ root.T + 0.1 * np.eye(4)


def test_density_and_distance(covariance):
    deviation, normal = np.array([0.3, -1.2, 2.0, 0.5]), ZeroMeanGaussian(covariance)
    expected = multivariate_normal(np.zeros(4), covariance).logpdf(deviation)
    assert normal.log_density(deviation) - 2 * np.log(2 * np.pi) == pytest.approx(expected)
    assert normal.square(deviation) == pytest.approx(deviation @ np.linalg.inv(covariance) @ deviation)


def test_whitened_deviations_have_unit_covariance(covariance):
    draws = np.random.default_rng(0).multivariate_normal(np.zeros(4), covariance, 20000).T
    assert np.cov(ZeroMeanGaussian(covariance).whiten(draws)) == pytest.approx(np.eye(4), abs=0.05)


def test_what_is_no_covariance_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        ZeroMeanGaussian(np.diag([1.0, -1.0]))
