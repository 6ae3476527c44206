"""``contact-estimation identify probing``."""

import json

import pytest

from contact_estimation.cli import main
from contact_estimation.studies.probing.report import summary

#: Two runs in this process: starting workers would take longer.
TWO_RUNS = ["identify", "probing", "--runs", "2", "--seed", "1", "--workers", "0", "--json"]


@pytest.mark.parametrize("example", ["planar", "spatial"])
def test_json_holds_the_scores(example, capsys):
    assert main([*TWO_RUNS, "--example", example]) == 0
    result = json.loads(capsys.readouterr().out)
    for name in (
        "converged_pct",
        "tip_error_mm",
        "orientation_error_rad",
        "stiffness_error",
        "friction_error",
        "updates_per_second",
    ):
        assert isinstance(result[name], float), name


def test_worker_processes_give_the_same_scores(capsys):
    scores = []
    for workers in ("0", "2"):
        assert main([*TWO_RUNS, "--workers", workers]) == 0
        scores.append(json.loads(capsys.readouterr().out))
        del scores[-1]["updates_per_second"]
    assert scores[0] == scores[1]


def test_figures_and_report_are_written(tmp_path, capsys):
    assert (
        main(
            [
                "identify",
                "probing",
                "--runs",
                "1",
                "--figures",
                str(tmp_path),
                "--report",
                str(tmp_path / "r.html"),
                "--json",
            ]
        )
        == 0
    )
    result = json.loads(capsys.readouterr().out)
    assert len(result["figures"]) == 4 and all((tmp_path / name).stat().st_size > 5000 for name in result["figures"])
    assert "<img" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--runs", "0"], "at least 1"),
        (["--example", "spatial", "--ablation"], "belongs to --example planar"),
        (["--sensorless", "fr3"], "belongs to --example spatial"),
        (["--recording", "none.npz"], "none.npz"),
        (["--example", "spatial", "--recording", "none.npz", "--fork", "0.1"], "--recording takes no --fork"),
        (["--recording", "none.npz", "--report", "r.html", "--figures", "f"], "takes no --figures, --report"),
        (["--example", "spatial", "--explore", "--sensorless", "fr3"], "--explore takes no --sensorless"),
        (["--ablation", "--figures", "f"], "--ablation takes no --figures"),
    ],
)
def test_mistakes_are_explained(arguments, message, capsys):
    assert main(["identify", "probing", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_settings_come_from_a_file_and_unknown_keys_are_refused(tmp_path, capsys):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("force_noise: 0.6\n")
    bad.write_text("force_nois: 0.6\n")
    errors = []
    for extra in ([], ["--settings", str(good)]):
        assert main(["identify", "probing", "--runs", "3", "--seed", "1", "--workers", "0", "--json", *extra]) == 0
        errors.append(json.loads(capsys.readouterr().out)["friction_error"])
    assert errors[1] > errors[0]  # four times the force noise shows
    assert main(["identify", "probing", "--settings", str(bad)]) == 2
    assert "force_noise" in capsys.readouterr().err


def test_runs_that_do_not_settle_are_told_in_words(capsys):
    assert main([*TWO_RUNS]) == 0
    result = json.loads(capsys.readouterr().out)
    assert "settled         after " in summary(result)
    assert "settled         less than half of the runs" in summary(result | {"settling_time_s": float("inf")})


def test_exploration_reports_time_and_force(capsys):
    assert main(["identify", "probing", "--example", "spatial", "--explore", "--runs", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["reached_pct"] == 100.0 and 0.0 < result["max_force"] < 55.0
