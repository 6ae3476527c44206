"""A contact is lost where nothing is felt any more, and looked for where the task says."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.control.contact_loss import LossDetector
from contact_estimation.control.contact_search import ContactSearch, retreat_path
from contact_estimation.control.controller import Observation
from contact_estimation.control.mpc.settings import SupervisionSettings, load_mpc_settings

UP = np.array([0.0, 0.0, 1.0])


def lost(force: float, probability: float, sinking: float = 0.0, seconds: float = 0.2) -> str:
    """Return the answer of a detector after 0.5 s of pressing with 10 N, and then some time as given."""
    detector, answer = LossDetector(load_mpc_settings("mpc_plane_fr3")), ""
    detector.restart(np.zeros(3))
    for k in range(int((0.5 + seconds) * 100)):
        past = max(0.01 * k - 0.5, 0.0)
        felt, closed = (10.0, 1.0) if past == 0.0 else (force, probability)
        observation = Observation(np.zeros(7), np.zeros(7), probabilities={"contact_1": closed})
        answer = answer or detector.check(0.01 * k, -sinking * past * UP, felt * UP, observation, True)
    return answer


@pytest.mark.parametrize(
    ("force", "probability", "sinking", "reason"),
    [(0.5, 1.0, 0.0, "its force"), (3.0, 0.1, 0.0, "it is open"), (9.0, 1.0, 0.2, "sinks")],
)
def test_a_contact_is_lost_by_force_probability_or_sinking(force, probability, sinking, reason):
    assert reason in lost(force, probability, sinking)


def test_a_strong_push_that_the_observer_gives_no_contact_for_is_not_a_loss():
    assert not lost(9.0, 0.1)


def search(on_loss: str) -> ContactSearch:
    return ContactSearch(
        SupervisionSettings(on_loss=on_loss), UP, np.zeros(3), 1.0, "gone", np.array([-0.03, 0.0, 0.0])
    )


def test_a_search_sinks_and_gives_up():
    moved, sinks = search("search").equilibrium(2.0)
    np.testing.assert_allclose(moved, [0.0, 0.0, -0.02])
    assert sinks and not search("search").finished(2.0, moved)
    assert "no contact within" in search("search").finished(4.0, np.array([0.0, 0.0, -0.06]))


def test_a_retreat_ends_at_its_distance():
    assert search("retract").equilibrium(9.0)[0][2] == pytest.approx(0.03)
    assert not search("retract").finished(1.5, np.zeros(3)) and "retracted" in search("retract").finished(
        2.6, np.zeros(3)
    )


def test_a_return_goes_on_where_it_was_after_a_hold():
    one = search("return")
    before, _ = one.equilibrium(3.0)
    one.begun += 0.7  # [s] held
    np.testing.assert_allclose(one.equilibrium(3.7)[0], before)


def test_the_way_back_leads_to_the_last_place_far_enough_and_stays_across_the_normal():
    trail = np.array([[0.0, 0.0, 0.0], [0.01, 0.0, 0.001], [0.03, 0.0, 0.002]])
    np.testing.assert_allclose(retreat_path(np.array([0.04, 0.0, 0.0]), trail, UP, 0.02), [-0.03, 0.0, 0.0])
    assert not retreat_path(np.array([0.04, 0.0, 0.0]), trail, UP, 0.05).any()
