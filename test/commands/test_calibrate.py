"""``contact-estimation calibrate``, ``observability``, ``tune`` and ``fit --objective unbiased`` on the command
line."""

import dataclasses
import json
import re
import warnings

import numpy as np
import pytest
from fit.calibration.planted import ARMATURE, PAYLOAD, TRUTH, free_motion

from contact_estimation.cli import main
from contact_estimation.filters.registry import open_stream
from contact_estimation.fit.calibration.settings import Calibration
from contact_estimation.io.npz import write_npz
from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm
from contact_estimation.robot.profile import write_profile
from contact_estimation.settings import find_config, from_yaml


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def files(arm, tmp_path_factory):
    """Two recordings in newton metres, which is what the sensor set joint_torque expects."""
    folder = tmp_path_factory.mktemp("free")
    return [str(write_npz(folder / f"free_{seed}.npz", free_motion(arm, seconds=20, seed=seed))) for seed in (0, 1)]


def test_calibrate_prints_one_object_and_writes_what_loads(arm, files, tmp_path, capsys):
    out = tmp_path / "drives.yaml"
    assert (
        main(["calibrate", *files, "--robot", "ur16e", "--sensors", "joint_torque", "--out", str(out), "--json"]) == 0
    )
    data = json.loads(capsys.readouterr().out)
    written = from_yaml(Calibration, out)
    assert written.recordings == ["free_0.npz", "free_1.npz"]
    np.testing.assert_allclose(written.friction.coulomb, TRUTH.coulomb, rtol=0.1)
    assert [p["source"] for p in data["validation"]] == files
    assert max(data["residual_ratio"]) < 0.3
    low, high = (np.array(data["intervals"]["coulomb"][end]) for end in ("low", "high"))
    assert (low < high).all()


def test_recordings_that_need_each_other_are_identified_without_a_validation(arm, tmp_path, capsys):
    """The second is too short to identify anything alone."""
    whole, part = free_motion(arm, seconds=20), slice(0, 410)
    cut = {name: getattr(whole, name)[part] for name in ("stamps_ns", "q", "dq", "tau")}
    recordings = (whole, dataclasses.replace(whole, **cut))
    files = [str(write_npz(tmp_path / f"{k}.npz", recording)) for k, recording in enumerate(recordings)]
    out = tmp_path / "drives.yaml"
    words = ["calibrate", *files, "--robot", "ur16e", "--sensors", "joint_torque", "--out", str(out), "--json"]
    assert main(words) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "doubtful" and data["validation"] == [] and data["residual_ratio"] is None
    assert f"validation not possible: without {files[0]}, " in " ".join(data["reasons"]) and out.is_file()


