"""The adversarial pack counts what was said against what is true."""

import json

import pytest

from benchmark.adversary import __main__ as runner, planar
from benchmark.adversary.summary import covered, silently_wrong, table, wilson


def row(verdict, value, half, **more):
    return {
        "system": "planar",
        "fault": "clean",
        "seed": 0,
        "verdict": verdict,
        "truth": {"m_over_i": 1.0},
        "found": {"m_over_i": [value, value - half, value + half]},
        "cpu": 1.0,
        "note": "",
    } | more


def answer(**changes):
    return json.dumps({"m_over_i": 1.0, "interval": [0.9, 1.1]} | changes)


@pytest.mark.parametrize(
    ("code", "text", "errors", "verdict"),
    [
        (0, answer(), "", "good"),
        (0, answer(status="local"), "", "good"),
        (0, answer(status="failed", reason="why"), "", "failed"),
        (0, answer(verdict="doubtful", reasons=["late"]), "", "doubtful"),
        (1, answer(verdict="failed", reasons=["late"]), "", "failed"),
        (2, "", "contact-estimation: the file lacks t", "failed"),
        (1, "", "Traceback (most recent call last)\nKeyError: 't'", "crashed"),
        (0, "no object", "", "crashed"),
    ],
)
def test_the_verdict_is_the_answers_then_the_exit_codes(code, text, errors, verdict):
    assert runner.judge(planar, code, text, errors)[0] == verdict


def test_the_total_interval_counts_where_there_is_one():
    found = runner.judge(planar, 0, answer(interval_total=[0.5, 1.5]), "")[2]
    assert found == {"m_over_i": [1.0, 0.5, 1.5]}


def test_only_an_unflagged_run_is_silently_wrong():
    assert silently_wrong(row("good", 1.5, 0.2))
    assert not silently_wrong(row("doubtful", 1.5, 0.2))
    assert not silently_wrong(row("good", 1.1, 0.2))


def test_coverage_counts_the_intervals_of_unflagged_runs():
    rows = [row("good", 1.05, 0.1), row("good", 1.5, 0.1), row("failed", 1.0, 0.1)]
    assert covered(rows) == (1, 2)


def test_a_share_of_none_out_of_many_is_not_taken_for_zero():
    low, high = wilson(0, 60)
    assert low == pytest.approx(0.0, abs=1e-12)
    assert 0.05 < high < 0.07


def test_a_table_has_a_row_for_every_fault_that_ran():
    lines = table("planar", planar, [row("good", 1.1, 0.1), row("failed", 2.0, 0.1, fault="side")])
    assert [line.split(" | ")[0] for line in lines[4:-1]] == ["| clean", "| side"]


def test_a_run_goes_through_the_command_line_and_is_not_repeated(tmp_path):
    jobs = [("planar", "clean", 4)]
    first = runner.collect(jobs, tmp_path, 1)
    assert first[0]["verdict"] == "good"
    assert first[0]["found"]["m_over_i"][0] == pytest.approx(first[0]["truth"]["m_over_i"], rel=0.3)
    size = (tmp_path / "rows.jsonl").stat().st_size
    assert runner.collect(jobs, tmp_path, 1) == first
    assert (tmp_path / "rows.jsonl").stat().st_size == size
