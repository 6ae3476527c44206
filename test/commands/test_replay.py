"""The verb ``replay``: exports, reports, and what bad recordings are told."""

import dataclasses
import json
import re
import runpy
import subprocess
import sys

import numpy as np
import pytest
from recordings import press_recording
from shared import shared_file

from contact_estimation.cli import main
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.npz import write_npz
from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def recording(arm):
    return press_recording(arm)


@pytest.fixture
def verb(capsys):
    def call(*words):
        code = main(["replay", *map(str, words)])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_exports_report_and_json(verb, recording, tmp_path):
    bag = write_bag(tmp_path / "bag", recording)
    code, out, _ = verb(
        bag,
        "--robot",
        "ur16e",
        "--observer",
        "momentum",
        "--observer",
        "paper_online",
        "--json",
        "--export",
        tmp_path / "est.npz",
        "--report",
        tmp_path / "report",
    )
    result = json.loads(out)
    assert code == 0 and result["recording"]["samples"] == 1000 and result["robot"] == "ur16e"
    assert set(result["observers"]) == {"momentum", "paper_online"}
    assert result["observers"]["momentum"]["valid"] == 1000
    assert result["observers"]["paper_online"]["counters"]["used"] == 1000
    page = (tmp_path / "report" / "report.html").read_text()
    assert f"contact-estimation replay {bag} --robot ur16e --observer momentum --observer paper_online" in page
    for name, path in zip(("momentum", "paper_online"), result["exports"]):
        with np.load(path, allow_pickle=False) as archive:
            assert str(archive["observer"]) == name
            np.testing.assert_array_equal(archive["t"], recording.t)
            np.testing.assert_array_equal(archive["truth_rest"], recording.truth["rest"])


def test_one_observer_exports_to_the_named_file(verb, recording, tmp_path):
    path = write_npz(tmp_path / "r.npz", recording)
    code, out, _ = verb(path, "--robot", "ur16e", "--observer", "momentum", "--export", tmp_path / "est.npz")
    assert code == 0 and (tmp_path / "est.npz").is_file()
    assert "1000/1000" in out and f"estimates: {tmp_path / 'est.npz'}" in out


def test_bag_and_npz_give_the_same_estimates(verb, recording, tmp_path):
    forces = []
    for source in (
        write_npz(tmp_path / "r.npz", recording),
        write_bag(tmp_path / "m", recording, "mcap"),
        write_bag(tmp_path / "s", recording, "sqlite3"),
    ):
        assert verb(source, "--robot", "ur16e", "--observer", "paper_online", "--export", tmp_path / "e.npz")[0] == 0
        with np.load(tmp_path / "e.npz", allow_pickle=False) as archive:
            forces.append(archive["force"])
    np.testing.assert_array_equal(forces[0], forces[1])
    np.testing.assert_array_equal(forces[0], forces[2])


def change(recording, **rows):
    """``recording`` with ``name=(row, value)`` written into copies of its arrays."""
    changed = {}
    for name, (row, value) in rows.items():
        changed[name] = getattr(recording, name).copy()
        changed[name][row] = value
    return dataclasses.replace(recording, **changed)


BAD = {
    "not a number": (lambda r: change(r, q=((7, 2), np.nan)), "1 samples hold NaN or infinite q .*sample 7.*elbow"),
    "infinite": (lambda r: change(r, tau=((7, 1), np.inf)), "NaN or infinite tau .*shoulder_lift_joint"),
    "stamp twice": (lambda r: change(r, stamps_ns=(8, r.stamps_ns[7])), "1 stamps repeat the one before .*sample 8"),
    "stamps back": (lambda r: change(r, stamps_ns=(8, r.stamps_ns[4])), "1 stamps are earlier"),
    "gap": (
        lambda r: change(r, stamps_ns=(slice(500, None), r.stamps_ns[500:] + 400_000_000)),
        "1 gaps are longer than 0.1 s .*longest 0.402 s",
    ),
    "current": (
        lambda r: dataclasses.replace(r, tau=r.tau / load_arm("ur16e").motor.drive_gain),
        r"motor current \[A\].*torque_unit",
    ),
    "far too large": (
        lambda r: change(r, tau=((7, 1), 5000.0)),
        "beyond 3 times the joint's limit: torque of shoulder_lift",
    ),
    "jump": (lambda r: change(r, q=((7, 1), 1.0)), "position moved faster.*shoulder_lift_joint"),
}


@pytest.mark.parametrize("name, observer", [*((name, "momentum") for name in BAD), ("current", "contact_imm")])
def test_bad_samples_stop_the_replay_unless_asked(verb, recording, tmp_path, name, observer):
    spoil, text = BAD[name]
    path, export = write_npz(tmp_path / "bad.npz", spoil(recording)), tmp_path / "est.npz"
    words = (path, "--robot", "ur16e", "--observer", observer, "--sensors", "joint_torque", "--export", export)
    code, out, err = verb(*words)
    assert code == 2 and out == "" and not export.exists()
    assert_matches(text, err)
    assert "--keep-going" in err
    code, _, err = verb(*words, "--keep-going")
    assert code == 0 and "estimates are invalid" in err
    with np.load(export, allow_pickle=False) as archive:
        assert not archive["valid"].all()
        assert np.isnan(archive["force"][~archive["valid"]]).all()
        assert np.isfinite(archive["force"][archive["valid"]]).all()


