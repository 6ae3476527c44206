"""Verb compare: the figures of several observers, with the reference the recording has."""

import dataclasses
import json
import re

import numpy as np
import pytest
from recordings import press_recording

from contact_estimation.cli import main
from contact_estimation.commands.convert import write_recording
from contact_estimation.filters.registry import open_stream
from contact_estimation.io.npz import write_npz
from contact_estimation.io.open import open_recording
from contact_estimation.io.replay import replay
from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    path = tmp_path_factory.mktemp("compare") / "press.npz"
    arm = load_arm("ur16e")
    write_recording(path, press_recording(arm), arm)
    return path


def test_figures_are_those_of_each_observer(bag, tmp_path, capsys):
    out = tmp_path / "report.html"
    words = ["compare", str(bag), "--robot", "ur16e", "--observers", "momentum,ekf", "--json", "--out", str(out)]
    assert main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert list(result["observers"]) == ["momentum", "ekf"] and result["reference"] == "truth"
    arm = load_arm("ur16e")
    recording = open_recording(bag, arm.joint_names)
    force = replay(recording, open_stream(arm, "momentum")).columns()["force"]
    truth = recording.truth["wrench_tcp"][:, 2]
    pushed = np.abs(truth) > 15.0  # well within what the summary takes for contact
    told = result["observers"]["momentum"]["force"]["contact"]["rmse_z"]
    assert told == pytest.approx(np.sqrt(np.mean((force[pushed, 2] - truth[pushed]) ** 2)), rel=0.25)
    page = out.read_text()
    assert not re.search(r"(src|href)=\"?(http|/)", page)
    for heading in ("Force", "Stiffness", "TCP", "Contact point", "compare"):
        assert heading in page, heading


def test_an_observer_nobody_knows_is_refused(bag, capsys):
    assert main(["compare", str(bag), "--robot", "ur16e", "--observers", "ekf,momentun"]) == 2
    assert "momentum" in capsys.readouterr().err


def test_verbs_say_how_long_the_reference_is_missing(tmp_path, capsys):
    recording = press_recording(load_arm("ur16e"))
    wrench = recording.truth["wrench_tcp"].copy()
    wrench[400:450, 2] = np.nan
    file = write_npz(tmp_path / "gap.npz", dataclasses.replace(recording, truth={}, wrench_tcp=wrench, robot="ur16e"))
    told = "missing (NaN) for 5 % of the time"
    for words in (["compare", "--observers", "momentum", "--out", str(tmp_path / "r.html")], ["replay"]):
        more = ["--observer", "momentum"] if words == ["replay"] else []
        assert main([words[0], str(file), *words[1:], *more]) == 0
        assert told in capsys.readouterr().out
        assert main([words[0], str(file), *words[1:], *more, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["observers"]["momentum"]["force"]["missing"] == 0.05
    assert told in (tmp_path / "r.html").read_text()
    words = ["evaluate", str(file), "--observers", "momentum", "--results", str(tmp_path / "results")]
    assert main([*words, "--workers", "0", "--report", str(tmp_path / "all")]) == 0
    assert f"gap.npz: the reference is {told}" in capsys.readouterr().out
    assert told in (tmp_path / "all" / "report.html").read_text()


def test_why_estimates_are_invalid_is_told(tmp_path, capsys):
    recording = press_recording(load_arm("ur16e"), seconds=0.5)
    twice = {name: np.repeat(getattr(recording, name), 2, axis=0) for name in ("stamps_ns", "q", "dq", "tau")}
    twice["wrench_tcp"] = np.full((500, 6), np.nan)
    file = write_npz(tmp_path / "twice.npz", dataclasses.replace(recording, truth={}, robot="ur16e", **twice))
    assert main(["compare", str(file), "--observers", "momentum"]) == 0
    said = capsys.readouterr()
    assert "250 stamps repeat the one before" in said.err and "x the stamp of the last sample came" in said.err
    assert "reference none, the measured force is missing (NaN) for 100 % of the time" in said.out
    assert main(["compare", str(file), "--observers", "momentum", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["recording"]["problems"]) == 1
