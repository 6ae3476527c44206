"""Wolfe line search: full step where it is good, both conditions where they can hold, none uphill."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.identify.batch.line_search import CURVATURE, SUFFICIENT_DECREASE, search


def test_the_newton_step_of_a_parabola_is_taken_whole():
    step = search(lambda x: (x - 1.0) ** 2, 1.0, -2.0)
    assert step.length == 1.0 and step.wolfe and step.evaluations == 2


@pytest.mark.parametrize("centre, sharp", [(0.05, 4.0), (0.3, 200.0), (0.011, 1e4)])
def test_both_conditions_hold_at_the_accepted_point(centre, sharp):
    def cost(x):
        return np.cosh(np.minimum(sharp * (x - centre), 300.0)) / sharp + 0.1 * x

    slope = float(np.sinh(-sharp * centre) + 0.1)
    step = search(cost, cost(0.0), slope)
    here = (cost(step.length + 1e-7) - cost(step.length - 1e-7)) / 2e-7
    assert cost(step.length) <= cost(0.0) + SUFFICIENT_DECREASE * step.length * slope
    assert step.wolfe and abs(here) <= -CURVATURE * slope * 1.01


def test_a_step_that_could_be_longer_ends_at_the_longest():
    step = search(lambda x: -x, 0.0, -1.0)
    assert step.length == 1.0 and not step.wolfe


def test_uphill_gives_none():
    assert search(lambda x: 1.0 + x, 1.0, -1e-9) is None
