"""Curves of the report: thinned, but no peak is lost, and where nothing is known they have a gap."""

import numpy as np

from contact_estimation.viz import plots
from contact_estimation.viz.curves import Curves


def drawn_force(force):
    """Points (k, 2) that are drawn of a force along z."""
    count = len(force)
    columns = {"t": np.arange(count) / 500.0, "force": np.zeros((count, 3))}
    columns["force"][:, 2] = force
    columns["force_covariance"] = np.full((count, 3, 3), np.nan)
    curves = Curves("momentum")
    curves.add_columns(columns)
    return plots.force_figure({"momentum": curves}, 0.0).axes[2].lines[0].get_xydata()


def test_a_peak_of_one_sample_is_drawn_in_a_long_recording():
    force = np.random.default_rng(1).normal(size=200_001)
    force[123_457], force[66_666] = 80.0, -70.0
    points = drawn_force(force)
    assert points[:, 1].max() == 80.0 and points[:, 1].min() == -70.0
    assert len(points) < 5_000 and np.all(np.diff(points[:, 0]) > 0)
    assert points[0, 0] == 0.0 and points[-1, 0] == 400.0


def test_a_short_recording_is_drawn_whole():
    assert len(drawn_force(np.arange(900.0))) == 900


def test_a_gap_stays_a_gap():
    force = np.ones(200_000)
    force[50_000:100_000] = np.nan
    points = drawn_force(force)
    inside = (points[:, 0] >= 100.0) & (points[:, 0] < 200.0)
    assert inside.sum() > 100 and np.isnan(points[inside, 1]).all() and np.isfinite(points[~inside, 1]).all()


def test_an_open_contact_has_no_stiffness():
    """What an estimate holds of it then is what the settings expect."""
    closed = np.arange(500) >= 200
    columns = {
        "t": np.arange(500) / 500.0,
        "stiffness": np.where(closed, 2.6e4, 2e4),
        "contact_probability": np.where(closed, 0.9, 0.1)[:, None],
        "contact_stiffness": np.zeros((500, 1, 3)),
        "contact_covariance": np.zeros((500, 1, 9, 9)),
    }
    columns["contact_stiffness"][:, 0, 2] = columns["stiffness"]
    curves = Curves("contact_imm")
    curves.add_columns(columns)
    axis = plots.stiffness_figure({"contact_imm": curves}, 0.0).axes[0]
    assert axis.get_xlim() == (0.0, 0.998)  # also before the contact: as the figures above and below
    points = axis.lines[0].get_xydata()
    assert np.isnan(points[:200, 1]).all()
    np.testing.assert_allclose(points[200:, 1], 26.0)
