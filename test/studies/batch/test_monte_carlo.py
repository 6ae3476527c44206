"""The experiments' figures: cross-validation is read off its table, a channel's error is over its motion."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.studies.batch import finger
from contact_estimation.studies.batch.monte_carlo import CrossValidation, Run, leave_out, summary, write_starts


def test_cross_validation_compares_with_its_own_and_the_hand_set_model():
    costs = np.array([[100.0, 20.0, 25.0], [80.0, 33.0, 30.0]])  # hand-set, model 1, model 2
    found = CrossValidation(["friction"], np.zeros((2, 1)), costs)
    assert found.worst_other_pct == pytest.approx(25.0)
    assert found.worst_hand_set_share == pytest.approx(33.0 / 80.0)


def test_a_left_out_torque_is_predicted_from_the_dynamics(finger_recording):
    found = leave_out(finger_recording, "torque")
    assert found.measured.shape == found.predicted.shape == (len(found.t), 3)
    assert found.rms_pct < 10.0


def test_report_of_the_starts_has_a_row_per_parameter(tmp_path):
    parameters = finger.scene().parameters
    truth = parameters.values(parameters.vector(finger.TRUTH))
    runs = [
        Run(truth, truth * (1.0 + 0.01 * k), 100.0 + k, 8 + k, 0.1, True, np.array([500.0, 100.0]), 7, 2, 0.9)
        for k in range(3)
    ]
    figures = summary(runs)
    assert figures["friction_error_pct"] == pytest.approx(2.0) and figures["iterations_median"] == 9.0
    assert figures["cost_spread_pct"] == pytest.approx(100 * np.std([100, 101, 102]) / 101)
    page = write_starts(tmp_path / "starts.html", runs, figures).read_text()
    assert page.count("<tr>") == 2 + len(parameters) and page.count("<img") == 1
