"""A recording and a scene file to a result and a report; the arm's own channels and further ones of an archive."""

from __future__ import annotations

import html
import json
from pathlib import Path

import numpy as np
import pytest
from shared import shared_file

from contact_estimation.cli import main
from contact_estimation.exceptions import IdentificationError, RecordingError
from contact_estimation.identify.batch import recording, runner
from contact_estimation.identify.batch.channels import Measurement, resample
from contact_estimation.identify.batch.report import write_report
from contact_estimation.settings import find_config

PAGE = Path(__file__).resolve().parents[3] / "docs" / "identify_batch.md"
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


@pytest.mark.parametrize("values", [np.zeros(2, [("a", float), ("b", int)]), np.float64(1.0), np.array(["x", "y"])])
def test_an_array_that_is_no_column_of_numbers_is_refused(tmp_path, values):
    np.savez(tmp_path / "r.npz", t=np.array([0.0, 0.1]), cam=values)
    with pytest.raises(RecordingError, match="'cam' and its times must be numbers"):
        recording.read(tmp_path / "r.npz", {"cam"}, ())


def test_an_archive_that_is_no_arm_needs_no_channels_it_does_not_have(tmp_path):
    np.savez(tmp_path / "r.npz", t=np.arange(5.0, 6.0, 0.1), slide=np.arange(10.0), t_cam=[4.9, 5.5], cam=np.eye(2))
    found, duration = recording.read(tmp_path / "r.npz", {"slide", "cam", "q"}, ("slide",))
    assert set(found) == {"slide", "cam"} and duration == pytest.approx(1.0)
    assert found["slide"].t[0] == pytest.approx(0.1) and found["cam"].t == pytest.approx([0.0, 0.6])
    np.savez(tmp_path / "bad.npz", t=np.arange(3.0), cam=np.eye(2))
    with pytest.raises(RecordingError, match="'cam' has 2 rows and no times; add t_cam"):
        recording.read(tmp_path / "bad.npz", {"cam"}, ())


def test_recordings_follow_one_another_with_a_gap_that_no_sample_bridges():
    once = Measurement(np.arange(0.0, 1.0, 0.01), np.arange(100.0))
    joined, starts = recording.follow([{"x": once}, {"x": once, "y": once}], [0.99, 0.99])
    assert starts == pytest.approx([0.0, 1.99])
    grid = [start + np.arange(0.0, 0.99, 0.005) for start in starts]
    breaks = [len(grid[0])]
    values, worth = resample(joined["x"], np.concatenate(grid), breaks=breaks)
    assert np.split(values, breaks)[1] == pytest.approx(np.split(values, breaks)[0])
    assert np.split(worth, breaks)[1] == pytest.approx(np.split(worth, breaks)[0])
    assert not resample(joined["y"], np.concatenate(grid), breaks=breaks)[1][: breaks[0]].any()


def test_two_recordings_share_parameters_but_no_motion(archive):
    path = archive()
    one, _ = runner.prepare(path, SCENE)
    two, _ = runner.prepare([path, path], SCENE)
    q = np.tile(one.scene.nominal.qpos0, (len(one.grid), 1)) + 0.01 * np.sin(9.0 * one.grid)[:, None]
    p = one.scene.parameters.nominal
    both = two.residuals(np.concatenate([q, q + 0.3]), p)
    assert both[: len(q)] == pytest.approx(one.residuals(q, p)) and len(both) == 2 * len(q)
    assert two.weights[: len(q)] == pytest.approx(one.weights)
    assert two.weights[len(q) :].sum(axis=0) == pytest.approx(one.weights.sum(axis=0), rel=0.02)


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
    text, verdict = html.unescape(page), done.result.verdict
    assert f"Verdict: {verdict.verdict}" in text and verdict.reasons and verdict.unchecked
    assert all(sentence in text for sentence in (*verdict.reasons, *verdict.unchecked))
    stiffness = next(p for p in done.result.parameters if p.name == "stiffness")
    assert f"<td>{stiffness.lower_total:.0f}</td><td>{stiffness.upper_total:.0f}</td>" in page


@pytest.mark.parametrize(
    ("name", "window", "without"),
    [
        ("ur_vertical_1", [], []),
        ("ur_vertical_1", [], ["--without", "force"]),
        ("ur_vertical_3", ["--window", "0", "15"], []),
    ],
)
def test_the_page_tells_what_the_press_of_the_real_arm_gives(name, window, without, tmp_path, capsys):
    """Stiffness, force error along the vertical, verdict and exit code are those of the page's table.

    The second press without force does not converge: where it ends may differ between machines.
    """
    path = shared_file(f"data/ur16e_press/{name}.npz")
    out = tmp_path / "out.npz"
    words = [str(path), "--model", "ur16e_press", *window, *without, "--json", "--output", str(out)]
    code = main(["identify", "batch", *words])
    found = json.loads(capsys.readouterr().out)
    section = PAGE.read_text().split("### A press of the UR16e")[1].split("\n## ")[0]
    rows = section.split(f"| {name}")[1].splitlines()
    row = next(row for row in rows if f"| batch, {'without' if without else 'all'}" in row)
    stiffness, force, verdict, told = [cell.strip(" `").replace(" ", "") for cell in row.split("|")[3:7]]
    assert float(stiffness) == pytest.approx(found["parameters"]["stiffness"]["value"], rel=0.01)
    assert float(force) == pytest.approx(_force_error(path, out), abs=0.1)
    assert verdict == found["verdict"] and told == str(code)
    for joint, key in (("shoulder lift", "lift"), ("elbow", "elbow"), ("wrist 1", "wrist1")) if not without else ():
        row = next(line for line in section.splitlines() if line.startswith(f"| {joint} |"))
        friction = float(row.split("|")[3 if name.endswith("3") else 2].split()[0])
        assert friction == pytest.approx(found["parameters"][f"friction_{key}"]["value"], abs=0.1)


def _force_error(path, out):
    """RMSE [N] of the vertical force against the tared sensor, where it reads more than 8 N."""
    arm, estimate = np.load(path), np.load(out)
    force = np.einsum("nij,nj->ni", arm["R_tcp"], arm["f_tcp"] - arm["f_tcp_zero_offset"])[:, 2]
    measured = np.interp(estimate["t"], arm["t"] - arm["t"][0], force)
    pressed = measured > 8.0
    return np.sqrt(np.mean((estimate["contact_force"][:, 2] - measured)[pressed] ** 2))
