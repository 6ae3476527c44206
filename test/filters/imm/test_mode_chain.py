"""Mixing against numpy, and the Markov chain behind it."""

import itertools

import numpy as np
import pytest

from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.mode_chain import (
    ModeChain,
    NamedMode,
    build_mixing,
    build_mode_prediction,
    build_mode_update,
)
from contact_estimation.filters.imm.settings import ImmSettings, UnknownContactSettings
from contact_estimation.filters.kalman import pack_array, unpack_array

#: Least probability of a filter.
FLOOR = ImmSettings(contacts=[ImmContact(normal=[0, 0, 1])]).least_probability


def settings(count=2, **changes):
    contacts = [ImmContact(name=f"c{k + 1}", normal=[0, 0, 1]) for k in range(count)]
    return ImmSettings(contacts=contacts, **({"unknown": UnknownContactSettings(filters=0)} | changes))


def test_mix_is_the_moment_matched_mixture():
    size, count, rng = 5, 3, np.random.default_rng(0)
    means = rng.normal(size=(count, size))
    roots = rng.normal(size=(count, size, size))
    covariances = roots @ roots.transpose(0, 2, 1)
    weights = rng.uniform(size=(count, count))
    weights /= weights.sum(axis=0)
    mix, packed = build_mixing(size, count), np.concatenate([pack_array(c) for c in covariances])
    for j in range(count):
        x, p = mix(means.ravel(), packed, weights[:, j])
        mean = weights[:, j] @ means
        spread = sum(w * (c + np.outer(m - mean, m - mean)) for w, m, c in zip(weights[:, j], means, covariances))
        np.testing.assert_allclose(np.array(x).ravel(), mean, rtol=1e-12)
        np.testing.assert_allclose(unpack_array(np.array(p).ravel(), size), spread, rtol=1e-12)


def test_prediction_and_bayes_rule_are_those_of_the_textbook():
    rng = np.random.default_rng(1)
    modes = ModeChain(settings(2), 2)
    count = len(modes.owner)
    probabilities, transition, pressed = (
        rng.dirichlet(np.ones(count)),
        modes.transition(0.05),
        rng.uniform(size=(2, count)),
    )
    predicted, weights, before = (
        np.array(v) for v in build_mode_prediction(np.zeros(count), 2)(probabilities, transition, pressed)
    )
    np.testing.assert_allclose(predicted.ravel(), probabilities @ transition)
    np.testing.assert_allclose(weights, probabilities[:, None] * transition / (probabilities @ transition))
    np.testing.assert_allclose(before, pressed @ weights)
    likelihood = rng.normal(size=count)
    found = np.array(build_mode_update(count)(predicted, likelihood, FLOOR)).ravel()
    np.testing.assert_allclose(found, predicted.ravel() * np.exp(likelihood) / (predicted.ravel() @ np.exp(likelihood)))
    extreme = np.array(build_mode_update(count)(predicted, -1e6 * np.arange(count), FLOOR)).ravel()
    assert np.isfinite(extreme).all() and extreme[0] > 0.99 and extreme[1:].min() > 0.5 * FLOOR


def test_a_free_filter_starts_from_its_likeliest_source_unmixed():
    joint = np.array([[0.3, 0.1], [0.1, 0.5]])
    _, weights, _ = build_mode_prediction(np.array([True, False]), 1)(
        np.array([0.4, 0.6]), joint / [[0.4], [0.6]], np.array([[0.0, 1.0]])
    )
    np.testing.assert_allclose(np.array(weights), [[1.0, 1 / 6], [0.0, 5 / 6]])


@pytest.mark.parametrize("count, hypotheses", [(1, 1), (1, 3), (2, 1), (2, 3), (3, 2)])
def test_rows_of_the_transition_sum_to_one(count, hypotheses):
    modes = ModeChain(settings(count), hypotheses)
    assert len(modes.names) == 2**count and len(modes.owner) == 1 + hypotheses * (2**count - 1)
    for dt, deciding in itertools.product((0.002, 0.01, 1.0), (False, True)):
        matrix = modes.transition(dt, deciding)
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
        assert (matrix >= 0).all()


@pytest.mark.parametrize("rate", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("dt", [0.002, 0.01, 0.2])
def test_pushes_that_are_steady_at_once_however_often_leave_no_probability_negative(rate, dt):
    matrix = ModeChain(ImmSettings(contacts=[ImmContact(normal=[0, 0, 1])]), 1, rate).transition(dt)
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)


