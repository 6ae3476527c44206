"""Replay: every sample through the stream, every estimate in the log."""

import dataclasses
import warnings

import numpy as np
import pytest
from recordings import press_recording

from contact_estimation.exceptions import RecordingError
from contact_estimation.filters.registry import open_stream
from contact_estimation.io.estimate_file import EstimateFile
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.replay import estimates, fitting_blocks, replay
from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def recording(arm):
    return press_recording(arm)


@pytest.mark.parametrize("observer", ["momentum", "paper_online"])
def test_log_holds_what_the_stream_says(arm, recording, observer):
    log = replay(recording, open_stream(arm, observer))
    columns = log.columns()
    assert len(log) == len(recording) and log.observer == observer
    np.testing.assert_array_equal(columns["stamps_ns"], recording.stamps_ns)
    np.testing.assert_array_equal(columns["t"], recording.t)
    stream = open_stream(arm, observer)
    for row in range(len(recording)):
        sample = recording.q[row], recording.dq[row], recording.tau[row]
        estimate = stream.push(int(recording.stamps_ns[row]), *sample)
        if row % 97 == 0:
            contact = estimate.contacts[0]
            for name, value in (
                ("force", estimate.force_tcp),
                ("force_base", estimate.force_base),
                ("torque_tcp", estimate.torque_tcp),
                ("force_covariance", estimate.force_covariance),
                ("tau_ext", estimate.tau_ext),
                ("nis", estimate.nis),
                ("valid", estimate.valid),
                ("mode", estimate.mode),
                ("rest", contact.rest),
                ("contact_point", contact.point_base),
            ):
                np.testing.assert_array_equal(columns[name][row], value, err_msg=name)
            # The norm of all rows at once may round differently from that of one: fused multiply-add, by processor.
            np.testing.assert_allclose(columns["stiffness"][row], estimate.stiffness, rtol=1e-14)
            np.testing.assert_array_equal(columns["contact_covariance"][row, 0], contact.covariance)
            np.testing.assert_array_equal(columns["contact_point_tcp"][row, 0], contact.point_tcp)
    assert (columns["step_time"] > 0).all()


def test_planted_force_comes_back(arm, recording, tmp_path):
    (tmp_path / "plain.yaml").write_text("observer: momentum\n")  # on the arm's own model, which made the recording
    columns = replay(recording, open_stream(arm, str(tmp_path / "plain.yaml"), "joint_torque")).columns()
    lag = 25  # the residual follows with 1 / K_O = 50 ms
    error = columns["force"][lag:, 2] - recording.truth["wrench_tcp"][:-lag, 2]
    assert np.abs(error).max() < 0.06 * np.abs(recording.truth["wrench_tcp"]).max()


def test_invalid_rows_hold_no_number(arm, recording):
    q = recording.q.copy()
    q[40, 2] = np.nan
    columns = replay(dataclasses.replace(recording, q=q), open_stream(arm, "momentum")).columns()
    assert not columns["valid"][40] and columns["valid"][41] and "elbow_joint" in columns["reason"][40]
    for name in ("force", "force_base", "stiffness", "contact_point", "tau_ext"):
        assert np.isnan(columns[name][40]).all(), name
        assert np.isfinite(columns[name][41]).all(), name


def test_export_round_trip(arm, recording, tmp_path):
    log = replay(recording, open_stream(arm, "paper_online"))
    path = log.save(tmp_path / "new" / "est.npz", recording.truth)
    again = EstimateLog.load(path)
    assert again.observer == "paper_online"
    assert again.contact_names == ("contact_1",) and again.mode_names == ("contact",)
    for name, column in log.columns().items():
        np.testing.assert_array_equal(again.columns()[name], column, err_msg=name)
    with np.load(path, allow_pickle=False) as archive:
        for name, value in recording.truth.items():
            key = "truth_contact_stiffness" if name == "stiffness" else f"truth_{name}"
            np.testing.assert_array_equal(archive[key], value)
        np.testing.assert_allclose(archive["truth_stiffness"], np.linalg.norm(recording.truth["stiffness"], axis=1))
        assert archive["force"].shape == (1000, 3) and archive["stiffness"].shape == (1000,)


@pytest.mark.parametrize("observer", ["paper_online", "momentum"])
def test_a_streamed_export_is_the_same_archive(arm, recording, tmp_path, observer):
    """Blocks of 150: contacts and their names appear in the third, a later one has none, the last one is not full."""
    q = recording.q.copy()
    q[:310, 0] = q[590:760, 0] = np.nan
    recording = dataclasses.replace(recording, q=q)
    file = EstimateFile(observer, tmp_path / "new" / "streamed.npz", block=150)
    log = EstimateLog(observer, len(recording))
    for _ in estimates(recording, open_stream(arm, observer), (file.append, log.append)):
        pass
    paths = file.save(recording), log.save(tmp_path / "whole.npz", recording.truth)
    streamed, whole = (dict(np.load(path, allow_pickle=False)) for path in paths)
    assert streamed.keys() == whole.keys() and not whole["valid"][:310].any() and whole["valid"].any()
    for name, column in whole.items():
        np.testing.assert_array_equal(streamed[name], column, err_msg=name)


def test_what_is_no_export(tmp_path):
    np.savez(tmp_path / "other.npz", t=np.zeros(3))
    with pytest.raises(RecordingError, match=r"holds no exported estimates"):
        EstimateLog.load(tmp_path / "other.npz")


def test_full_log_and_foreign_joints(arm, recording):
    stream = open_stream(arm, "momentum")
    log = EstimateLog("momentum", 1)
    estimate = stream.push(0, recording.q[0], recording.dq[0], recording.tau[0])
    log.append(0, estimate)
    with pytest.raises(RecordingError, match=r"made for 1 samples"):
        log.append(1, estimate)
    with pytest.raises(RecordingError, match=r"are not, in this order"):
        replay(recording.reordered(recording.joint_names[::-1]), stream)


def test_progress_counts_up(arm, recording):
    seen = []
    parts = {name: np.tile(getattr(recording, name), (5, 1)) for name in ("q", "dq", "tau")}
    long = dataclasses.replace(recording, stamps_ns=2_000_000 * np.arange(5000), wrench_tcp=None, truth={}, **parts)
    replay(long, open_stream(arm, "momentum"), seen.append)
    assert seen == [4096, 5000]


def test_another_sensor_set_than_the_recordings_is_warned_of(arm, recording):
    named = dataclasses.replace(recording, sensors="ur16e_ros2_control")
    with pytest.warns(
        UserWarning, match=r"'ur16e_ros2_control', the stream has 'joint_torque'.*sensors=recording.sens"
    ):
        replay(named, open_stream(arm, "momentum", "joint_torque"))
    with pytest.warns(UserWarning, match="ur16e_ros2_control"):
        next(fitting_blocks(named, open_stream(arm, "momentum", "joint_torque")))


@pytest.mark.parametrize("sensors", ["", "joint_torque"])
def test_the_recordings_own_sensor_set_is_not_warned_of(arm, recording, sensors):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replay(dataclasses.replace(recording, sensors=sensors), open_stream(arm, "momentum", "joint_torque"))
