"""The columns that figures need are those of a full log, and few: an hour must not fill a memory."""

import numpy as np
import pytest

from contact_estimation.evaluation.columns import replay_columns
from contact_estimation.evaluation.task import Options, Task, evaluate, replay_again
from contact_estimation.filters.registry import open_stream
from contact_estimation.io.npz import write_npz
from contact_estimation.io.replay import replay
from contact_estimation.robot import load_arm


@pytest.mark.parametrize("observer", ["momentum", "contact_imm"])
def test_columns_are_those_of_the_full_log(press, observer):
    arm = load_arm("ur16e")
    log = replay(press, open_stream(arm, observer, press.sensors)).columns()
    found = replay_columns(press, open_stream(arm, observer, press.sensors))
    assert ("stiffness" in found) == ("stiffness" in log)
    for name in found.keys() - {"step_time", "mode_probability"}:
        np.testing.assert_array_equal(found[name], log[name], err_msg=name)
    assert found["mode_probability"].shape == log["mode_probability"].shape
    assert sum(c.nbytes for n, c in found.items() if n != "mode_probability") <= 80 * len(press)


def test_a_recording_is_replayed_again_for_its_picture_with_the_same_figures(press, tmp_path):
    task = Task(write_npz(tmp_path / "press.npz", press), ("ekf",), Options())
    figures, again = evaluate(task)["observers"]["ekf"], replay_again(task).figures["ekf"]
    assert {k: figures[k] for k in again if k != "step_us"} == {k: again[k] for k in again if k != "step_us"}
