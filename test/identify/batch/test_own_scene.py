"""The section "Your own scene" of the page takes a stranger from an MJCF and an archive to parameters."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from contact_estimation.cli import main

PAGE = Path(__file__).resolve().parents[3] / "docs" / "identify_batch.md"
TRUTH = {"mass": 3.0, "rail": 8.0, "stiffness": 4000.0, "damping": 30.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The section's three files, and its commands."""
    folder = tmp_path_factory.mktemp("cart")
    section = PAGE.read_text().split("## Your own scene")[1].split("\n## ")[0]
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", section, re.M | re.S)
    code = dict(blocks)
    (folder / "cart.xml").write_text(code["xml"])
    (folder / "cart.yaml").write_text(code["yaml"])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(code["python"], str(PAGE), "exec"), {})
    return folder, [shlex.split(line, comments=True)[1:] for line in code[""].splitlines()]


def _answer(folder, words, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert main([*words, "--json"] if "--json" not in words else words) == 0
    return json.loads(capsys.readouterr().out)


def _is_true(found):
    for name, true in TRUTH.items():
        assert found["parameters"][name]["value"] == pytest.approx(true, rel=0.02), name
    assert found["parameters"]["buffer[0]"]["value"] == pytest.approx(1e-3, abs=2e-5)


@pytest.mark.parametrize("line", [0, 1, 3], ids=["one", "starts", "two recordings"])
def test_the_commands_of_the_page_recover_what_was_planted(folder, line, capsys, monkeypatch):
    found = _answer(folder[0], folder[1][line], capsys, monkeypatch)
    _is_true(found)
    assert found["verdict"] == "good" and set(TRUTH) < set(found["interval_total"])
    if line == 0:
        assert found["iterations"] <= 10


def test_halves_of_the_recording_agree(folder, capsys, monkeypatch):
    found = _answer(folder[0], folder[1][2], capsys, monkeypatch)
    assert found["verdict"] == "good" and found["worst_other_pct"] > 0.0
    for half in found["values"]:
        assert half[:4] == pytest.approx(list(TRUTH.values()), rel=0.03)
