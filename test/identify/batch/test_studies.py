"""The experiments' figures: cross-validation is read off its table, a channel's error is over its motion."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.identify.batch.studies import CrossValidation, leave_out


def test_cross_validation_compares_with_its_own_and_the_hand_set_model():
    costs = np.array([[100.0, 20.0, 25.0], [80.0, 33.0, 30.0]])  # hand-set, model 1, model 2
    found = CrossValidation(["friction"], np.zeros((2, 1)), costs)
    assert found.worst_other_pct == pytest.approx(25.0)
    assert found.worst_hand_set_share == pytest.approx(33.0 / 80.0)


def test_a_left_out_torque_is_predicted_from_the_dynamics(finger_recording):
    found = leave_out(finger_recording, "torque")
    assert found.measured.shape == found.predicted.shape == (len(found.t), 3)
    assert found.rms_pct < 10.0
