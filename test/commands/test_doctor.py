"""The verb ``doctor``: what it finds here, and what it says where something is missing."""

import json

import pytest

from contact_estimation.cli import main
from contact_estimation.commands import diagnosis


def test_everything_needed_is_found_and_the_loop_is_timed(capsys):
    assert main(["doctor", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ok"] and {part["name"] for part in result["packages"] if not part["ok"] and part["needed"]} == set()
    assert all(part["version"] for part in result["packages"] if part["ok"])
    steps = result["loop"]["step_us"]
    assert all(0 < value["p50"] <= value["p99"] for value in steps.values())
    assert steps["sample with checks"]["p50"] < steps["sample to estimate"]["p50"]


def test_text_names_the_parts(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for word in ("numpy", "C compiler", "code cache", "rclpy", "virtual machine", "p50"):
        assert word in out


def test_no_compiler(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    found = diagnosis.compiler()
    assert not found["ok"] and "install one" in found["remedy"]


def test_broken_compiler(monkeypatch, tmp_path):
    fake = tmp_path / "cc"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo fake 1.0 && exit 0\necho broken >&2; exit 1\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    found = diagnosis.compiler()
    assert not found["ok"] and found["version"] == "fake 1.0" and "does not work" in found["remedy"]


def test_unsafe_cache(monkeypatch, tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("CONTACT_ESTIMATION_CACHE", str(folder))
    found = diagnosis.cache()
    assert not found["ok"] and "chmod 700" in found["remedy"]


def test_missing_package_is_named_with_its_remedy(monkeypatch, capsys):
    monkeypatch.setattr(diagnosis, "_PACKAGES", (("no_such_module", "no-such-package", True, "nothing"),))
    monkeypatch.setattr(diagnosis, "loop", lambda *_: diagnosis._finding("loop", False, True, "", "not timed"))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "MISSING" in out and "pip install no-such-package" in out


@pytest.mark.parametrize(
    ("robot", "observer", "text"), [("ur16e", "momentum", "is no EKF"), ("ur99", "ekf", "no robot 'ur99'")]
)
def test_loop_that_cannot_be_timed(robot, observer, text):
    found = diagnosis.loop(robot, observer)
    assert not found["ok"] and text in found["purpose"] and found["remedy"]
