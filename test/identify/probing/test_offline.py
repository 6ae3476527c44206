"""Identification from a recording."""

import numpy as np
import pytest

from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.probing.experiment import Experiment, simulate
from contact_estimation.identify.probing.offline import frame_from_normal, identify_recording
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.world_spatial import homogeneous


@pytest.fixture
def planar():
    data = simulate(Experiment("planar", 1, seed=6, seconds=4.0))
    rec, guess = data.recording, data.guess
    return data.truth, {
        "t": rec.t,
        "pose": rec.pose[:, :, 0],
        "twist": rec.twist[:, :, 0],
        "wrench": rec.wrench[:, :, 0],
        "tip": guess.tip[:, 0],
        "phi": guess.phi[0],
    }


def test_a_planar_recording_is_identified(planar, tmp_path):
    truth, arrays = planar
    np.savez(tmp_path / "probe.npz", **arrays)
    result = identify_recording(tmp_path / "probe.npz", "planar", ProbingSettings())
    assert (
        np.allclose(result["mean"][:2], truth.tip[:, 0], atol=2e-3)
        and abs(result["mean"][5] - truth.friction[0]) < 3e-3
    )
    assert 0 < result["used"] < result["samples"] == len(arrays["t"])


def test_a_spatial_recording_is_identified(tmp_path):
    data = simulate(Experiment("spatial", 1, seed=6, seconds=5.0))
    rec, guess = data.recording, data.guess
    poses = np.array([homogeneous(r, p) for r, p in zip(rec.rotation[:, 0], rec.position[:, 0])])
    np.savez(
        tmp_path / "probe.npz",
        t=rec.t,
        pose=poses,
        twist=rec.twist[:, 0],
        wrench=rec.wrench[:, 0],
        tip=guess.tips[0, 0],
        normal=guess.surface[0][:, 2],
    )
    result = identify_recording(tmp_path / "probe.npz", "spatial", ProbingSettings())
    assert np.allclose(result["mean"][:3], data.truth.tips[0, 0], atol=2e-3)


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


def test_a_missing_recording_is_named(tmp_path):
    with pytest.raises(RecordingError, match="absent.npz"):
        identify_recording(tmp_path / "absent.npz", "planar", ProbingSettings())


def test_frames_from_normals_are_rotations():
    frame = frame_from_normal([0.0, 0.3, 2.0])
    assert np.allclose(frame.T @ frame, np.eye(3)) and np.linalg.det(frame) == pytest.approx(1.0)
    assert np.allclose(frame[:, 2], np.array([0.0, 0.3, 2.0]) / np.hypot(0.3, 2.0))
