"""The verb ``identify batch``: one JSON object, the examples, and errors a user can mend."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from contact_estimation.cli import main
from contact_estimation.exceptions import IdentificationError

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="mujoco.sysid needs Python 3.11")


def run(capsys, *arguments):
    assert main(["identify", "batch", *arguments]) == 0
    return capsys.readouterr().out


def test_anchor_example_prints_one_object_in_which_the_joint_method_wins(capsys):
    found = json.loads(run(capsys, "--example", "anchor", "--json"))
    assert found["joint_rounds_to_half_mm"] <= 8 and found["em_rounds_to_half_mm"] is None


def test_two_starts_print_the_promised_figures(capsys):
    found = json.loads(
        run(capsys, "--example", "finger", "--starts", "2", "--seed", "1", "--duration", "2.4", "--json")
    )
    assert {
        "friction_error_pct",
        "stiffness_error_pct",
        "spring_error_pct",
        "cost_spread_pct",
        "iterations_median",
        "seconds_per_iteration",
    } <= set(found)
    assert found["friction_error_pct"] < 3.0 and found["stiffness_error_pct"] < 15.0 and found["spring_error_pct"] < 5.0
    assert found["cost_spread_pct"] < 5.0 and found["starts"] == 2


def test_a_channel_that_is_left_out_is_told_by_its_prediction_alone(capsys):
    text = run(capsys, "--example", "finger", "--duration", "2.2", "--without", "force")
    assert "force: predicted from the other channels to " in text and "nan" not in text


def test_a_recording_is_estimated_and_written(capsys, tmp_path):
    """Torques of zero at rest contradict gravity: the estimate is written, and called failed."""
    t = np.arange(0.0, 0.6, 0.002)
    q = np.tile([-0.995, -1.02, 2.297, -2.87, -1.55, 0.563], (len(t), 1))
    np.savez(tmp_path / "r.npz", t=t, q=q, dq=0 * q, tau=0 * q)
    words = ["--model", "ur16e_press", "--mode", "trajectory", "--json", "--output", str(tmp_path / "out.npz")]
    assert main(["identify", "batch", str(tmp_path / "r.npz"), *words]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "failed" and found["reasons"]
    assert set(found["channels"]) == {"dynamics", "encoders"}
    assert found["parameters"]["stiffness"]["value"] == pytest.approx(2e4)
    assert found["parameters"]["stiffness"]["note"] == "held"
    assert (tmp_path / "out.npz").is_file()


def test_cross_validation_of_the_finger_uses_the_formulation(capsys, monkeypatch):
    def refuse(recording, formulation="inverse", **more):
        raise IdentificationError(f"{formulation} is used")

    monkeypatch.setattr("contact_estimation.studies.batch.finger.simulate", lambda seed, duration: None)
    monkeypatch.setattr("contact_estimation.studies.batch.finger.problem", refuse)
    assert main(["identify", "batch", "--example", "finger", "--cross-validate", "2", "--formulation", "forward"]) == 2
    assert "forward is used" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, text",
    [
        ([], "give either"),
        (["r.npz", "--example", "anchor"], "give either"),
        (["r.npz"], "--model SCENE is missing"),
        (["r.npz", "--model", "ur16"], "ur16e_press"),
        (["--example", "finger", "--starts", "0"], "--starts must be at least 1, found 0"),
        (["--example", "finger", "--starts", "2", "--without", "force"], "has no use for --without; it takes --seed, "),
        (["--example", "finger", "--starts", "2", "--mode", "trajectory"], "has no use for --mode"),
        (["--example", "finger", "--workers", "2"], "has no use for --workers"),
        (["--example", "finger", "--cross-validate", "2", "--output", "a.npz"], "has no use for --output"),
        (["r.npz", "--model", "ur16e_press", "--cross-validate", "2", "--starts", "2"], "has no use for --starts"),
        (["r.npz", "--model", "ur16e_press", "--duration", "3"], "has no use for --duration"),
        (["--example", "anchor", "--report", "a.html"], "anchor has no use for --report; it takes --seed\n"),
        (["r.npz", "--model", "ur16e_press", "--starts", "2", "--mode", "trajectory"], "give it without --starts"),
    ],
)
def test_unusable_arguments_say_what_to_do(capsys, arguments, text):
    assert main(["identify", "batch", *arguments]) == 2
    assert text in capsys.readouterr().err
