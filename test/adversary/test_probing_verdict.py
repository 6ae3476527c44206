"""Verdicts on recordings of a world that shares no code with the filter: named faults, and clean ones that pass."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmark.adversary import probing as world
from contact_estimation.cli import main
from contact_estimation.identify.probing.disturbances import Samples
from contact_estimation.identify.probing.offline import identify_recording
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.signals import frozen


def identify(folder, fault: str, seed: int = 4):
    case = world.write(folder, fault, np.random.default_rng([7, seed]))
    result, verdict = identify_recording(folder / "probe.npz", "planar", ProbingSettings())
    return case.truth, result, verdict


def outside(truth, result) -> list[str]:
    """Parameters whose interval, twice as wide, does not hold the truth."""
    names = []
    for name, (low, high) in zip(result["names"], result["interval_total"]):
        if abs(truth[name] - 0.5 * (low + high)) > high - low:
            names.append(name)
    return names


def test_a_recording_that_the_filter_explains_is_good(tmp_path):
    truth, result, verdict = identify(tmp_path, "clean")
    assert verdict.verdict == "good" and not verdict.reasons
    assert verdict.unchecked == ("no measurement checks the scale of the wrench; it would move stiffness",)
    assert not outside(truth, result)


@pytest.mark.parametrize(
    ("fault", "word", "stiffness_pct"),
    [
        ("bias", "offset", 3.0),
        ("gap", "of samples are missing", 3.0),
        ("wrong_tip", "from the guess", 3.0),
        ("curved", "curved", 3.0),
        ("clock", "late", 6.0),
        ("gain", "moment reads", 4.0),
        ("tool_weight", "weight", 3.0),
        ("drift", "drifts", 3.0),
        ("stiffness_jump", "changed at 4", 5.0),
        ("fast_twist", "1.10 times the motion", 3.0),
        ("frozen_pose", "the pose repeats from", 3.0),
    ],
)
def test_a_disturbance_is_named_and_its_effect_taken_off(tmp_path, fault, word, stiffness_pct):
    truth, result, verdict = identify(tmp_path, fault)
    assert verdict.verdict == "doubtful"
    assert any(word in reason for reason in verdict.reasons), verdict.reasons
    stiffness = result["mean"][result["names"].index("stiffness")]
    assert abs(stiffness / truth["stiffness"] - 1.0) < 0.01 * stiffness_pct
    assert not outside(truth, result)


@pytest.mark.parametrize(
    "fault", ["second_contact", "moving_surface", "saturated", "noisy", "outliers", "friction_patch"]
)
def test_what_cannot_be_mended_is_not_called_good(tmp_path, fault):
    assert identify(tmp_path, fault)[2].verdict != "good"


def test_a_frozen_wrench_is_named_with_its_time(tmp_path):
    world.write(tmp_path, "clean", np.random.default_rng([7, 4]))
    arrays = dict(np.load(tmp_path / "probe.npz"))
    part = (arrays["t"] > 3.0) & (arrays["t"] < 3.5)
    arrays["wrench"][part] = arrays["wrench"][part][0]
    np.savez(tmp_path / "frozen.npz", **arrays)
    _, verdict = identify_recording(tmp_path / "frozen.npz", "planar", ProbingSettings())
    assert verdict.verdict != "good" and "the wrench repeats from 3.0" in verdict.reasons[0]


@pytest.mark.parametrize("signal", ["wrench", "pose"])
@pytest.mark.parametrize("readings", [1, 3])
def test_a_signal_frozen_for_the_whole_recording_is_no_slow_sensor(signal, readings):
    rng, steps = np.random.default_rng(0), 600
    model, settings = PlanarModel(*ProbingSettings().bounds()), ProbingSettings()
    signals = {"pose": rng.standard_normal((steps, 3)), "wrench": rng.standard_normal((steps, 3))}
    signals[signal] = np.repeat(rng.standard_normal((readings, 3)), steps // readings, axis=0)
    tests = frozen(model, Samples(0.002 * np.arange(steps), twist=np.ones((steps, 3)), **signals), settings)
    assert [test.test for test in tests if test.flagged] == [f"frozen[{signal}]"]


def test_a_pose_that_repeats_at_rest_is_not_frozen():
    t = np.arange(100) * 0.04
    model, rng = PlanarModel(*ProbingSettings().bounds()), np.random.default_rng(0)
    pose = np.concatenate([rng.standard_normal((50, 3)), np.zeros((50, 3))])  # it rests in the second half
    data = Samples(t, pose, 2e-3 * rng.standard_normal((100, 3)), rng.standard_normal((100, 3)))
    assert not any(test.flagged for test in frozen(model, data, ProbingSettings()))


def test_a_sensor_slower_than_its_log_is_not_frozen_until_it_is():
    """Each of its readings is logged six times."""
    t, rng = np.arange(600) * 0.002, np.random.default_rng(0)
    model, settings = PlanarModel(*ProbingSettings().bounds()), ProbingSettings()
    wrench = np.repeat(rng.standard_normal((100, 3)), 6, axis=0)
    found = [frozen(model, Samples(t, rng.standard_normal((600, 3)), np.zeros((600, 3)), wrench), settings)[0]]
    wrench[300:360] = wrench[300]
    found.append(frozen(model, Samples(t, rng.standard_normal((600, 3)), np.zeros((600, 3)), wrench), settings)[0])
    assert [test.flagged for test in found] == [False, True]
    assert "from 0.60 to 0.72 s" in found[1].message


def test_a_stiffness_at_its_bound_fails_with_the_setting_to_change(tmp_path):
    world.write(tmp_path, "clean", np.random.default_rng([7, 4]))
    settings = ProbingSettings(stiffness_max=1800.0, stiffness_start=900.0, stiffness_start_std=300.0)
    result, verdict = identify_recording(tmp_path / "probe.npz", "planar", settings)
    assert verdict.verdict == "failed" and verdict.exit_code == 3
    assert any("raise stiffness_max" in reason for reason in verdict.reasons)
    low, high = result["interval_total"][result["names"].index("stiffness")]
    assert 0.0 < low < high < 1800.0


def test_the_command_prints_the_verdict_and_the_offset(tmp_path, capsys):
    truth = world.write(tmp_path, "bias", np.random.default_rng([7, 4])).truth
    code = main(["identify", "probing", "--recording", str(tmp_path / "probe.npz"), "--json"])
    output = json.loads(capsys.readouterr().out)
    assert code == 0 and output["verdict"] == "doubtful" and len(output["reasons"]) == 1
    assert np.shape(output["interval_total"]) == (6, 2) and output["disturbance"] == "offset"
    apart = np.subtract(output["disturbance_value"], [truth[name] for name in world.OFFSET])
    assert np.all(np.abs(apart) < [0.3, 0.3, 0.03]) and np.all(np.abs(apart / output["disturbance_std"]) < 3.0)
