"""The verb ``convert``: between archives and bags, nothing lost."""

import json

import numpy as np
import pytest
from recordings import assert_equal, press_recording
from shared import shared_file

from contact_estimation.cli import main
from contact_estimation.io.npz import write_npz
from contact_estimation.io.open import open_recording
from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def recording():
    return press_recording(load_arm("ur16e"), seconds=0.5)


def test_there_and_back(recording, tmp_path, capsys):
    source = write_npz(tmp_path / "a.npz", recording)
    assert main(["convert", str(source), str(tmp_path / "bag"), "--storage", "sqlite3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["samples"] == 250 and result["problems"] == [] and "truth rest" in result["parts"]
    assert main(["convert", str(tmp_path / "bag"), str(tmp_path / "mcap")]) == 0
    assert main(["convert", str(tmp_path / "mcap"), str(tmp_path / "b.npz")]) == 0
    assert (tmp_path / "bag" / "bag.db3").is_file() and (tmp_path / "mcap" / "mcap.mcap").is_file()
    assert_equal(open_recording(tmp_path / "b.npz"), recording)


def test_real_recording_needs_the_robots_names_and_gains_its_poses_back(tmp_path, capsys):
    source = shared_file("data/ur16e_press/ur_vertical_1.npz")
    assert main(["convert", str(source), str(tmp_path / "bag")]) == 2
    assert "does not name its 6 joints" in capsys.readouterr().err
    assert main(["convert", str(source), str(tmp_path / "bag"), "--robot", "ur16e"]) == 0
    assert main(["convert", str(tmp_path / "bag"), str(tmp_path / "b.npz"), "--robot", "ur16e"]) == 0
    with np.load(source, allow_pickle=False) as ours, np.load(tmp_path / "b.npz", allow_pickle=False) as back:
        for name in ("t", "q", "dq", "tau", "f_tcp", "f_tcp_zero_offset"):
            np.testing.assert_array_equal(back[name], ours[name], err_msg=name)
        np.testing.assert_allclose(back["x_tcp"], ours["x_tcp"], atol=1e-9)
        np.testing.assert_allclose(back["R_tcp"], ours["R_tcp"], atol=1e-6)


def test_nothing_is_overwritten(recording, tmp_path, capsys):
    source = write_npz(tmp_path / "a.npz", recording)
    for target in (source, tmp_path):
        assert main(["convert", str(source), str(target)]) == 2
        assert "exists already" in capsys.readouterr().err
