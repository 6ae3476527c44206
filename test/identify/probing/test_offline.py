"""Identification from a recording."""

import zlib

import numpy as np
import pytest

from benchmark.adversary import probing as world
from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.probing.estimate import ProbingEstimate, bound_problem
from contact_estimation.identify.probing.offline import identify_recording
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import frame_from_normal
from contact_estimation.studies.probing.experiment import Experiment, planar_guess, samples, simulate


@pytest.fixture
def planar():
    experiment = Experiment("planar", 1, seed=6, seconds=4.0)
    data = simulate(experiment)
    pose, twist, wrench = samples(experiment, data.recording, 0)
    _, tip, phi = planar_guess(data.guess, 0)
    return data.truth, {"t": data.recording.t, "pose": pose, "twist": twist, "wrench": wrench, "tip": tip, "phi": phi}


def test_a_planar_recording_is_identified(planar, tmp_path):
    truth, arrays = planar
    np.savez(tmp_path / "probe.npz", **arrays)
    result, verdict = identify_recording(tmp_path / "probe.npz", "planar", ProbingSettings())
    assert (
        np.allclose(result["mean"][:2], truth.tips[0, 0, :2], atol=2e-3)
        and abs(result["mean"][5] - truth.friction[0]) < 3e-3
    )
    assert 0 < result["used"] < result["samples"] == len(arrays["t"])
    assert verdict.verdict == "good", verdict.reasons


def test_a_spatial_recording_is_identified(tmp_path):
    experiment = Experiment("spatial", 1, seed=6, seconds=5.0)
    data = simulate(experiment)
    pose, twist, wrench = samples(experiment, data.recording, 0)
    guess = {"tip": data.guess.tips[0, 0], "normal": data.guess.surface[0][:, 2]}
    np.savez(tmp_path / "probe.npz", t=data.recording.t, pose=pose, twist=twist, wrench=wrench, **guess)
    result, verdict = identify_recording(tmp_path / "probe.npz", "spatial", ProbingSettings())
    assert np.allclose(result["mean"][:3], data.truth.tips[0, 0], atol=2e-3)
    assert verdict.verdict == "good", verdict.reasons


def test_a_spatial_wrench_with_an_offset_is_doubted_and_the_offset_found(tmp_path):
    experiment = Experiment("spatial", 1, seed=6, seconds=8.0)
    data = simulate(experiment)
    pose, twist, wrench = samples(experiment, data.recording, 0)
    offset = np.array([2.0, -2.0, 1.0, 0.1, 0.1, -0.1])
    guess = {"tip": data.guess.tips[0, 0], "normal": data.guess.surface[0][:, 2]}
    np.savez(tmp_path / "probe.npz", t=data.recording.t, pose=pose, twist=twist, wrench=wrench + offset, **guess)
    result, verdict = identify_recording(tmp_path / "probe.npz", "spatial", ProbingSettings())
    assert verdict.verdict == "doubtful" and "has an offset" in verdict.reasons[0], verdict.reasons
    assert np.allclose(result["disturbance_value"], offset, atol=[0.3] * 3 + [0.03] * 3)
    assert np.allclose(result["mean"][:3], data.truth.tips[0, 0], atol=2e-3)


def test_a_hertz_contact_that_sliding_hardly_shows_is_named_by_its_normal_forces_at_rest(tmp_path):
    """From sliding alone, the chi-square of this seed's hardening is 1 where 11 is needed."""
    world.write(tmp_path, "hertz", np.random.default_rng([zlib.crc32(b"probing"), 514]))
    _, verdict = identify_recording(tmp_path / "probe.npz", "planar", ProbingSettings())
    assert verdict.verdict == "doubtful" and "faster than depth" in verdict.reasons[0], verdict.reasons


@pytest.mark.parametrize(
    "change, message",
    [
        ({"wrench": None}, "lacks wrench"),
        ({"pose": np.zeros((3, 3))}, "pose has shape"),
        ({"phi": np.nan}, "not finite"),
        ({"t": np.zeros(100)}, "does not advance"),
    ],
)
def test_broken_recordings_are_explained(planar, tmp_path, change, message):
    arrays = {**planar[1], **change}
    np.savez(tmp_path / "probe.npz", **{name: value for name, value in arrays.items() if value is not None})
    with pytest.raises(RecordingError, match=message):
        identify_recording(tmp_path / "probe.npz", "planar", ProbingSettings())


@pytest.mark.parametrize(
    "name, factor, message",
    [
        ("pose", [1.0, 1.0, 180.0 / np.pi], "orientation changes, and the twist says 0.0"),
        ("pose", [1e3, 1e3, 1.0], "position changes, and the twist says 0.001 times"),
        ("twist", [-1.0, -1.0, 1.0], "position changes, and the twist says 1 times as much or another direction"),
        ("twist", [1.0, 1.0, 0.0], "orientation changes, and the twist says 0 times"),
    ],
    ids=["degrees", "millimetres", "wrong sign", "no rates"],
)
def test_a_twist_that_is_not_the_rate_of_the_pose_is_refused(planar, tmp_path, name, factor, message):
    np.savez(tmp_path / "probe.npz", **{**planar[1], name: planar[1][name] * factor})
    with pytest.raises(RecordingError, match=message):
        identify_recording(tmp_path / "probe.npz", "planar", ProbingSettings())


def test_a_probe_that_never_touches_is_a_failure(planar, tmp_path):
    noise = 0.1 * np.random.default_rng(0).standard_normal(planar[1]["wrench"].shape)
    np.savez(tmp_path / "air.npz", **{**planar[1], "wrench": noise})
    verdict = identify_recording(tmp_path / "air.npz", "planar", ProbingSettings())[1]
    assert verdict.verdict == "failed" and verdict.exit_code == 3
    assert verdict.reasons[0].startswith("the probe never touches: its largest force is 0.")


@pytest.mark.filterwarnings("error")
def test_a_wrench_of_zeros_is_a_failure_without_a_warning(planar, tmp_path):
    np.savez(tmp_path / "air.npz", **{**planar[1], "wrench": np.zeros_like(planar[1]["wrench"])})
    verdict = identify_recording(tmp_path / "air.npz", "planar", ProbingSettings())[1]
    assert verdict.verdict == "failed" and verdict.reasons[0].startswith("the probe never touches")


def test_stiffness_and_friction_at_their_bounds_are_told_with_the_setting_to_change():
    settings, nothing = ProbingSettings(), np.zeros(2)

    def problem(stiffness: float, friction: float) -> str:
        mean = np.array([stiffness, friction])
        known = mean, nothing, nothing, np.eye(2), nothing, nothing
        return bound_problem(ProbingEstimate(0.0, ("stiffness", "friction"), *known, True, 0.0, 3), settings)

    assert problem(5000.0, 0.5) == ""
    assert "raise friction_max" in problem(5000.0, 1.49) and "stiffness" not in problem(5000.0, 1.49)
    assert "raise stiffness_max" in problem(19900.0, 1.49) and "raise friction_max" in problem(19900.0, 1.49)


def test_a_missing_recording_is_named(tmp_path):
    with pytest.raises(RecordingError, match=r"absent\.npz"):
        identify_recording(tmp_path / "absent.npz", "planar", ProbingSettings())


def test_frames_from_normals_are_rotations():
    frame = frame_from_normal([0.0, 0.3, 2.0])
    assert np.allclose(frame.T @ frame, np.eye(3)) and np.linalg.det(frame) == pytest.approx(1.0)
    assert np.allclose(frame[:, 2], np.array([0.0, 0.3, 2.0]) / np.hypot(0.3, 2.0))
