"""``simulate``: a bag with its truth, the same for the same seed; bad arguments get their error."""

import json

import numpy as np
import pytest

from contact_estimation.cli import main
from contact_estimation.io.open import open_recording


def test_bag_holds_samples_and_truth(tmp_path, capsys):
    assert (
        main(["simulate", "plane", "--robot", "fr3", "--seconds", "3", "--out", str(tmp_path / "bag"), "--json"]) == 0
    )
    result = json.loads(capsys.readouterr().out)
    recording = open_recording(tmp_path / "bag")
    assert result["samples"] == len(recording) == 1500 and result["peak_force"] > 1.0
    assert set(recording.truth) == {"wrench_tcp", "stiffness", "rest", "contact_point", "tau_ext"}
    assert recording.truth["stiffness"][-1] == pytest.approx([0.0, 0.0, 1000.0])
    assert recording.sensors == "link_torque"
    assert recording.wrench_tcp is None  # this arm has no sensor at its flange


def test_a_replay_reads_the_torque_as_it_was_simulated(tmp_path, capsys):
    """The wrist of the papers' recordings is scaled by 1.87; a simulated arm's torque needs no such scale."""
    bag = str(tmp_path / "bag")
    assert main(["simulate", "linear_contact", "--seconds", "3", "--out", bag]) == 0
    torques = {}
    for name in ("told", "ur16e_driver", "ur16e_current"):
        more = [] if name == "told" else ["--sensors", name]
        path = tmp_path / f"{name}.npz"
        assert main(["replay", bag, "--robot", "ur16e", "--observer", "momentum", "--export", str(path), *more]) == 0
        torques[name] = np.load(path)["tau_ext"]
    capsys.readouterr()
    assert np.array_equal(torques["told"], torques["ur16e_driver"])
    assert not np.allclose(torques["told"], torques["ur16e_current"], atol=1.0)


def test_seed_height_and_scale_act(tmp_path, capsys):
    def run(name, *more):
        assert (
            main(
                [
                    "simulate",
                    "linear_contact",
                    "--seconds",
                    "1.6",
                    "--out",
                    str(tmp_path / f"{name}.npz"),
                    "--json",
                    *more,
                ]
            )
            == 0
        )
        return open_recording(tmp_path / f"{name}.npz")

    first, same, raised = run("a"), run("b"), run("c", "--height-error", "0.0002", "--scale", "friction=0")
    assert np.array_equal(first.tau, same.tau)
    assert raised.truth["rest"][-1, 2] - first.truth["rest"][-1, 2] == pytest.approx(2e-4, abs=1e-6)
    assert not np.array_equal(first.tau, raised.tau)


def test_a_flange_sensor_without_imperfections_reads_the_truth_and_an_arm_without_one_has_none(tmp_path, capsys):
    def run(name, *words):
        path = tmp_path / f"{name}.npz"
        assert main(["simulate", *words, "--seconds", "0.1", "--out", str(path)]) == 0
        return open_recording(path)

    perfect = run("perfect", "linear_contact", "--scale", "wrench=0")
    assert np.array_equal(perfect.wrench_tcp, perfect.truth["wrench_tcp"])
    assert run("none", "plane", "--robot", "fr3", "--scale", "wrench=2").wrench_tcp is None


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nowhere"], "nearest"),
        (["plane", "--seconds", "0"], "greater than 0"),
        (["plane", "--seconds", "0.001"], "--seconds 0.001 ends before the first sample; give at least 0.002 s"),
        (["plane", "--scale", "friction"], "EFFECT=FACTOR"),
        (["plane", "--scale", "frictoin=1"], "no imperfection"),
        (["plane", "--robot", "kuka"], "kuka"),
    ],
)
def test_bad_arguments(arguments, words, capsys):
    assert main(["simulate", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_an_existing_bag_is_kept(tmp_path, capsys):
    assert main(["simulate", "plane", "--out", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_replay_exports_the_truth_beside_the_estimates(tmp_path, capsys):
    """One command per accuracy figure: estimate and truth lie side by side, alike in shape."""
    bag, out = tmp_path / "bag", tmp_path / "estimates.npz"
    assert main(["simulate", "linear_contact", "--seconds", "3", "--out", str(bag), "--json"]) == 0
    assert main(["replay", str(bag), "--robot", "ur16e", "--observer", "ekf", "--export", str(out), "--json"]) == 0
    capsys.readouterr()
    with np.load(out, allow_pickle=False) as data:
        for name in ("force", "stiffness", "contact_point", "rest", "tau_ext"):
            assert data[f"truth_{name}"].shape == data[name].shape, name
        assert data["truth_force"][-1, 2] < -20 and data["truth_stiffness"][-1] == pytest.approx(26000)
        assert np.abs(data["truth_contact_point"] - data["contact_point"]).max() < 0.01


@pytest.mark.parametrize("out", ["bag", "press.npz"])
def test_the_tool_of_a_recording_is_told_and_compared(tmp_path, capsys, out):
    path = str(tmp_path / out)
    assert main(["simulate", "linear_contact", "--tool", "gripper", "--seconds", "0.2", "--out", path]) == 0
    assert open_recording(path).tool == "gripper"
    words = ["replay", path, "--robot", "ur16e", "--observer", "momentum", "--keep-going"]
    capsys.readouterr()
    assert main([*words, "--tool", "gripper"]) == 0 and "warning" not in capsys.readouterr().err
    assert main(words) == 0
    assert "made with tool 'gripper'; it is read with no tool: name it with --tool gripper" in capsys.readouterr().err


def test_motors_at_their_limit_are_told(tmp_path, capsys):
    """The arm cannot hold 1 kN at 0.8 m with the 330 Nm of its shoulder."""
    scenario, push = tmp_path / "heavy.yaml", "{name: down, start: 0.3, duration: 0.5, force: [0.0, 0.0, -1000.0]}"
    lines = ["title: too much", "source: a test", "robot: ur16e", "surfaces: []", "motion: [{duration: 1.0}]"]
    scenario.write_text("\n".join([*lines, f"pushes: [{push}]"]))
    with pytest.warns(UserWarning, match=r"effort limit .*shoulder_lift_joint .* 'ur16e' cannot do what"):
        assert main(["simulate", str(scenario), "--json"]) == 0
    assert 0.1 < json.loads(capsys.readouterr().out)["torque_limited_share"]["shoulder_lift_joint"] < 0.7


def test_a_shipped_scenario_leaves_the_motors_below_their_limits(capsys):
    assert main(["simulate", "linear_contact", "--seconds", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["torque_limited_share"] == {}
