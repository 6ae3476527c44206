"""The verb prints exactly what it promises, and a report that stands alone."""

from __future__ import annotations

import json
import re

import pytest

from contact_estimation.cli import main

KEYS = {
    "force_rmse_estimating",
    "force_rmse_fixed",
    "solve_ms_p50",
    "solve_ms_p99",
    "max_impedance_force",
    "force_limit",
}


def test_json_and_report(capsys, tmp_path):
    arguments = [
        "mpc",
        "plane",
        "--robot",
        "fr3",
        "--solver",
        "rti",
        "--seed",
        "7",
        "--height-error",
        "0.02",
        "--duration",
        "2",
    ]
    assert main([*arguments, "--json", "--report", str(tmp_path)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result) == KEYS
    assert result["force_rmse_estimating"] <= min(1.0, 0.25 * result["force_rmse_fixed"])
    assert result["max_impedance_force"] <= 1.01 * result["force_limit"]
    page = (tmp_path / "report.html").read_text()
    assert page.count("data:image/png") == 4 and not re.search(r"(src|href)=.http", page)
    assert "--seed 7" in page


def test_a_press_of_the_ur16e(capsys):
    assert main(["mpc", "press", "--seed", "1", "--duration", "2.5", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["force_rmse_estimating"] < 5.0 < result["force_rmse_fixed"]


def test_an_unknown_solver_is_refused():
    with pytest.raises(SystemExit):
        main(["mpc", "plane", "--solver", "magic"])


STEPS = """
task: mpc_plane_fr3
steps:
  - {name: approach, controller: feedforward, path: [0.0, 0.0, -0.03], path_time: 1.5, until: touched}
  - {name: press, force: [0.0, 0.0, 10.0], until: settled, limit: 3.0, fallback: retract}
  - {name: retract, controller: feedforward, path: [0.0, 0.0, 0.01], path_time: 0.5, until: arrived}
"""


def test_a_task_in_steps_says_how_each_ended(capsys, tmp_path):
    path = tmp_path / "steps.yaml"
    path.write_text(STEPS)
    assert main(["mpc", "sequence", "--steps", str(path), "--duration", "6", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["completed"] and [step["step"] for step in result["steps"]] == ["approach", "press", "retract"]
    assert result["peak_force"] < 13.0 and result["max_impedance_force"] <= 1.01 * result["force_limit"]


@pytest.mark.parametrize(("task", "robots"), [("pivot", "fr3"), ("probe", "fr3, ur16e")])
def test_a_robot_without_the_task_is_told_those_with_it(task, robots, capsys):
    assert main(["mpc", task, "--robot", "ur10e"]) == 2
    error = capsys.readouterr().err
    assert f"is set up for robot {robots}, not for 'ur10e'" in error and "Shipped" not in error


def test_runs_belong_to_probing(capsys):
    assert main(["mpc", "plane", "--robot", "fr3", "--runs", "3"]) == 2
    assert "--runs is for mpc probe" in capsys.readouterr().err


def test_steps_belong_to_a_sequence(capsys):
    assert main(["mpc", "plane", "--steps", "sequence_block_fr3"]) == 2
    assert "--steps" in capsys.readouterr().err


@pytest.mark.parametrize("task", ["plane", "sequence"])
def test_the_tool_is_the_one_of_the_option(task, capsys):
    assert main(["mpc", task, "--tool", "no_such_tool"]) == 2
    assert "no_such_tool" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_duration_that_is_none_is_refused(seconds, capsys):
    assert main(["mpc", "plane", "--duration", seconds]) == 2
    assert f"--duration must be greater than 0 and at most 86400 s, found {seconds}" in capsys.readouterr().err
