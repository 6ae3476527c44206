"""What an estimate tells of its contacts: normal and link, whatever the observer."""

import numpy as np
import pytest

from contact_estimation.filters.observer import ContactPlace, ContactState
from contact_estimation.filters.registry import open_stream
from contact_estimation.robot import load_arm

NAN = np.full(3, np.nan)


def contact(probability, stiffness=NAN, place=None):
    return ContactState("contact", probability, stiffness, NAN, NAN, NAN, np.zeros((9, 9)), place=place)


def test_the_normal_of_a_known_contact_is_the_direction_of_its_stiffness():
    np.testing.assert_allclose(contact(0.9, np.array([0.0, 3.0, 4.0])).normal, [0.0, 0.6, 0.8])


def test_the_normal_of_an_unknown_contact_is_the_direction_of_its_force():
    place = ContactPlace({"link": 1.0}, force=np.array([0.0, -20.0, 0.0]))
    np.testing.assert_allclose(contact(0.9, place=place).normal, [0.0, -1.0, 0.0])


@pytest.mark.parametrize("probability", [0.4, np.nan])
def test_a_contact_that_is_not_closed_has_no_normal(probability):
    assert np.isnan(contact(probability, np.array([0.0, 0.0, 1e4])).normal).all()


@pytest.mark.parametrize(("observer", "tells"), [("ekf", True), ("momentum", False)])
def test_an_observer_with_a_contact_model_tells_link_and_normal(observer, tells):
    arm = load_arm("fr3")
    stream, q = open_stream(arm, observer), np.array(arm.settings.ready)
    for k in range(3):
        estimate = stream.push(1 + 2_000_000 * k, q, 0 * q, arm.gravity(q))
    assert estimate.contact_link[0] == ("fr3_link7" if tells else "")
    assert np.isfinite(estimate.contacts[0].normal).all() == tells
