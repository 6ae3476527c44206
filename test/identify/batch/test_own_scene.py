"""The section "Your own scene" of the page takes a stranger from an MJCF and an archive to parameters."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from contact_estimation.cli import main
from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.batch import recording

PAGE = Path(__file__).resolve().parents[3] / "docs" / "identify_batch.md"
TRUTH = {"mass": 3.0, "rail": 8.0, "stiffness": 4000.0, "damping": 30.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The section's three files, and its commands."""
    folder = tmp_path_factory.mktemp("cart")
    section = PAGE.read_text().split("## Your own scene")[1].split("\n## ")[0]
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", section, re.M | re.S)
    code = dict(blocks)
    (folder / "cart.xml").write_text(code["xml"])
    (folder / "cart.yaml").write_text(code["yaml"])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(code["python"], str(PAGE), "exec"), {})
    return folder, [shlex.split(line, comments=True)[1:] for line in code[""].splitlines()]


def _answer(folder, words, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert main([*words, "--json"] if "--json" not in words else words) == 0
    return json.loads(capsys.readouterr().out)


def _is_true(found):
    for name, true in TRUTH.items():
        assert found["parameters"][name]["value"] == pytest.approx(true, rel=0.02), name
    assert found["parameters"]["buffer[0]"]["value"] == pytest.approx(1e-3, abs=2e-5)


@pytest.mark.parametrize("line", [0, 1, 3], ids=["one", "starts", "two recordings"])
def test_the_commands_of_the_page_recover_what_was_planted(folder, line, capsys, monkeypatch):
    found = _answer(folder[0], folder[1][line], capsys, monkeypatch)
    _is_true(found)
    assert found["verdict"] == "good" and set(TRUTH) < set(found["interval_total"])
    assert any("the scale of 'motor'; it would move mass, rail, stiffness, damping" in s for s in found["unchecked"])
    if line == 0:
        assert found["iterations"] <= 10


def _with_noisier_encoder(noise, capsys, monkeypatch, *scene_changes, gain=1.0):
    """JSON of the cart whose encoder has more noise, as its scene says, and reads ``gain`` times the position."""
    arrays = dict(np.load("cart.npz"))
    position = gain * arrays["position"] + noise * np.random.default_rng(2).standard_normal(len(arrays["t"]))
    np.savez("noisy.npz", **arrays | {"position": position})
    scene = Path("cart.yaml").read_text().replace("std: [1.0e-5]", f"std: [{max(noise, 1e-5):.1e}]")
    for old, new in scene_changes:
        assert old in scene
        scene = scene.replace(old, new)
    Path("noisy.yaml").write_text(scene)
    return _answer(Path.cwd(), ["identify", "batch", "noisy.npz", "--model", "noisy.yaml"], capsys, monkeypatch)


@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-3])
def test_a_scale_of_the_encoder_that_nothing_checks_is_told_whatever_its_noise(noise, folder, capsys, monkeypatch):
    """An encoder that reads 2 % too much takes every parameter along by 2 %, the buffer's place by 7 mm."""
    monkeypatch.chdir(folder[0])
    found = _with_noisier_encoder(noise, capsys, monkeypatch, gain=1.02)
    assert found["verdict"] == "good"
    low, high = found["interval_total"]["mass"]
    assert not low < TRUTH["mass"] < high
    (said,) = (sentence for sentence in found["unchecked"] if "the scale of 'encoder'" in sentence)
    assert said.endswith("it would move mass, rail, stiffness, damping, buffer[0]")


def test_a_buffer_measured_by_hand_checks_the_scale_of_the_encoder(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder[0])
    by_hand = ("nominal: [0.0, 0.0, 0.0]", "nominal: [1.0e-3, 0.0, 0.0]"), ("prior_std: 0.003", "prior_std: 1.0e-4")
    found = _with_noisier_encoder(1e-4, capsys, monkeypatch, *by_hand)
    assert found["verdict"] == "good"
    assert not any("the scale of 'encoder'" in sentence for sentence in found["unchecked"])


