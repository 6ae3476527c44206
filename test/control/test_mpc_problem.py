"""Parameters, mode probabilities, cost terms of a researcher."""

from __future__ import annotations

import numpy as np
import pytest
from mpc_tasks import START, problem, state

from contact_estimation.control.mpc import CostTerm
from contact_estimation.control.mpc.rollout import Rollout
from contact_estimation.exceptions import ConfigError


class Elbow(CostTerm):
    """The elbow near a wanted angle."""

    name = "elbow"

    def residual(self, mode, parameters):
        return mode.q[3] - parameters.get("elbow_target", 1)


def test_a_cost_term_of_ten_lines_changes_the_cost_by_its_square():
    plain, extended = problem(3), problem(3, extra=[Elbow(weight=5.0)])
    extended.set("elbow_target", START[3] + 0.1)
    controls = np.zeros((3, 3))
    states, cost = Rollout(plain)(state(plain), controls)
    _, more = Rollout(extended)(state(extended), controls)
    assert more - cost == pytest.approx(5.0 * np.sum((states[:, 3] - START[3] - 0.1) ** 2), rel=1e-9)


def test_the_cost_is_expected_over_modes():
    made = problem(3, modes={"contact_1": ["contact_1"], "free": []})
    controls = np.tile([0.0, 0.0, -8.0], (3, 1))
    run, costs = Rollout(made), {}
    for probability in (0.0, 0.25, 1.0):
        made.set_mode_probabilities({"contact_1": probability, "free": 1.0 - probability})
        costs[probability] = run(state(made), controls)[1]
    assert costs[0.25] == pytest.approx(0.25 * costs[1.0] + 0.75 * costs[0.0], rel=1e-9)
    assert costs[0.0] != pytest.approx(costs[1.0], rel=0.05)


def test_probabilities_of_unknown_modes_leave_the_first():
    made = problem(3, modes={"contact_1": ["contact_1"], "free": []})
    made.set_mode_probabilities({"sliding": 1.0})
    np.testing.assert_allclose(made.get("mode_root")[0], [1.0, 0.0])


def test_an_unknown_parameter_names_the_nearest():
    with pytest.raises(ConfigError, match="nearest: 'force_target'"):
        problem(3).set("force_targets", [0, 0, 1])


def test_a_wrong_shape_is_refused():
    with pytest.raises(ConfigError, match=r"force_target has shape \(2,\)"):
        problem(3).set("force_target", [0.0, 1.0])


def test_a_mode_of_an_unknown_contact_is_refused():
    with pytest.raises(ConfigError, match="contact_9"):
        problem(3, modes={"contact": ["contact_9"]})


def test_two_terms_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="different names"):
        problem(3, extra=[Elbow(), Elbow()])
