"""Cross-validation is read off its table, and recordings that disagree are called."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.identify.batch.cross_validation import CrossValidation
from contact_estimation.identify.batch.result import ParameterEstimate, Result
from contact_estimation.identify.batch.starts import best_of
from contact_estimation.identify.verdict import conclude

COSTS = np.array([[100.0, 20.0, 25.0], [80.0, 33.0, 30.0]])  # hand-set, model 1, model 2


def _result(value: float, std: float = 0.1, cost: float = 100.0) -> Result:
    ends = value - 1.96 * std, value + 1.96 * std
    friction = ParameterEstimate("friction", "", value, std, *ends, *ends, std, "")
    nothing = np.zeros((0, 3))
    return Result(nothing, nothing, nothing, nothing, [friction], [], np.eye(1), nothing, [], cost, conclude([]))


def _validation(*values: float) -> CrossValidation:
    return CrossValidation(["friction"], np.array(values)[:, None], COSTS, [_result(value) for value in values])


def test_costs_are_compared_with_its_own_and_the_reference():
    found = _validation(0.5, 0.5)
    assert found.worst_other_pct == pytest.approx(25.0)
    assert found.worst_hand_set_share == pytest.approx(33.0 / 80.0)


def test_recordings_agree_within_their_noise_and_are_doubted_beyond():
    assert _validation(0.5, 0.65).verdict.verdict == "good"
    apart = _validation(0.5, 1.2).verdict
    assert apart.verdict == "doubtful" and "recordings 0 and 1" in apart.reasons[0]


def test_the_best_start_counts_and_equally_good_ends_apart_are_no_estimate():
    best, verdict = best_of([_result(0.5, cost=101.0), _result(0.52), _result(3.0, cost=900.0)])
    assert best.cost == 100.0 and verdict.verdict == "good"
    assert best_of([_result(0.5, cost=101.0), _result(1.5)])[1].verdict == "failed"
