"""The layout of the fit's unknowns."""

import numpy as np
import pytest

from contact_estimation.exceptions import IdentificationError
from contact_estimation.fit.unknowns import Unknowns

PRIORS = (5e4, 2e-3, 5e-2, 0.2)


def test_contacts_share_everything_but_the_rests():
    unknowns = Unknowns(2, 3, ("stiffness", "rest"), PRIORS)
    assert unknowns.size == 2 * (7 + 9)
    places = np.array([[unknowns.places(c, r) for r in range(3)] for c in range(2)])
    assert set(places.ravel()) == set(range(unknowns.size))
    assert (places[:, :, [0, 1, 2, 6, 7, 8, 9]] == places[:, :1, [0, 1, 2, 6, 7, 8, 9]]).all()
    assert len(set(places[:, :, 3:6].ravel())) == 18


def test_what_is_not_estimated_is_neither_free_nor_pulled():
    unknowns = Unknowns(1, 1, ("rest", "tangential"), PRIORS)
    K, rest, point, share = np.split(unknowns.places(0, 0), [3, 6, 9])
    assert not unknowns.free[K].any() and not unknowns.prior[point].any()
    assert unknowns.free[rest].all() and unknowns.free[share].all() and (unknowns.shares == (np.arange(10) == share)).all()
    np.testing.assert_allclose(unknowns.prior[rest], (1e-3 / 2e-3) ** 2)


@pytest.mark.parametrize("estimate", [(), ("stiffness", "colour")])
def test_what_a_fit_cannot_estimate_is_refused(estimate):
    with pytest.raises(IdentificationError, match="a fit estimates any of stiffness, rest, point, tangential"):
        Unknowns(1, 1, estimate, PRIORS)
