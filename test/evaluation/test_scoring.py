"""The columns that scores need are those of a full log."""

import numpy as np
import pytest

from contact_estimation.evaluation.scoring import replay_columns
from contact_estimation.evaluation.task import Options, Task, evaluate, replay_again
from contact_estimation.filters.registry import open_stream
from contact_estimation.io.npz import write_npz
from contact_estimation.io.replay import replay
from contact_estimation.robot import load_arm
from contact_estimation.viz.summary import figure_columns


@pytest.mark.parametrize("observer", ["momentum", "contact_imm"])
def test_columns_are_those_of_the_full_log(press, observer):
    arm = load_arm("ur16e")
    log = replay(press, open_stream(arm, observer, press.sensors)).columns()
    stream = open_stream(arm, observer, press.sensors)
    blocks = [replay_columns(block, stream) for block in press.blocks(400)]
    found = {name: np.concatenate([block[name] for block in blocks if name in block]) for name in blocks[-1]}
    assert ("stiffness" in found) == ("stiffness" in log)
    for name in found.keys() - {"step_time", "mode_probability"}:
        np.testing.assert_array_equal(found[name], log[name], err_msg=name)
    assert blocks[-1]["mode_probability"].shape[1] == log["mode_probability"].shape[1]


def test_a_recording_is_replayed_again_for_its_picture_with_the_same_figures(press, tmp_path):
    task = Task(write_npz(tmp_path / "press.npz", press), ("ekf",), Options())
    found, (runs, reference) = figure_columns(evaluate(task)["observers"]["ekf"]), replay_again(task)
    error = runs["ekf"].curve("force", 2) - reference.force[:][:, 2]
    for name, rows in (("z in contact [N]", reference.contact[:]), ("z free [N]", reference.free[:])):
        assert found[name] == pytest.approx(np.sqrt(np.nanmean(error[rows] ** 2)), rel=1e-9), name
    stiffness = np.median(runs["ekf"].curve("stiffness")[reference.stiff[:]])
    assert found["stiffness [kN/m]"] == pytest.approx(1e-3 * stiffness, rel=1e-12)
