"""Verbs take the robot from the recording; what the recording does not tell, or tells otherwise, is said."""

import dataclasses
import json

import pytest
from recordings import press_recording

from contact_estimation.cli import main
from contact_estimation.commands.inputs import load_sensors
from contact_estimation.exceptions import RecordingError
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.npz import write_npz
from contact_estimation.io.open import open_recording, recorded_arm
from contact_estimation.robot import load_arm
from contact_estimation.robot.profile import write_profile


@pytest.fixture(scope="module")
def press():
    return dataclasses.replace(press_recording(load_arm("ur16e"), seconds=0.5), robot="")


@pytest.fixture
def make(press, tmp_path):
    def write(name, **told):
        return write_npz(tmp_path / f"{name}.npz", dataclasses.replace(press, **told))

    return write


@pytest.mark.parametrize(
    "words",
    [
        "replay {} --observer momentum --json",
        "compare {} --observers momentum --json",
        "view {} --observer momentum --out {out} --json",
        "observability {} --json",
        "fit {} --out {out}.yaml --json",
        "calibrate {} --no-validation --json",
        "tune {} --config ekf --evaluations 1 --no-validation --json",
    ],
)
def test_a_recording_that_names_its_robot_needs_no_option(words, make, tmp_path, capsys):
    """With and without the option a verb says the same, and without a name it asks for the option."""
    recording, out = make("named", robot="ur16e"), tmp_path / "out"
    told, given, asked = [], words.format(recording, out=out), words.format(make("nameless"), out=out)
    for command in (given, given + " --robot ur16e"):
        code, said = main(command.split()), capsys.readouterr()
        told.append((code, _without_times(said.out) or said.err))
    assert told[0] == told[1] and "--robot" not in told[0][1]
    assert main(asked.split()) == 2
    said = capsys.readouterr().err
    assert "nameless.npz" in said and "--robot" in said and "contact-estimation convert" in said


def _without_times(text):
    def kept(value):
        if isinstance(value, dict):
            return {key: kept(v) for key, v in value.items() if key not in ("seconds", "step_us")}
        return value

    return json.dumps(kept(json.loads(text))) if text else ""


def test_robot_and_tool_are_those_of_the_bag(press, tmp_path, capsys):
    made = dataclasses.replace(press, robot="ur16e", tool="gripper", sensors="ur16e_current")
    bag = write_bag(tmp_path / "bag", made)
    assert recorded_arm([bag]) == ("ur16e", "gripper") and recorded_arm([bag], "probe") == ("ur16e", "probe")
    assert main(["replay", str(bag), "--observer", "momentum", "--json", "--keep-going"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["robot"] == "ur16e" and "warning" not in said.err


def test_an_option_against_the_recordings_name_is_told(make, capsys):
    """A UR10e has the joints of a UR16e: only the name tells them apart."""
    recording = make("named", robot="ur16e")
    assert main(["replay", str(recording), "--robot", "ur10e", "--observer", "momentum", "--keep-going"]) == 0
    said = capsys.readouterr().err
    assert "made with robot 'ur16e'" in said and "read as one of robot 'ur10e'" in said


@pytest.mark.parametrize("verb", ["replay {} --observer momentum", "compare {} --observers momentum", "view {}"])
def test_efforts_that_nobody_names_are_told(verb, make, tmp_path, capsys):
    """The default of a UR16e scales the wrists by 1.87: a recording in Nm would be off, without a sign of it."""
    for sensors, said in (("", True), ("ur16e_driver", False)):
        words = verb.format(make("some", robot="ur16e", sensors=sensors)) + f" --out {tmp_path / 'out.html'}"
        main((words if "replay" not in verb else words.partition(" --out")[0]).split())
        assert ("does not say what its efforts are" in capsys.readouterr().err) == said


def test_recordings_of_different_arms_are_refused(make, capsys):
    recordings = [make("a", robot="ur16e"), make("b"), make("c", robot="ur10e")]
    with pytest.raises(RecordingError, match=r"a\.npz was made with robot 'ur16e', .*c\.npz with robot 'ur10e'"):
        recorded_arm(recordings)
    assert recorded_arm(recordings[:2]).robot == "ur16e"


@pytest.mark.parametrize(("name", "said"), [("ur16f", "nearest: 'ur16e'"), ("../ur16e", "without a path")])
def test_a_name_that_is_no_robots_is_refused(name, said, make, capsys):
    assert main(["replay", str(make("odd", robot=name)), "--observer", "momentum"]) == 2
    told = capsys.readouterr().err
    assert "odd.npz" in told and said in told and "--robot" in told


def test_a_damaged_recording_says_that_it_is_damaged(tmp_path, capsys):
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 but no archive")
    assert main(["compare", str(tmp_path / "cut.npz")]) == 2
    assert "truncated or damaged" in capsys.readouterr().err


def test_a_posture_belongs_to_no_recording(capsys):
    assert main(["observability", "--posture", "0", "-1", "1", "0", "0", "0"]) == 2
    assert "give --robot" in capsys.readouterr().err


@pytest.fixture
def profile(tmp_path):
    """A robot's profile with a sensor set of its own that does not fit the robot."""
    folder = write_profile(load_arm("ur16e").settings, tmp_path / "profile")
    (folder / "sensors" / "mine.yaml").write_text("torque_scale: [1.0, 1.0]\n")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "observability {}",
        "fit {} --out {out}.yaml",
        "calibrate {} --no-validation",
        "tune {} --config ekf --evaluations 1 --no-validation",
        "replay {} --observer ekf",
        "replay {} --observer momentum",
    ],
)
def test_every_verb_reads_the_effort_by_the_recordings_sensor_set_of_the_profile(words, make, profile, capsys):
    recording = make("named", sensors="mine")
    assert main([*words.format(recording, out=profile.parent / "out").split(), "--robot", str(profile)]) == 2
    assert "torque_scale has 2 entries" in capsys.readouterr().err


def test_recordings_of_different_sensor_sets_are_refused(make, tmp_path, capsys):
    files = [make("a", sensors="joint_torque"), make("b", sensors="link_torque"), make("c")]
    words = ["--robot", "ur16e", "--out", str(tmp_path / "out.yaml")]
    assert main(["tune", *map(str, files), *words]) == 2
    said = capsys.readouterr().err
    assert "a.npz names 'joint_torque'" in said and "b.npz names 'link_torque'" in said
    assert main(["fit", str(files[0]), "--also", str(files[1]), *words]) == 2
    assert "different sensor sets" in capsys.readouterr().err
    arm = load_arm("ur16e")
    link = load_sensors(arm, [open_recording(files[2]), open_recording(files[1])], "joint_torque")
    assert link.torque_side == "link"  # of the one that names a set