def test_no_contact_closes_before_the_start_is_decided():
    modes = ModeChain(ImmSettings(contacts=[ImmContact(normal=[0, 0, 1])]), 2)
    matrix, usual = modes.transition(0.01, deciding=True), modes.transition(0.01)
    closed = modes.closed.any(axis=1)
    assert (usual[~closed][:, closed].sum(axis=1) > 0).all() and not matrix[~closed][:, closed].any()
    np.testing.assert_array_equal(matrix[closed], usual[closed])
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)


def test_rates_are_the_settings_and_contacts_change_one_at_a_time():
    modes = ModeChain(settings(2, close_rate=0.7, open_rate=0.2), 1)
    assert modes.names == ["free", "c1", "c2", "c1+c2"]
    expected = np.array([[-1.4, 0.7, 0.7, 0], [0.2, -0.9, 0, 0.7], [0.2, 0, -0.9, 0.7], [0, 0.2, 0.2, -0.4]])
    np.testing.assert_allclose(modes.rates, expected)


def test_modes_no_single_change_leads_to_are_reached_all_the_same():
    modes = ModeChain(settings(2, modes=[[], ["c1", "c2"]]), 3)
    assert (np.diag(modes.rates) < 0).all()
    assert (modes.transition(10.0)[0] > 1e-3).sum() == 2  # free, and the newborn of the other


def test_birth_keeps_the_sum_and_makes_the_least_probable_the_newborn():
    modes = ModeChain(settings(1), 3)
    probabilities = np.array([0.4, 0.3, 0.1, 0.2])
    modes.give_birth(probabilities)
    assert probabilities.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(probabilities, [0.4, 0.4 - FLOOR, FLOOR, 0.2])
    assert modes.transition(0.01)[0].nonzero()[0].tolist() == [0, 2]
    np.testing.assert_allclose(modes.of_combinations(probabilities), [0.4, 0.6])


def test_start_puts_the_probability_where_it_is_told():
    modes = ModeChain(settings(2), 2)
    combined = modes.of_combinations(modes.reset(0.3))
    assert combined[0] == pytest.approx(0.7) and combined[1:].sum() == pytest.approx(0.3)


def test_behind_a_gap_an_unknown_contact_has_hardly_become_a_known_one():
    modes = ModeChain(ImmSettings(contacts=[ImmContact(normal=[0, 0, 1])]), 2)
    known, unknown, free = (modes.names.index(name) for name in ("contact_1", "unknown", "free"))
    for kind in (known, unknown, free):
        last = int(np.flatnonzero(modes.label == kind)[0])
        found = modes.of_combinations(modes.reset(0.3, last))
        assert found[free] == pytest.approx(0.7) and found.sum() == pytest.approx(1.0)
        assert found[unknown] > 0.1 and (found[known] > 0.1) == (kind != unknown)


def named(probabilities, shown=None):
    """The named mode after every block of 10 ms, of a contact of these probabilities; 0 is free space.

    ``shown`` tells for every block whether the contact differs from free space; default: it always does.
    """
    mode = NamedMode(settings(1), 0)
    found = []
    for p, differs in zip(probabilities, shown or [True] * len(probabilities)):
        mode.update(np.array([1 - p, p]), 0.01, lambda differs=differs: differs)
        found.append(mode.mode)
    return found


def test_a_contact_is_named_once_it_is_all_but_certain_and_until_it_is_free():
    assert named([0.98, 0.995, 0.6, 0.4, 0.6]) == [0, 1, 1, 0, 0]
    assert not any(named([0.4, 0.999, 0.4, 0.999, 0.4])), "one block that fits no model is a contact"


def test_a_contact_that_stays_likely_is_named():
    found = named([0.9] * 20)
    assert found[8] == 0 and found[11] == 1
    assert not any(named([0.9] * 5 + [0.4] + [0.9] * 5)), "blocks that do not follow each other were added up"


def test_a_contact_that_may_have_no_force_is_not_named_but_stays_so():
    """The mode is not free because of a model with more freedom; a contact that was named may lose its force."""
    assert not any(named([0.999] * 20, [False] * 20))
    mode = NamedMode(settings(1), 0)
    for shown, undecided in [(False, 0.01), (False, 0.02), (True, 0.0)]:
        mode.update(np.array([0.001, 0.999]), 0.01, lambda shown=shown: shown)
        assert mode.undecided_for == pytest.approx(undecided)
    assert named([0.999] * 4, [False, False, True, False]) == [0, 0, 1, 1]


def test_without_free_space_the_likeliest_mode_is_named():
    mode = NamedMode(settings(2, modes=[["c1"], ["c2"]]), None)
    mode.update(np.array([0.4, 0.6]), 0.01, lambda: False)
    assert mode.mode == 1
