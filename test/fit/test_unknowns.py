"""The layout of the fit's unknowns."""

import numpy as np
import pytest

from contact_estimation.contact import ContactSettings
from contact_estimation.exceptions import IdentificationError
from contact_estimation.fit.contact_torque import FitContact
from contact_estimation.fit.unknowns import Unknowns
from contact_estimation.robot import load_arm

PRIORS = (5e4, 2e-3, 5e-2)
UP, SIDE = [0.0, 0.0, 2e4], [-1e4, 0.0, 0.0]


def made(stiffnesses, recordings, estimate, law="spring"):
    arm = load_arm("ur16e")
    contacts = [FitContact(arm, ContactSettings(law=law, stiffness=k), estimate) for k in stiffnesses]
    return Unknowns(contacts, recordings, estimate, PRIORS)


def test_contacts_share_everything_but_the_rests():
    unknowns = made([UP, SIDE], 3, ("stiffness", "rest"), "mindlin")
    assert unknowns.size == 2 * (7 + 9)
    places = np.array([[unknowns.places(c, r) for r in range(3)] for c in range(2)])
    assert set(places.ravel()) == set(range(unknowns.size))
    assert (places[:, :, [0, 1, 2, 6, 7, 8, 9]] == places[:, :1, [0, 1, 2, 6, 7, 8, 9]]).all()
    assert len(set(places[:, :, 3:6].ravel())) == 18


def test_what_is_not_estimated_is_neither_free_nor_pulled():
    unknowns = made([UP], 1, ("rest", "tangential"))
    K, rest, point, share = np.split(unknowns.places(0, 0), [3, 6, 9])
    theta = np.arange(10.0)
    mean, prior = unknowns.prior(theta)
    assert not unknowns.free[K].any() and not prior[np.ix_(K, K)].any() and not prior[np.ix_(point, point)].any()
    np.testing.assert_allclose(mean * unknowns.scale, theta)
    assert unknowns.free[rest].all() and unknowns.free[share].all()
    assert ((unknowns.lower == 0.0) == (np.arange(10) == share)).all()
    np.testing.assert_allclose(prior[np.ix_(rest, rest)], np.diag([(1e-3 / 2e-3) ** 2] * 3))


def test_a_contact_that_holds_its_point_keeps_near_its_configured_normal():
    unknowns = made([UP], 1, ("stiffness", "tangential"))
    theta = np.zeros(unknowns.size)
    theta[:3] = [4e3, 0.0, 2e4]
    mean, prior = unknowns.prior(theta)
    np.testing.assert_allclose(mean[:3], [0.0, 0.0, 2.0])
    wide = (1e4 / PRIORS[0]) ** 2
    np.testing.assert_allclose(np.diag(prior)[:3], [wide + 1 / 0.3**2, wide + 1 / 0.3**2, wide])


@pytest.mark.parametrize("estimate", [(), ("stiffness", "colour")])
def test_what_a_fit_cannot_estimate_is_refused(estimate):
    with pytest.raises(IdentificationError, match="a fit estimates any of stiffness, rest, point, tangential"):
        made([UP], 1, estimate)


def test_a_law_without_such_parameters_is_named():
    with pytest.raises(
        IdentificationError, match="no contact has a law with 'law' parameters to estimate; found spring"
    ):
        made([UP], 1, ("stiffness", "law"))
