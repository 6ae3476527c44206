"""A recording and a scene file to a result and a report; the arm's own channels and further ones of an archive."""

from __future__ import annotations

import numpy as np
import pytest
from shared import shared_file

from contact_estimation.exceptions import IdentificationError, RecordingError
from contact_estimation.identify.batch import recording, runner
from contact_estimation.identify.batch.report import write_report
from contact_estimation.settings import find_config

SCENE = find_config("scenes", "ur16e_press")
JOINTS = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")


@pytest.fixture
def archive(tmp_path):
    """Writes a small archive with changes to its arrays."""

    def write(**changes):
        t = np.arange(0.0, 0.5, 0.002)
        arrays = {
            "t": t,
            "q": np.zeros((len(t), 6)),
            "dq": np.zeros((len(t), 6)),
            "tau": np.ones((len(t), 6)),
            "f_tcp": np.full((len(t), 3), 2.0),
            "f_tcp_zero_offset": np.array([0.5, 0.0, 0.0]),
        } | changes
        path = tmp_path / "recording.npz"
        np.savez(path, **arrays)
        return path

    return write


def test_force_is_tared_and_further_channels_keep_their_times(archive):
    path = archive(t_mocap=np.array([0.1, 0.2, 0.3]), mocap=np.arange(9.0).reshape(3, 3))
    found, duration = recording.read(path, {"q", "f_tcp", "mocap", "imu"}, JOINTS)
    assert set(found) == {"q", "f_tcp", "mocap"} and duration == pytest.approx(0.498)
    assert found["f_tcp"].values[0] == pytest.approx([1.5, 2.0, 2.0])
    assert found["mocap"].t == pytest.approx([0.1, 0.2, 0.3])


def test_a_recording_without_any_wanted_channel_is_refused(archive):
    with pytest.raises(RecordingError, match="mocap"):
        recording.read(archive(), {"mocap"}, JOINTS)


def test_bad_windows_and_channels_are_refused(archive):
    with pytest.raises(IdentificationError, match="not inside"):
        runner.prepare(archive(), SCENE, window=(0.0, 9.0))
    with pytest.raises(IdentificationError, match="encoders, torque, force"):
        runner.prepare(archive(), SCENE, without=("imu",))


def test_press_of_the_real_arm_is_explained_and_reported(tmp_path):
    """One cycle of a UR16e pressing: stiffness near the least-squares slope, force within the sensor's hysteresis."""
    problem, settings = runner.prepare(shared_file("data/ur16e_press/ur_vertical_1.npz"), SCENE)
    done = runner.run(problem, settings)
    values = done.result.values()
    assert done.estimate.converged
    assert values["stiffness"] == pytest.approx(22932.0, rel=0.2)  # least squares over the contact samples
    measured = -problem.measured("force")
    rotated = np.abs(done.result.contact_force[:, 2]) - np.abs(measured[:, 2])
    assert np.sqrt(np.mean(rotated**2)) < 6.0
    page = write_report(tmp_path / "report.html", done, "press").read_text()
    assert page.count("<img") == 3 + 2 + 1 and "stiffness" in page and "http" not in page