def test_halves_of_the_recording_agree(folder, capsys, monkeypatch):
    found = _answer(folder[0], folder[1][2], capsys, monkeypatch)
    assert found["verdict"] == "good" and found["worst_other_pct"] > 0.0
    for half in found["values"]:
        assert half[:4] == pytest.approx(list(TRUTH.values()), rel=0.03)


def _changed(folder, capsys, monkeypatch, *more, **changes):
    """Exit code, JSON (None without) and errors of the command on the recording with arrays changed."""
    monkeypatch.chdir(folder)
    arrays = dict(np.load("cart.npz"))
    np.savez("changed.npz", **arrays | {name: change(arrays[name]) for name, change in changes.items()})
    code = main(["identify", "batch", "changed.npz", "--model", "cart.yaml", "--json", *more])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def test_times_in_milliseconds_are_refused_before_a_grid_of_millions_is_made(folder, capsys, monkeypatch):
    code, _, err = _changed(folder[0], capsys, monkeypatch, t=lambda t: 1e3 * t)
    assert code == 2 and "a sample every 1 s" in err and "divide milliseconds" in err


def test_a_repeated_time_is_told_with_its_channel_and_place(folder, capsys, monkeypatch):
    code, _, err = _changed(folder[0], capsys, monkeypatch, t=lambda t: np.where(np.arange(len(t)) == 99, t[98], t))
    assert code == 2 and "array 'motor'" in err and "sample 98 is at 0.098 s" in err


