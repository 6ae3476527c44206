"""A contact differs from free space by its force, or by friction that free space cannot have."""

import numpy as np
import pytest

from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.settings import ImmSettings, UnknownContactSettings
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.imm.touch_test import TouchTest
from contact_estimation.filters.kalman import pack_array

SIGNIFICANCE = 0.01
CONTACT = ImmContact(normal=[0.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def state(actuators):
    return StateLayout(ImmSettings(contacts=[CONTACT]), actuators, 6)


def rejections(test, state, covariance, count=2000):
    """The shares of states that are drawn from a covariance about no force, in which either test sees a contact."""
    rng = np.random.default_rng(5)
    root, p, none = np.linalg.cholesky(covariance), pack_array(covariance), np.zeros(state.n)
    drawn = [state.mean + root @ rng.normal(size=state.size) for _ in range(count)]
    return np.mean([[test.pushes(x, p, none), test.exceeds_friction(x, p)] for x in drawn], axis=0)


@pytest.fixture(scope="module")
def covariance(state):
    """Any covariance of the state in which torque and friction are correlated, friction far within its bounds."""
    root = np.random.default_rng(2).normal(size=(state.size, 2 * state.size)) / state.size
    return root @ root.T


def test_no_force_is_a_contact_as_often_as_the_significance_says(state, covariance):
    force, friction = rejections(TouchTest(state, SIGNIFICANCE), state, covariance)
    assert force == pytest.approx(SIGNIFICANCE, abs=0.006)
    assert friction == 0.0, "friction within its bounds is that of free space"


def test_changed_friction_makes_a_push_less_certain(state, covariance):
    test, p, x = TouchTest(state, SIGNIFICANCE), pack_array(covariance), state.mean.copy()
    where = state.parts["external"]
    x[where] = 6.0 * np.sqrt(np.diag(covariance)[where])
    assert test.pushes(x, p, np.zeros(6)) and not test.pushes(x, p, np.full(6, 1e4))


@pytest.mark.parametrize("part", ["bias", "disturbance"])
@pytest.mark.parametrize("deviations, beyond", [(2.0, False), (5.0, True), (-5.0, True)])
def test_friction_beyond_the_bound_of_free_space_is_a_contact(state, actuators, covariance, part, deviations, beyond):
    """The bound is in prior standard deviations of the entry; it must be passed by some of the filter's own."""
    test, x, k = TouchTest(state, SIGNIFICANCE), state.mean.copy(), 1
    entry = range(state.size)[state.parts[part]][k]
    bound = actuators.friction_bound * np.sqrt(state.variance[entry])
    std = np.sqrt(covariance[entry, entry])
    x[entry] += np.sign(deviations) * (bound + abs(deviations) * std)
    assert test.exceeds_friction(x, pack_array(covariance)) is beyond


def test_a_known_contact_presses_where_its_force_is_surely_above_zero(state):
    test = TouchTest(state, SIGNIFICANCE)
    assert test.presses(np.array([0.5, 0.995])) and not test.presses(np.array([0.5, 0.985]))
    assert not test.presses(np.array([])), "a filter of no contact presses nowhere"


def test_without_unknown_contact_friction_has_no_bound(actuators):
    known = ImmSettings(contacts=[CONTACT], unknown=UnknownContactSettings(filters=0))
    state = StateLayout(known, actuators, 6)
    x = state.mean + 100.0 * np.sqrt(state.variance)
    assert not TouchTest(state, SIGNIFICANCE).exceeds_friction(x, pack_array(np.eye(state.size)))