def assert_matches(text, message):
    assert re.search(text, message), message


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--robot", "ur16"), "there is no robot 'ur16' .nearest: 'ur16e'"),
        (("--robot", "ur16e", "--observer", "momentun"), "no observer 'momentun' .nearest: 'momentum'"),
        (("--robot", "ur16e", "--config", "absent.yaml"), "no such configuration file: absent.yaml"),
        (
            ("--robot", "ur16e", "--observer", "momentum", "--observer", "momentum"),
            "two observers are named 'momentum'",
        ),
        (("--robot", "fr3", "--observer", "momentum", "--sensors", "joint_torque"), "no joint 'fr3_joint1'"),
        (("--robot", "ur16e", "--observer", "momentum", "--wrench", "/ft"), "no topic '/ft'.*/joint_states"),
        (("--robot", "ur16e", "--observer", "momentum", "--joint-states", "/js"), "no topic '/js' .*'/joint_states'"),
        (("--robot", "ur16e", "--observer", "momentum", "--rate", "500"), "leave --rate out"),
        (("--robot", "ur16e", "--observer", "momentum", "--rate", "-1"), "must be greater than 0 Hz"),
    ],
)
def test_wrong_words(verb, recording, tmp_path, words, text):
    code, out, err = verb(write_bag(tmp_path / "bag", recording), *words)
    assert code == 2 and out == "" and "Traceback" not in err
    assert_matches(text, err)


def test_misspelt_joint(verb, recording, tmp_path):
    names = [name.replace("elbow_joint", "elbow_jiont") for name in recording.joint_names]
    path = write_npz(tmp_path / "r.npz", dataclasses.replace(recording, joint_names=names))
    code, _, err = verb(path, "--robot", "ur16e", "--observer", "momentum")
    assert code == 2 and "no joint 'elbow_joint' (nearest there: 'elbow_jiont')" in err


@pytest.mark.parametrize("content", [b"", b"t,q\n"])
def test_no_recording(verb, tmp_path, content):
    (tmp_path / "r.mcap").write_bytes(content)
    code, _, err = verb(tmp_path / "r.mcap", "--robot", "ur16e", "--observer", "momentum")
    assert code == 2 and ("0 bytes" in err or "is no recording" in err)


def test_truncated_bag(verb, recording, tmp_path):
    bag = write_bag(tmp_path / "bag", recording)
    file = bag / "bag.mcap"
    file.write_bytes(file.read_bytes()[:-1000])
    code, _, err = verb(bag, "--robot", "ur16e", "--observer", "momentum")
    assert code == 2 and "truncated or damaged" in err


def test_real_recording_is_readable_by_the_scorer(verb, tmp_path):
    path = shared_file("data/ur16e_press/ur_vertical_1.npz")
    score = runpy.run_path(str(shared_file("tools/score_press.py")))["score"]
    words = ("--robot", "ur16e", "--observer", "paper_online", "--export", tmp_path / "e.npz", "--json")
    code, out, _ = verb(path, *words)
    ours = json.loads(out)["observers"]["paper_online"]
    theirs = score(dict(np.load(tmp_path / "e.npz", allow_pickle=False)), dict(np.load(path, allow_pickle=False)))
    assert code == 0
    assert ours["force"]["contact"]["rmse_z"] == pytest.approx(theirs["contact"]["rmse_z"], rel=0.01)
    assert ours["force"]["free"]["rmse_xy"] == pytest.approx(theirs["free"]["rmse_xy"], rel=0.01)
    assert ours["stiffness"]["median"] == pytest.approx(theirs["stiff"]["median"], rel=0.01)


def test_what_a_recording_says_of_itself_is_compared_with_what_the_user_says(verb, recording, tmp_path):
    for key, value, code, text in (
        ("robot", "ur10e", 0, "says that it was made with robot 'ur10e'; it is read as one of robot 'ur16e'"),
        ("robot", "ur16e", 0, ""),
        ("sensors", "foo", 2, "names its sensor set: there is no sensor set 'foo'"),
    ):
        told = {"sensors": "ur16e_current"} | {key: value}
        path = write_npz(tmp_path / f"{value}.npz", dataclasses.replace(recording, **told))
        found, _, err = verb(path, "--robot", "ur16e", "--observer", "momentum")
        assert found == code and text in err, err
        assert ("warning" in err) == (value == "ur10e")


def test_a_warning_is_a_sentence_without_a_line_of_code(recording, tmp_path):
    """As of an arm that nobody calibrated; in a process of its own, since pytest catches warnings here."""
    path = write_npz(tmp_path / "r.npz", recording)
    words = ["replay", str(path), "--robot", "ur10e", "--observer", "momentum_calibrated", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "contact_estimation", *words], capture_output=True, text=True, check=False
    )
    assert "contact-estimation replay: warning: robot 'ur10e' has no actuators.yaml" in done.stderr, done.stderr
    assert ".py" not in done.stderr and "cls(" not in done.stderr


def test_an_option_of_another_verb_is_told_its_name_here(recording, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["replay", str(tmp_path), "--robot", "ur16e", "--observers", "ekf"])
    err = capsys.readouterr().err
    assert "contact-estimation replay: error: unrecognized arguments: --observers ekf (nearest: --observer)" in err
