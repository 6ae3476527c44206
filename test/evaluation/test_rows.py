"""Rows: one per recording whatever happens to it, kept on disk, the same from a used stream as from a fresh one."""

import dataclasses
import json
import threading

import pytest

from contact_estimation.evaluation import task
from contact_estimation.evaluation.find import find_recordings
from contact_estimation.evaluation.rows import evaluate_all, make_tasks
from contact_estimation.evaluation.tables import distribution_table, worst_rows
from contact_estimation.evaluation.task import Options
from contact_estimation.exceptions import CodegenError, ConfigError
from contact_estimation.io.npz import write_npz
from contact_estimation.io.open import open_recording
from contact_estimation.jobs.executor import Outcome, Serial
from contact_estimation.jobs.results import Results

OBSERVERS = ["momentum", "ekf"]


class Counting(Serial):
    """Counts the observers that are asked for."""

    def __init__(self):
        self.asked = 0

    def run(self, function, tasks):
        self.asked += sum(len(task.observers) for task in tasks)
        return super().run(function, tasks)


def evaluated(folder, results, observers=OBSERVERS, executor=None, **options):
    tasks = make_tasks(find_recordings([str(folder)]), observers, Options(**options))
    return evaluate_all(tasks, executor or Serial(), Results(results))


def without_speed(rows):
    """Rows as text, without what the machine's load decides."""
    plain = json.loads(json.dumps(rows))
    for row in plain:
        for figures in row["observers"].values():
            figures.pop("step_us", None)
    return plain


def test_a_damaged_recording_is_a_row_with_its_error(folder, tmp_path):
    a, c, b = evaluated(folder, tmp_path / "results")
    assert "c.npz cannot be read" in c["error"] and "error" not in a and "error" not in b
    assert (a["robot"], a["samples"], a["reference"]) == ("ur16e", 500, "truth")
    for name in OBSERVERS:
        assert a["observers"][name]["force"]["contact"]["rmse_z"] < 20.0
        assert without_speed([a])[0]["observers"][name] == without_speed([b])[0]["observers"][name]


def test_a_second_run_does_what_is_missing_only(folder, tmp_path):
    first, again, changed = Counting(), Counting(), Counting()
    rows = evaluated(folder, tmp_path / "results", executor=first)
    assert evaluated(folder, tmp_path / "results", executor=again) == rows
    assert (first.asked, again.asked) == (6, 2)  # the damaged one is tried again
    evaluated(folder, tmp_path / "results", [*OBSERVERS, "disturbance"], changed)
    assert changed.asked == 5
    recording = open_recording(folder / "a.npz")
    write_npz(folder / "a.npz", dataclasses.replace(recording, tau=recording.tau + 0.1))
    evaluated(folder, tmp_path / "results", executor=again)
    assert again.asked == 6


class Losing(Serial):
    """Loses its worker with every recording."""

    def run(self, function, tasks):
        return (Outcome(k, None, "its worker process ended 2 times") for k in range(len(tasks)))


def test_a_recording_whose_worker_ended_is_tried_again_by_the_next_run(folder, tmp_path):
    lost = evaluated(folder / "day", tmp_path / "results", executor=Losing())[0]
    assert lost["error"] == "its worker process ended 2 times" and "ekf" in lost["observers"]
    assert "error" not in evaluated(folder / "day", tmp_path / "results")[0]


def test_what_failed_on_this_machine_is_tried_again_by_the_next_run(folder, tmp_path, monkeypatch):
    def no_compiler(*_):
        raise CodegenError("no C compiler")

    with monkeypatch.context() as broken:
        broken.setattr(task, "open_stream", no_compiler)
        broken.setattr(task, "_opened", threading.local())
        before = evaluated(folder / "day", tmp_path / "results", ["momentum"])[0]
    after = evaluated(folder / "day", tmp_path / "results", ["momentum"])[0]
    assert before["error"] == "no C compiler" and "error" not in after


def test_two_observers_of_one_name_are_refused(folder):
    with pytest.raises(ConfigError, match="have one name"):
        make_tasks([folder / "a.npz"], ["ekf", "mine/ekf.yaml"], Options())


def test_the_order_of_recordings_changes_nothing(press, tmp_path):
    """A stream that other recordings, bad ones among them, went through gives what a fresh one gives."""
    write_npz(tmp_path / "a" / "press.npz", press)
    other = dataclasses.replace(press, q=press.q + 0.3, tau=press.tau + 20.0)
    write_npz(tmp_path / "a" / "before.npz", other)
    write_npz(tmp_path / "b" / "press.npz", press)
    observers = [*OBSERVERS, "contact_imm"]
    after = evaluated(tmp_path / "a", tmp_path / "r1", observers)[1]
    alone = evaluated(tmp_path / "b", tmp_path / "r2", observers)[0]
    assert without_speed([after])[0]["observers"] == without_speed([alone])[0]["observers"]


def test_bad_samples_and_an_untold_robot_are_errors_that_say_what_to_do(press, tmp_path):
    tau = press.tau.copy()
    tau[100, 2] = float("nan")
    write_npz(tmp_path / "all" / "nan.npz", dataclasses.replace(press, tau=tau))
    write_npz(tmp_path / "all" / "whose.npz", dataclasses.replace(press, robot=""))
    nan, whose = evaluated(tmp_path / "all", tmp_path / "results", ["momentum"])
    assert "hold NaN" in nan["error"] and "--keep-going" in nan["error"] and "--robot" in whose["error"]
    nan, whose = evaluated(tmp_path / "all", tmp_path / "results", ["momentum"], robot="ur16e", keep_going=True)
    assert "error" not in nan and "error" not in whose
    assert nan["observers"]["momentum"]["valid"] < 500 == whose["observers"]["momentum"]["valid"]


def test_distributions_and_the_worst_are_those_of_the_rows():
    def row(name, error):
        part = {"rmse_z": error, "rmse_xy": 0.0, "bias_z": 0.0}
        figures = {"samples": 10, "valid": 10, "force": {"contact": part, "free": None}, "stiffness": None}
        return {"recording": name, "robot": "r", "observers": {"o": figures | {"step_us": None, "mode_changes": None}}}

    rows = [row(f"{k}.npz", float(k)) for k in range(1, 12)]
    rows.append({"recording": "bad.npz", "error": "no", "observers": {"o": {"error": "no"}}})
    header, table = distribution_table(rows, ["o"])
    assert header[2:] == ["recordings", "median", "90 %", "worst"]
    assert ["o", "z in contact [N]", 11, 6.0, 10.0, 11.0] in table
    assert [r["recording"] for r in worst_rows(rows, "o", 2)] == ["11.npz", "10.npz"]
    assert ["o", "z in contact [N]", 2, 1.5, 2.0, 2.0] in distribution_table(rows[:2], ["o"])[1]  # not the larger


@pytest.mark.parametrize("observer", ["own.yaml"])
def test_a_changed_file_of_the_users_own_is_evaluated_anew(folder, tmp_path, observer, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counting = Counting()
    for value in ("gain: 20.0", "gain: 30.0", "gain: 30.0"):
        (tmp_path / observer).write_text(f"observer: momentum\n{value}\n")
        rows = evaluated(folder, tmp_path / "results", [observer], counting)
        assert list(rows[0]["observers"]) == ["own"]
    assert counting.asked == 7  # the damaged one in every run