def test_no_load_has_no_centre_of_mass(arm, tmp_path, capsys):
    """It was told as exactly 0 +- 0 m."""
    file = str(write_npz(tmp_path / "bare.npz", free_motion(arm, seconds=20, payload=False)))
    assert main(["calibrate", file, "--robot", "ur16e", "--sensors", "joint_torque", "--no-validation"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"payload -?0\.\d+ \+- 0\.\d+ kg, no load to be seen", text) and "centre of mass" not in text


@pytest.mark.parametrize("words", ["calibrate {} {}", "tune {} {} --config ekf", "fit {} --also {}"])
def test_a_recording_that_is_given_twice_is_refused(files, tmp_path, capsys, words):
    """Twice the same run, also converted, looks like two that agree: every standard deviation is too small."""
    bag = str(tmp_path / "free_bag")
    assert main(["convert", files[0], bag, "--robot", "ur16e"]) == 0
    given = words.format(files[0], bag).split()
    assert main([*given, "--robot", "ur16e", "--out", str(tmp_path / "out.yaml")]) == 2
    assert f"{files[0]} and {bag} hold the same samples" in capsys.readouterr().err


def test_a_force_that_was_not_measured_is_told(arm, tmp_path, capsys):
    """NaN is not 0 N: there the sensor does not show free motion. What it did measure still shows a contact."""
    recording, words = free_motion(arm, seconds=20), ["--robot", "ur16e", "--sensors", "joint_torque"]
    wrench = np.zeros((len(recording), 6))
    wrench[: len(wrench) // 4, 0] = np.nan
    file = str(write_npz(tmp_path / "gap.npz", dataclasses.replace(recording, wrench_tcp=wrench)))
    assert main(["calibrate", file, *words, "--no-validation"]) == 0
    assert f"{file}: the measured force is missing (NaN) for 25 % of the time" in capsys.readouterr().out
    assert main(["calibrate", file, *words, "--no-validation", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["force_missing"] == [0.25]
    wrench[100, 2] = -90.0  # beside a NaN
    file = str(write_npz(tmp_path / "press.npz", dataclasses.replace(recording, wrench_tcp=wrench)))
    assert main(["calibrate", file, *words, "--no-validation"]) == 2
    assert "the force sensor reads 90 N" in capsys.readouterr().err


@pytest.mark.parametrize("robot", ["a folder without actuators", "a lone file"])
def test_calibrate_writes_a_robot_profile_that_loads_everywhere(robot, files, tmp_path, capsys):
    """A robot without actuators.yaml gets one: no warning is left, and its friction is the calibrated one."""
    out, name = tmp_path / "profile", robot
    if robot == "a lone file":
        (tmp_path / "robots").mkdir()
        (tmp_path / "robots" / "mine.yaml").write_text(
            find_config("robots", "ur16e").read_text().replace("name: ur16e", "name: mine")
        )
        name = str(tmp_path / "robots" / "mine.yaml")
    else:  # the planted motion is a UR16e's: its description under another name
        name = str(write_profile(load_arm("ur16e").settings, tmp_path / "bare"))
        (tmp_path / "bare" / "actuators.yaml").unlink()
        text = (tmp_path / "bare" / "robot.yaml").read_text().replace("name: ur16e\n", "name: bare\n")
        (tmp_path / "bare" / "robot.yaml").write_text(text)
    command = ["calibrate", files[0], "--robot", name, "--sensors", "joint_torque", "--no-validation"]
    assert main([*command, "--out", str(out)]) == 0
    assert f"use it with --robot {out}" in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = open_stream(str(out), "contact_imm", "joint_torque")
    actuators, arm = stream.observer.actuators, stream.arm
    np.testing.assert_allclose(actuators.friction.coulomb, TRUTH.coulomb, rtol=0.15)
    np.testing.assert_allclose(arm.motor.armature, ARMATURE, rtol=0.15)  # what every observer, fit and MPC has
    assert arm.settings.tool_mass == pytest.approx(PAYLOAD[0], rel=0.1)
    assert (np.array(actuators.disturbance_std) < 3.0).all() and (np.array(actuators.torque_noise) > 0.0).all()
    export = tmp_path / "estimate.npz"
    replayed = ["replay", files[1], "--robot", str(out), "--sensors", "joint_torque", "--export", str(export)]
    assert main(replayed) == 0 and export.is_file()
    assert main([*command[:3], str(out), *command[4:], "--out", str(out)]) == 0  # again, into the same profile
    assert main([*command, "--out", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_calibrate_prints_a_table(files, capsys):
    assert (
        main(
            [
                "calibrate",
                files[0],
                "--robot",
                "ur16e",
                "--sensors",
                "joint_torque",
                "--no-validation",
                "--identify",
                "scale",
                "payload",
            ]
        )
        == 0
    )
    text = capsys.readouterr().out
    assert "shoulder_lift_joint" in text and "left out" not in text
    mass, std = (float(v) for v in re.search(r"payload (\S+) \+- (\S+) kg", text).groups())
    assert abs(mass - PAYLOAD[0]) < 1.96 * std < 1.0
    assert re.search(r"centre of mass \[\S+ \+- \S+, \S+ \+- \S+, \S+ \+- \S+\] m", text)
    assert re.search(r"verdict: doubtful\n  - gravity asks for 0\.\d+ .* times the torque of shoulder_lift_joint", text)


def test_calibrate_refuses_another_robot_by_its_number_of_joints(files, capsys):
    assert main(["calibrate", files[0], "--robot", "fr3"]) == 2
    assert "fr3_joint1" in capsys.readouterr().err


def test_observability_of_a_posture_names_what_is_not_seen(capsys):
    posture = ["0.9", "-1.0", "2.2", "-2.8", "-1.5", "0.5"]
    assert (
        main(
            [
                "observability",
                "--robot",
                "ur16e",
                "--posture",
                *posture,
                "--estimate",
                "stiffness",
                "rest",
                "point",
                "--json",
            ]
        )
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert len(data["directions"]) == 9 and any("rest along tangent" in text for text in data["unseen"])
    assert main(["observability", "--robot", "ur16e", "--posture", *posture, "--depth", "0.002"]) == 0
    assert "WEAKLY OBSERVED" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["observability", "--robot", "ur16e"], "give a RECORDING or --posture"),
        (
            ["observability", "--robot", "ur16e", "--posture", "0", "1"],
            "--posture has 2 entries, robot 'ur16e' has 6 joints",
        ),
        (["observability", "--robot", "ur16e", "--posture", "0", "--config", "momentum"], "of kind 'momentum'"),
        (
            ["observability", "--robot", "ur16e", "--posture", "0", "-90", "1", "0", "1", "0"],
            "--posture is beyond the limits of robot 'ur16e': shoulder_lift_joint -90 [rad]; in degrees?",
        ),
        (["tune", "absent.npz", "--robot", "ur16e", "--evaluations", "0"], "--evaluations must be at least 1"),
        (
            ["fit", "absent.npz", "--robot", "ur16e", "--objective", "paper", "--also", "b.npz", "--out", "x.yaml"],
            "--also needs --objective unbiased",
        ),
    ],
)
def test_bad_arguments_exit_with_two_and_say_why(arguments, words, capsys):
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["calibrate", "tune"])
def test_where_a_profile_cannot_be_written_is_told_before_the_work(verb, files, tmp_path, capsys):
    (tmp_path / "notes.txt").touch()
    assert main([verb, files[0], "--robot", "ur16e", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"contact-estimation {verb}: {tmp_path} exists already")


def test_a_cut_off_that_leaves_only_ends_is_refused(files, capsys):
    command = ["calibrate", files[0], "--robot", "ur16e", "--sensors", "joint_torque", "--cutoff"]
    assert main([*command, "0.05"]) == 2
    assert "leaves too little beside the ends; raise --cutoff to 0.21" in capsys.readouterr().err


def test_an_unknown_noise_is_refused_before_any_progress(files, capsys):
    assert main(["tune", files[0], "--robot", "ur16e", "--noise", "nonsense"]) == 2
    assert capsys.readouterr().err.startswith("contact-estimation tune: cannot tune 'nonsense'")


def test_observability_and_tune_read_recordings(arm, files, tmp_path, capsys):
    """Free motion under contacts that are far away: nothing of them is seen; the noise is tuned all the same."""
    config = tmp_path / "far.yaml"
    config.write_text(
        "observer: ekf\nsensors: joint_torque\ncontacts:\n  - {stiffness: [0, 0, 10], rest: [0, 0, 0], "
        "estimate: [rest], rest_std: 1.0e-3}\nprocess_noise: {position: 1.0e-12, velocity: "
        "1.0}\nmeasurement_noise: {position: 2.25e-10}\n"
    )
    assert main(["observability", files[0], "--robot", "ur16e", "--config", str(config), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["unseen"]) == 3 and data["seconds"] == pytest.approx(20, abs=0.1)
    out = tmp_path / "tuned.yaml"
    assert (
        main(
            [
                "tune",
                files[0],
                "--robot",
                "ur16e",
                "--config",
                str(config),
                "--evaluations",
                "4",
                "--noise",
                "velocity",
                "--out",
                str(out),
                "--json",
            ]
        )
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert data["statistics"][0]["after"]["log_likelihood"] >= data["statistics"][0]["before"]["log_likelihood"]
    assert data["verdict"] == "doubtful" and any("innovations repeat" in reason for reason in data["reasons"])
    assert "# verdict: doubtful" in out.read_text()
    assert main(["observability", files[0], "--robot", "ur16e", "--config", str(out)]) == 0


def test_tune_writes_no_noise_that_is_worse_on_what_was_left_out(arm, tmp_path, capsys):
    """An arm at rest whose encoders are first quiet and then loud: exit code 3, and no file."""
    rng, q = np.random.default_rng(0), np.tile([0.9, -1.0, 2.2, -2.8, -1.5, 0.5], (800, 1))
    noise = np.repeat([3e-6, 3e-4], 400)[:, None] * rng.normal(size=q.shape)
    tau = np.tile(arm.gravity(q[0]), (800, 1))
    held = Recording(np.arange(800) * 2_000_000, arm.joint_names, q + noise, 0 * q, tau, "held")
    path, out, config = write_npz(tmp_path / "held.npz", held), tmp_path / "tuned.yaml", tmp_path / "ekf.yaml"
    config.write_text(
        "observer: ekf\nsensors: joint_torque\ncontacts: []\nprocess_noise: {position: 1.0e-12, velocity: 1.0e-2}\n"
        "measurement_noise: {position: 1.0e-8}\n"
    )
    command = ["tune", str(path), "--robot", "ur16e", "--config", str(config), "--noise", "position", "--out", str(out)]
    assert main([*command, "--evaluations", "12", "--json"]) == 3
    printed = capsys.readouterr()
    data = json.loads(printed.out)
    assert data["verdict"] == "failed" and data["out"] is None and not out.exists()
    assert "half of the recordings describes the" in data["reasons"][0] and "is not written" in printed.err
