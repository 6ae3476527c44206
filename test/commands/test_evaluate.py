"""Verb evaluate: one row per recording as JSON, a table for readers, a page with the worst ones."""

import csv
import dataclasses
import json

import pytest
from recordings import press_recording

from contact_estimation.cli import main
from contact_estimation.io.npz import write_npz
from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    recording = press_recording(load_arm("ur16e"), seconds=1.0)
    for name in ("a", "b"):
        write_npz(folder / f"{name}.npz", dataclasses.replace(recording, sensors="ur16e_driver", robot="ur16e"))
    (folder / "c.npz").write_bytes(b"PK, and nothing else")
    return folder


def evaluate(capsys, *words):
    code = main(["evaluate", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def test_json_has_a_row_per_recording_and_the_report_its_pictures(folder, tmp_path, capsys):
    words = (folder, "--observers", "momentum,ekf", "--workers", 0, "--results", tmp_path / "kept")
    code, out, _ = evaluate(capsys, *words, "--json", "--report", tmp_path / "report")
    rows = json.loads(out)["recordings"]
    assert code == 0 and [row["recording"][-5:] for row in rows] == ["a.npz", "b.npz", "c.npz"]
    assert ["error" in row for row in rows] == [False, False, True]
    assert set(rows[0]["observers"]) == {"momentum", "ekf"}
    assert rows[0]["observers"]["ekf"]["force"]["contact"]["rmse_z"] < 10.0
    page = (tmp_path / "report" / "report.html").read_text()
    assert page.count("<img") == 3  # the distributions, and the two that could be read
    assert "c.npz" in page and "contact-estimation evaluate" in page
    table = list(csv.reader((tmp_path / "report" / "table.csv").open()))
    assert len(table) == 5 and table[0][:3] == ["recording", "robot", "observer"]
    code, out, _ = evaluate(capsys, *words)
    assert "a.npz" in out and "median" in out and "3 recordings, 1 with errors" in out


def test_recordings_of_one_name_are_told_apart_by_their_folders(folder, tmp_path, capsys):
    """Each session's folder has its press.npz: a table of names alone would not say which one is bad."""
    for session in ("monday", "tuesday"):
        (tmp_path / "bags" / session).mkdir(parents=True)
        (tmp_path / "bags" / session / "press.npz").write_bytes((folder / "a.npz").read_bytes())
    (tmp_path / "bags" / "tuesday" / "cut.npz").write_bytes(b"PK, and nothing else")
    words = (tmp_path / "bags", "--observers", "momentum", "--workers", 0, "--results", tmp_path / "kept")
    code, out, _ = evaluate(capsys, *words, "--report", tmp_path / "report")
    named = ["monday/press.npz", "tuesday/press.npz"]
    assert code == 0 and all(name in out for name in named) and "error: tuesday/cut.npz" in out
    table = list(csv.reader((tmp_path / "report" / "table.csv").open()))
    assert [line[0] for line in table[1:]] == named
    page = (tmp_path / "report" / "report.html").read_text()
    assert all(page.count(name) >= 3 for name in named)  # the worst, their pictures, all


def test_figures_are_those_of_compare(folder, tmp_path, capsys):
    _, out, _ = evaluate(
        capsys, folder / "a.npz", "--observers", "ekf", "--workers", 0, "--results", tmp_path, "--json"
    )
    figures = json.loads(out)["recordings"][0]["observers"]["ekf"]
    main(["compare", str(folder / "a.npz"), "--robot", "ur16e", "--observers", "ekf", "--json"])
    compared = json.loads(capsys.readouterr().out)["observers"]["ekf"]
    assert {key: figures[key] for key in compared if key != "step_us"} == {
        key: compared[key] for key in compared if key != "step_us"
    }


def test_where_everything_failed_the_exit_code_says_so(folder, tmp_path, capsys):
    words = ("--observers", "ekf", "--workers", 0, "--results", tmp_path, "--json")
    code, out, _ = evaluate(capsys, folder / "c.npz", *words)
    assert code == 2 and "error" in json.loads(out)["recordings"][0]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--observers", "ekf,momentun"), "nearest: 'momentum'"),
        (("--robot", "ur16"), "nearest: 'ur16e'"),
        (("--workers", "-1"), "--workers is -1"),
    ],
)
def test_mistakes_end_the_run_before_it_begins(folder, capsys, words, text):
    code, out, err = evaluate(capsys, folder, *words)
    assert code == 2 and out == "" and text in err
