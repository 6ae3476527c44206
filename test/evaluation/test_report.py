"""The picture of the distributions: its axes can be read whatever the figures are."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from contact_estimation.evaluation.report import _distributions


def row(force, step):
    part = {"rmse_z": force, "rmse_xy": 0.0, "bias_z": 0.0}
    figures = {"samples": 10, "valid": 10, "force": {"contact": part, "free": part}, "stiffness": None}
    figures |= {"step_us": {"p50": step, "p99": step}, "mode_changes": None}
    return {"recording": f"{step}.npz", "robot": "r", "observers": {"o": figures}}


@pytest.mark.parametrize("low, high", [(30, 560), (28, 31), (40, 95), (25.1, 25.7), (12, 300), (1e-2, 20), (0.0, 14.0)])
def test_the_labels_of_an_axis_do_not_overlap(low, high):
    fig = _distributions([row(value, value) for value in np.linspace(low, high, 5)], ["o"])
    fig.canvas.draw()
    for axis in fig.axes:
        labels = [label for label in axis.get_xticklabels(which="both") if label.get_text()]
        boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
        boxes = [box for box in boxes if axis.bbox.x0 <= 0.5 * (box.x0 + box.x1) <= axis.bbox.x1]
        assert len(boxes) > 1 and all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes)), axis.get_xlabel()
    plt.close(fig)
