"""The verb ``fit``: what it writes loads, estimates, and is reported; what it cannot do is said."""

import contextlib
import io
import json
import re

import numpy as np
import pytest
import yaml
from contact_scenes import table_and_wall
from recordings import press_recording

from contact_estimation.cli import main
from contact_estimation.commands.fit import _contact_text
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.fit.unbiased import ContactFit
from contact_estimation.io.npz import write_npz
from contact_estimation.robot import load_arm
from contact_estimation.settings import to_mapping


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A press of 20 kN/m without friction or noise."""
    return write_npz(
        tmp_path_factory.mktemp("fit") / "press.npz", press_recording(load_arm("ur16e"), seconds=2.0, stiffness=20e3)
    )


@pytest.fixture
def verb(capsys):
    def call(*words):
        code = main(["fit", *map(str, words)])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture(scope="module")
def fitted(archive, tmp_path_factory):
    """The configuration the verb wrote, from the generic filter's states, and what it printed."""
    folder = tmp_path_factory.mktemp("fitted")
    out = folder / "deeper" / "mine.yaml"
    mapping = to_mapping(load_observer_settings("ekf"))
    mapping["process_noise"] |= {"unknown_torque": 0.5, "unknown_torque_share": 0.0}  # the press has no friction
    mapping["sensors"] = "joint_torque"
    (folder / "start.yaml").write_text(yaml.safe_dump(mapping))
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        code = main(
            [
                "fit",
                str(archive),
                "--robot",
                "ur16e",
                "--objective",
                "paper",
                "--config",
                str(folder / "start.yaml"),
                "--passes",
                "2",
                "--out",
                str(out),
                "--json",
            ]
        )
    return code, out, json.loads(text.getvalue())


def test_the_planted_stiffness_is_reported(fitted):
    code, out, result = fitted
    assert code == 0 and result["objective"] == "paper" and result["out"] == str(out)
    assert result["stiffness_norm"] == pytest.approx(20e3, rel=0.1) and len(result["stiffness_per_pass"]) == 2


def test_what_is_written_loads_and_says_how_it_was_made(fitted):
    _, out, result = fitted
    contact = load_observer_settings(str(out)).contacts[0]
    np.testing.assert_allclose(contact.stiffness, result["stiffness"], atol=0.06)
    np.testing.assert_allclose(contact.rest, result["rest"], atol=1e-6)
    typed = out.read_text().splitlines()[0]
    assert typed.startswith("# Written by: contact-estimation fit ") and typed.endswith(f"--out {out} --json")


def test_the_estimator_runs_with_it(fitted, archive, tmp_path, capsys):
    _, out, _ = fitted
    code = main(
        [
            "replay",
            str(archive),
            "--robot",
            "ur16e",
            "--config",
            str(out),
            "--export",
            str(tmp_path / "e.npz"),
            "--json",
        ]
    )
    assert code == 0 and json.loads(capsys.readouterr().out)["observers"]["mine"]["valid"] == 1000
    with np.load(tmp_path / "e.npz") as estimates:
        error = estimates["force"] - estimates["truth_wrench_tcp"][:, :3]
        assert np.sqrt(np.mean(error[100:, 2] ** 2)) < 6.0


@pytest.mark.parametrize(
    "words, message",
    [
        (["--passes", "0"], "--passes must be at least 1, found 0"),
        (
            ["--config", "momentum"],
            "starts from an EKF with at least one contact, found an observer of kind 'momentum'",
        ),
        (["--robot", "ur16"], "there is no robot 'ur16' .nearest: 'ur16e'"),
        (["--start-stiffness", "0"], "--start-stiffness must be greater than 0 N/m, found 0"),
        (["--start-stiffness", "-5"], "--start-stiffness must be greater than 0 N/m, found -5"),
        (["--rest-weight", "nan"], "--rest-weight must be at least 0, found nan"),
    ],
)
def test_wrong_arguments_are_told(verb, archive, tmp_path, words, message):
    code, out, err = verb(archive, "--robot", "ur16e", "--out", tmp_path / "x.yaml", *words)
    assert code == 2 and out == "" and re.search(message, err), err
    assert not (tmp_path / "x.yaml").exists()


def test_an_output_that_cannot_be_written(verb, archive, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = verb(
        archive,
        "--robot",
        "ur16e",
        "--objective",
        "paper",
        "--passes",
        "1",
        "--config",
        "ekf",
        "--out",
        tmp_path / "file" / "x.yaml",
    )
    assert code == 2 and "cannot be written" in err


def test_a_recording_of_another_arm(verb, archive, tmp_path):
    code, _, err = verb(archive, "--robot", "fr3", "--out", tmp_path / "x.yaml")
    assert code == 2 and "fr3_joint1" in err


def test_two_contacts_are_fitted_by_name_and_load(tmp_path, verb):
    """A table and a wall: the configuration names them with their normals, the verb finds both."""
    recording, places = table_and_wall()
    archive = write_npz(tmp_path / "corner.npz", recording)
    mapping = to_mapping(load_observer_settings("ekf"))
    one = mapping["contacts"][0]
    mapping["contacts"] = [one | {"name": "table"}, one | {"name": "wall", "stiffness": [-1e4, 0.0, 0.0]}]
    (tmp_path / "start.yaml").write_text(yaml.safe_dump(mapping))
    code, out, _ = verb(
        archive,
        "--robot",
        "fr3",
        "--config",
        tmp_path / "start.yaml",
        "--estimate",
        "stiffness",
        "rest",
        "--out",
        tmp_path / "corner.yaml",
        "--json",
    )
    result = json.loads(out)
    assert code == 0 and list(result["contacts"]) == ["table", "wall"] and "stiffness" not in result
    contacts = load_observer_settings(str(tmp_path / "corner.yaml")).contacts
    for contact, place, axis in zip(contacts, places, (2, 0)):
        assert contact.rest[axis] == pytest.approx(place[axis], abs=5e-4)
        assert result["contacts"][contact.name]["rests"][0][axis] == pytest.approx(contact.rest[axis], abs=1e-6)
    code, out, _ = verb(
        archive,
        "--robot",
        "fr3",
        "--config",
        tmp_path / "start.yaml",
        "--estimate",
        "rest",
        "--passes",
        "1",
        "--out",
        tmp_path / "corner.yaml",
    )
    assert code == 0 and "table: stiffness 10000 N/m" in out and "wall: stiffness 10000 N/m" in out


def test_no_contact_without_friction_is_told_in_words():
    contact = load_observer_settings("ekf").contacts[0]
    found = ContactFit(contact, np.ones(9), np.zeros((2, 3)), 2e4, 500.0, {}, {})
    assert "  no contact is found where the joints' friction is taken for contact" in _contact_text(found, float("nan"))
    assert "  5000 N/m where the joints' friction is taken for contact" in _contact_text(found, 5e3)
