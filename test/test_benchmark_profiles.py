"""Benchmarks and closed loops of the default observer measure the configuration that a robot's profile ships."""

import sys
from pathlib import Path

import pytest

from contact_estimation.exceptions import RecordingError
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.robot import load_arm
from contact_estimation.studies.mpc.closed_loop import ClosedLoop, load_loop_settings

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmark"))
import any_contact
import imm_truth
import mismatch
import nees
import press_scores
import report
import ur10e_logs


@pytest.mark.parametrize("robot", ["ur16e", "fr3"])
def test_simulated_truth_has_the_settings_of_the_profile(robot):
    arm = load_arm(robot)
    assert imm_truth.settings_for("press", arm) == load_observer_settings("contact_imm", arm.settings.folder)
    assert imm_truth.settings_for("press", arm) != load_observer_settings("contact_imm")


def test_mismatch_asks_the_settings_of_the_profile(monkeypatch):
    """It would else tell what a filter says that no robot runs."""

    class Asked(Exception):
        pass

    def make(arm, settings, **_):
        raise Asked(settings)

    monkeypatch.setattr(mismatch, "make_observer", make)
    with pytest.raises(Asked) as asked:
        mismatch.said(mismatch.Signals("fr3", None, *[None] * (len(mismatch.Signals._fields) - 2)))
    assert asked.value.args[0] == load_observer_settings("contact_imm", load_arm("fr3").settings.folder)


def test_a_closed_loop_has_the_observer_of_the_profile():
    """What a task does not tell the observer is as on the robot."""
    shipped = load_observer_settings("contact_imm", load_arm("fr3").settings.folder)
    loop = ClosedLoop(load_loop_settings("plane", "fr3"))
    assert loop.stream.observer.settings.unknown == shipped.unknown


@pytest.mark.parametrize("benchmark, words", [(any_contact, "--quick"), (nees, "--row push")])
def test_a_part_of_a_table_is_not_saved_as_the_table(benchmark, words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmark", *words.split(), "--save"])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert f"--save writes the whole table; leave out {words.split()[0]}" in capsys.readouterr().err


@pytest.mark.parametrize("page", ["any_contact", "any_contact_anywhere", "nees", "panda_pushes"])
def test_a_saved_table_names_the_command_as_it_was_typed(page, monkeypatch):
    typed = (report.ROOT / "benchmark" / f"{page}.md").read_text().splitlines()[2].split("`")[1]
    script, *words = typed.split()[1:]
    monkeypatch.setattr(sys, "argv", [str(report.ROOT / script), *words])
    assert report.command() == typed and page.startswith(Path(script).stem)


@pytest.mark.parametrize("benchmark", [press_scores, ur10e_logs])
def test_a_benchmark_names_the_recording_that_is_missing(benchmark, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["benchmark", "--shared", str(tmp_path)])
    with pytest.raises(RecordingError, match=rf"no such recording: {tmp_path}/data/.*\.npz"):
        benchmark.main()
