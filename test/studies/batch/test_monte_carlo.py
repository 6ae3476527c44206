"""The figures of random starts and their report."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.studies.batch import finger
from contact_estimation.studies.batch.monte_carlo import Run, summary, write_starts


def test_report_of_the_starts_has_a_row_per_parameter(tmp_path):
    parameters = finger.scene().parameters
    truth = parameters.values(parameters.vector(finger.TRUTH))
    runs = [
        Run(truth, truth * (1.0 + 0.01 * k), 100.0 + k, 8 + k, 0.1, True, np.array([500.0, 100.0]), 7, 2, 0.9, None)
        for k in range(3)
    ]
    figures = summary(runs)
    assert figures["friction_error_pct"] == pytest.approx(2.0) and figures["iterations_median"] == 9.0
    assert figures["cost_spread_pct"] == pytest.approx(100 * np.std([100, 101, 102]) / 101)
    page = write_starts(tmp_path / "starts.html", runs, figures).read_text()
    assert page.count("<tr>") == 2 + len(parameters) and page.count("<img") == 1