def test_noise_is_not_told_as_a_motor_without_force(folder, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    noisy = {
        name: lambda x, std=std: x + std * rng.standard_normal(len(x))
        for name, std in (("position", 1e-3), ("motor", 5.0))
    }
    code, found, _ = _changed(folder[0], capsys, monkeypatch, "--window", "0", "0.5", **noisy)
    assert code == 3 and any("'encoder' differs" in reason for reason in found["reasons"])
    assert not any("correct the sensor's gain" in reason for reason in found["reasons"])


def _as_an_arm(**gaps):
    """The cart as an arm's recording (t, q, dq, tau) and scene; signals in ``gaps`` differ from 1.0 to 1.3 s."""
    arrays = dict(np.load("cart.npz"))
    t, q, tau = arrays["t"], arrays["position"][:, None], arrays["motor"][:, None]
    signals = {"q": q, "dq": np.gradient(q, t, axis=0), "tau": tau}
    missing = (t >= 1.0) & (t < 1.3)
    for name, value in gaps.items():
        signals[name] = np.where(missing[:, None], value, signals[name])
    np.savez("arm.npz", t=t, joint_names=["rail"], **signals)
    scene = (
        Path("cart.yaml").read_text().replace("source: position", "source: q").replace("source: motor", "source: tau")
    )
    Path("arm.yaml").write_text(scene)


@pytest.mark.parametrize(
    ("gaps", "named"),
    [(("q",), ["encoder"]), (("tau",), ["motor"]), (("q", "dq", "tau"), ["encoder", "motor"])],
    ids=["encoder", "motor", "every signal"],
)
def test_a_gap_of_an_arms_signals_is_left_out_and_told(gaps, named, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder[0])
    _as_an_arm(**dict.fromkeys(gaps, np.nan))
    found = _answer(folder[0], ["identify", "batch", "arm.npz", "--model", "arm.yaml"], capsys, monkeypatch)
    _is_true(found)
    assert found["verdict"] == "doubtful" and len(found["reasons"]) == len(named)
    for name, reason in zip(named, found["reasons"]):
        assert f"'{name}' has no samples in 10 % of the time" in reason


@pytest.mark.parametrize(("array", "name"), [("position", "encoder"), ("motor", "motor")])
def test_a_frozen_signal_is_named_with_its_time(array, name, folder, capsys, monkeypatch):
    def held(x):
        return np.where((np.arange(len(x)) >= 1000) & (np.arange(len(x)) < 1300), x[1000], x)

    code, found, _ = _changed(folder[0], capsys, monkeypatch, "--window", "0.8", "1.5", **{array: held})
    assert code == 3 and f"'{name}' repeats one value from 1.00 to 1.30 s" in found["reasons"][0]


def test_an_encoder_in_steps_that_rests_is_not_frozen(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder[0])
    arrays = dict(np.load("cart.npz"))
    rest = np.arange(0.0, 0.5, 1e-3)
    early = {"t": rest, "position": np.full(len(rest), arrays["position"][0]), "motor": np.zeros(len(rest))}
    early["motor"] += 0.1 * np.random.default_rng(1).standard_normal(len(rest))
    t = np.concatenate([rest, 0.5 + arrays["t"]])
    position = np.round(np.concatenate([early["position"], arrays["position"]]) / 2e-5) * 2e-5
    np.savez("rest.npz", t=t, position=position, motor=np.concatenate([early["motor"], arrays["motor"]]))
    assert main(["identify", "batch", "rest.npz", "--model", "cart.yaml", "--window", "0", "0.49", "--json"]) == 0
    assert not any("frozen" in reason for reason in json.loads(capsys.readouterr().out)["reasons"])


@pytest.mark.parametrize("array", ["motor", "position"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_channel_without_a_finite_sample_is_refused_by_name(array, number, folder, capsys, monkeypatch):
    code, _, err = _changed(folder[0], capsys, monkeypatch, **{array: lambda x: np.full(len(x), number)})
    assert code == 2 and f"changed.npz: channel source '{array}' has no finite sample" in err and "take it out" in err


def test_a_force_of_an_arm_without_a_finite_sample_is_refused_by_name(tmp_path):
    t, still = np.arange(0.0, 0.5, 0.002), np.zeros((250, 6))
    np.savez(tmp_path / "arm.npz", t=t, q=still, dq=still, tau=still, f_tcp=np.full((250, 3), np.nan))
    joints = tuple(f"joint{k}" for k in range(6))
    with pytest.raises(RecordingError, match="channel source 'f_tcp' has no finite sample"):
        recording.read(tmp_path / "arm.npz", {"q", "tau", "f_tcp"}, joints)


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("[nose, buffer]", "[nose, bufer]", "'bump', key 'geoms': the scene has no geom 'bufer' (nearest: 'buffer'); "),
        ("object: rail", "object: rial", "'place', key 'object': the scene has no joint 'rial' (nearest: 'rail'); "),
        ("targets: [cart]", "targets: [cert]", "'mass' of kind 'mass', key 'targets': the scene has no body 'cert' "),
        ("targets: [bump]", "targets: [bumb]", "the scene has no contact pair 'bumb' (nearest: 'bump'); it has bump"),
        ("targets: [place]", "targets: [palce]", "'encoder', key 'targets': the scene has no sensor 'palce' (nearest"),
        ("start: {rail", "start: {rial", "key 'start': the scene has no joint 'rial' (nearest: 'rail'); it has rail"),
        ("{rail: encoder}", "{rail: encodr}", "channel 'encodr' does not exist or has no measurement; measured: enc"),
        ("contact: [cart", "contact: [carts", "the scene has no body 'carts' (nearest: 'cart'); it has world, cart"),
        ("model: cart.xml", "model: cort.xml", "'model' is 'cort.xml', but there is no such file, neither from the "),
    ],
)
def test_a_misspelt_name_is_told_with_its_key_and_the_nearest(right, wrong, told, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder[0])
    scene = Path("cart.yaml").read_text()
    assert right in scene
    Path("misspelt.yaml").write_text(scene.replace(right, wrong))
    assert main(["identify", "batch", "cart.npz", "--model", "misspelt.yaml"]) == 2
    err = capsys.readouterr().err
    assert told in err and "Reinstall" not in err
    assert ("misspelt.yaml: 'model'" in err and "(nearest: 'cart.xml', " in err) == ("cort" in wrong)


def test_infinite_samples_of_an_arm_are_refused(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder[0])
    _as_an_arm(q=np.inf)
    assert main(["identify", "batch", "arm.npz", "--model", "arm.yaml"]) == 2
    assert "NaN or infinite q" in capsys.readouterr().err
