"""The chi-square distribution against SciPy's."""

import math

import pytest
from scipy.stats import chi2

from contact_estimation.filters.chi_square import chi_square_quantile, chi_square_survival


@pytest.mark.parametrize("dof", [0.3, 1, 2, 6, 12.5, 333.3, 5000])
@pytest.mark.parametrize("probability", [0.9, 0.1, 1e-4, 1e-12])
def test_quantile_and_survival_are_those_of_scipy(dof, probability):
    value = chi2.isf(probability, dof)
    assert chi_square_quantile(dof, probability) == pytest.approx(value, rel=1e-10)
    assert chi_square_survival(dof, value) == pytest.approx(probability, rel=1e-8)


def test_a_value_of_zero_is_exceeded_for_certain():
    assert chi_square_survival(3, 0.0) == 1.0


def test_infinity_is_never_exceeded_and_what_is_no_number_gives_none():
    assert chi_square_survival(3, math.inf) == 0.0
    assert math.isnan(chi_square_survival(3, math.nan)) and math.isnan(chi_square_survival(math.nan, 3))


def test_no_value_is_never_exceeded():
    assert chi_square_quantile(3, 0.0) == math.inf


@pytest.mark.parametrize("dof, probability", [(0, 0.05), (3, -0.1), (3, 1.5)])
def test_what_no_distribution_has_is_an_error(dof, probability):
    with pytest.raises(ValueError, match=r"degrees of freedom and probability"):
        chi_square_quantile(dof, probability)
