"""The papers' figures on their own recording stay reproducible: named configurations, measured against the F/T
sensor."""

import json

import numpy as np
import pytest
from shared import shared_file

from contact_estimation.cli import main
from contact_estimation.filters.registry import open_stream
from contact_estimation.io.open import open_recording
from contact_estimation.io.replay import replay

RATE = 500.0


class Press:
    """The recording ur_vertical_3 with the reference its authors compare against: raw F/T force in TCP axes, contact by
    its own load."""

    def __init__(self):
        from scipy.signal import butter, filtfilt

        path = shared_file("data/ur16e_press/ur_vertical_3.npz")
        self.recording = open_recording(path, open_stream("ur16e", "momentum").arm.joint_names)
        with np.load(path) as data:
            self.force, self.height, self.rotation = data["f_tcp"], data["x_tcp"][:, 2], data["R_tcp"]
            load = filtfilt(*butter(2, 5.0 / (RATE / 2)), self.force[:, 2] - data["f_tcp_zero_offset"][2])
        self.contact, self.free = load < -10, load > -6

    def errors(self, observer):
        """RMSE [N] along z in contact, over x and y in contact, along z in free space."""
        log = replay(self.recording, open_stream("ur16e", observer)).columns()
        assert log["valid"].all()
        error = log["force"] - self.force
        return [
            float(np.sqrt(np.mean(part**2)))
            for part in (error[self.contact, 2], error[self.contact, :2], error[self.free, 2])
        ]


@pytest.fixture(scope="module")
def press():
    return Press()


def test_least_squares_stiffness_of_the_force_sensor(press):
    """Paper 1, section 5.3: 25.8 N/mm."""
    force = np.einsum("nij,nj->ni", press.rotation, press.force)[:, 2]
    assert -np.polyfit(press.height, force, 1)[0] == pytest.approx(25.95e3, abs=100)


def test_ekf_with_fitted_stiffness(press):
    """Published 7.35 / 6.6 N; the published 4.5 N in free space is not reached (docs/baselines.md), and must not get
    worse."""
    z, xy, free = press.errors("paper_offline")
    assert z <= 7.4 and xy <= 6.6, (z, xy)
    assert free == pytest.approx(9.3, abs=0.5)


def test_ekf_with_online_stiffness_follows(press):
    """Published 8.8 / 9.8 N; what the printed noise gives here (docs/baselines.md) is kept as it is."""
    z, xy, _ = press.errors("paper_online")
    assert z == pytest.approx(10.7, abs=0.5) and xy == pytest.approx(9.2, abs=0.5)


def test_textbook_momentum_observer(press):
    """Published 17.1 / 5.9 / 17.2 N."""
    z, xy, free = press.errors("momentum")
    assert (
        z == pytest.approx(16.0, abs=0.5) and xy == pytest.approx(5.8, abs=0.5) and free == pytest.approx(16.8, abs=0.5)
    )


@pytest.mark.parametrize("name, limits", [("ur_vertical_1", (7.0, 8.0, 24e3)), ("ur_vertical_3", (10.0, 6.0, 30e3))])
def test_the_generic_filter_is_sane_on_real_friction(name, limits, tmp_path, capsys):
    """config/observers/ekf.yaml as shipped, on both recordings: no runaway stiffness, a force worth looking at."""
    path = shared_file(f"data/ur16e_press/{name}.npz")
    assert (
        main(
            [
                "replay",
                str(path),
                "--robot",
                "ur16e",
                "--observer",
                "ekf",
                "--export",
                str(tmp_path / "e.npz"),
                "--json",
            ]
        )
        == 0
    )
    contact = json.loads(capsys.readouterr().out)["observers"]["ekf"]["force"]["contact"]
    with np.load(tmp_path / "e.npz") as estimates:
        assert contact["rmse_z"] < limits[0] and contact["rmse_xy"] < limits[1]
        assert estimates["stiffness"].max() < limits[2]
        assert estimates["valid"].all(), "refused on a press that its contact explains"


def test_the_offline_fit_finds_the_shipped_parameters(tmp_path, capsys):
    """The command in the head of paper_offline.yaml writes that file's contact."""
    from contact_estimation.filters.registry import load_observer_settings

    path = shared_file("data/ur16e_press/ur_vertical_3.npz")
    out = tmp_path / "fit.yaml"
    assert (
        main(
            [
                "fit",
                str(path),
                "--robot",
                "ur16e",
                "--objective",
                "paper",
                "--rest-weight",
                "0",
                "--passes",
                "2",
                "--out",
                str(out),
            ]
        )
        == 0
    )
    capsys.readouterr()
    found, shipped = (load_observer_settings(name).contacts[0] for name in (str(out), "paper_offline"))
    np.testing.assert_allclose(found.stiffness, shipped.stiffness, rtol=0, atol=150)
    np.testing.assert_allclose(found.rest, shipped.rest, atol=2e-4)
    np.testing.assert_allclose(found.point, shipped.point, atol=2e-3)
