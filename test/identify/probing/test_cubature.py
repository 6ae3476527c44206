"""Integration rules."""

import itertools

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.identify.probing.cubature import rule


def gaussian_moment(exponents):
    """E of a monomial under N(0, I)."""
    return (
        0.0 if any(e % 2 for e in exponents) else float(np.prod([np.prod(np.arange(e - 1, 0, -2)) for e in exponents]))
    )


@pytest.mark.parametrize("dimension", [1, 2, 6, 7, 10])
@pytest.mark.parametrize("degree", [3, 5, 7])
def test_every_monomial_up_to_the_degree_is_exact(dimension, degree):
    made = rule(dimension, degree)
    for total in range(degree + 1):
        for axes in itertools.combinations_with_replacement(range(min(dimension, 4)), total):
            exponents = np.bincount(np.array(axes, dtype=int), minlength=dimension)
            value = made.weights @ np.prod(made.points ** exponents[:, None], axis=0)
            assert value == pytest.approx(gaussian_moment(exponents), abs=1e-10)


def test_degree_7_is_no_more_than_degree_7():
    made = rule(6, 7)
    assert abs(made.weights @ made.points[0] ** 8 - 105.0) > 1.0


def test_points_stay_near_and_weights_stay_tame():
    made = rule(9, 7)
    assert np.abs(made.points).max() < 4.0 and np.abs(made.weights).sum() < 3.0


@pytest.mark.parametrize("dimension, degree", [(3, 4), (0, 7)])
def test_unknown_rules_are_refused(dimension, degree):
    with pytest.raises(ConfigError, match="3, 5 or 7"):
        rule(dimension, degree)
