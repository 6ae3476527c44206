"""Johnson-bounded parameters."""

import numpy as np
import pytest
from scipy.stats import johnsonsb

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.studies.probing.ablation import Unbounded

BOUNDS = Bounds(0.0, 20000.0)


def test_free_and_bounded_are_inverse_and_stay_inside():
    x = np.array([1.0, 5000.0, 19999.0])
    assert np.allclose(BOUNDS.to_bounded(BOUNDS.to_free(x)), x, rtol=1e-12)
    assert np.all(
        (BOUNDS.to_bounded(np.array([-30.0, 30.0])) > 0.0) & (BOUNDS.to_bounded(np.array([-30.0, 30.0])) < 20000.0)
    )


def test_slope_is_the_derivative():
    s, step = 0.7, 1e-6
    assert BOUNDS.slope(s) == pytest.approx(
        (BOUNDS.to_bounded(s + step) - BOUNDS.to_bounded(s - step)) / (2 * step), rel=1e-8
    )


@pytest.mark.parametrize("gamma, sigma", [(0.0, 0.3), (-1.0, 1.2), (2.0, 0.05)])
def test_moments_agree_with_the_integrated_density(gamma, sigma):
    """Scipy's Johnson S_B distribution has s = a + b ln(y / (1 - y)) standard normal."""
    bounds = Bounds(-1.0, 3.0)
    exact = johnsonsb(-gamma / sigma, 1.0 / sigma, loc=bounds.lower, scale=bounds.upper - bounds.lower)
    assert bounds.moments(gamma, sigma) == pytest.approx((exact.mean(), exact.std()), abs=1e-6)


@pytest.mark.parametrize("kind", [Bounds, Unbounded])
def test_fit_returns_the_asked_moments(kind):
    bounds = kind(0.0, 20000.0)
    assert bounds.moments(*bounds.fit(5000.0, 2000.0)) == pytest.approx((5000.0, 2000.0), rel=1e-5)


def test_interval_covers_the_mass_it_should():
    rng = np.random.default_rng(0)
    low, high = BOUNDS.interval(-1.0, 0.5)
    x = BOUNDS.to_bounded(-1.0 + 0.5 * rng.standard_normal(20000))
    assert np.mean((x > low) & (x < high)) == pytest.approx(0.954, abs=0.01)


def test_values_outside_are_refused_with_the_bounds_named():
    with pytest.raises(IdentificationError, match="20000"):
        BOUNDS.to_free(20001.0)
    with pytest.raises(IdentificationError, match="lower the standard deviation"):
        BOUNDS.fit(5000.0, 15000.0)
