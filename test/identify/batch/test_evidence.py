"""Verdicts and channel parameters on recordings of a world that shares no code with the estimate."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from benchmark.adversary import batch as world
from contact_estimation.cli import main
from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.batch import runner

WIDENED = ("stiffness", "damping", "friction", "lift[2]")


def _write(folder, fault: str, scene: str = "linkage") -> dict[str, float]:
    return world.write(folder, fault, np.random.default_rng([77, 0]), scene).truth


def _identify(folder, capsys, *more) -> tuple[int, dict]:
    command = ["identify", "batch", str(folder / "press.npz"), "--model", str(folder / "scene.yaml"), "--json", *more]
    code = main(command)
    return code, json.loads(capsys.readouterr().out)


def _add_parameter(folder, **parameter) -> None:
    path = folder / "scene.yaml"
    scene = yaml.safe_load(path.read_text())
    scene["parameters"].append(parameter)
    path.write_text(yaml.safe_dump(scene))


def test_a_clean_recording_is_good_and_right(tmp_path, capsys):
    truth = _write(tmp_path, "clean")
    code, found = _identify(tmp_path, capsys)
    assert code == 0 and found["verdict"] == "good" and found["reasons"] == []
    for name, true in truth.items():
        low, high = found["parameters"][name]["interval_total"]
        assert low - 0.5 * (high - low) < true < high + 0.5 * (high - low)


def test_a_force_offset_fails_with_an_exit_code_and_wider_intervals(tmp_path, capsys):
    _write(tmp_path, "offset")
    code, found = _identify(tmp_path, capsys)
    assert code == 3 and found["verdict"] == "failed" and found["reasons"]
    widths = [np.ptp(found["parameters"]["stiffness"][key]) for key in ("interval", "interval_total")]
    assert widths[1] > 2.0 * widths[0]


def test_noise_beyond_what_was_told_widens_the_intervals(tmp_path, capsys):
    """Every sensor has three times the noise of the scene."""
    _write(tmp_path, "noisier")
    _, found = _identify(tmp_path, capsys)
    told = [found["parameters"][name] for name in WIDENED]
    ratios = [np.ptp(each["interval_total"]) / np.ptp(each["interval"]) for each in told]
    assert min(ratios) > 2.5
    assert ratios[WIDENED.index("lift[2]")] < 6.0  # the others contain 0.3 % for the place of a point contact


def test_misfit_widens_an_interval_once_to_that_of_noise_that_was_told(tmp_path, capsys):
    """The same noise, told in one scene and three times what is told in the other."""
    widths = []
    for fault in ("clean", "noisier"):
        _write(tmp_path, fault)
        found = _identify(tmp_path, capsys)[1]["parameters"]
        widths.append(np.array([[np.ptp(found[n][k]) for k in ("interval", "interval_total")] for n in WIDENED]))
    told, total = (widths[1] / widths[0]).T
    assert np.all(told < 0.42)
    assert total == pytest.approx(1.0, abs=0.1)


def test_a_force_that_grows_faster_than_depth_is_named(tmp_path, capsys):
    _write(tmp_path, "stiffening", "slide")
    _, found = _identify(tmp_path, capsys)
    assert found["verdict"] == "doubtful" and "faster than depth" in found["reasons"][0], found["reasons"]


def test_encoders_that_are_off_together_are_named_though_the_force_sees_neither(tmp_path, capsys):
    truth = _write(tmp_path, "encoder_offset")
    _, found = _identify(tmp_path, capsys, "--without", "place")
    assert abs(found["parameters"]["lift[2]"]["value"] - truth["lift[2]"]) > 1e-3
    assert found["verdict"] == "doubtful" and "'encoders' reads 0.0" in found["reasons"][0], found["reasons"]


def test_an_offset_that_no_sensor_checks_is_told_with_what_it_moves(tmp_path, capsys):
    _write(tmp_path, "encoder_offset", "slide")
    _, found = _identify(tmp_path, capsys, "--without", "place")
    assert found["verdict"] == "good"
    assert found["unchecked"] == ["no measurement checks the zero of 'encoders'; it would move lift[2]"]
    _, found = _identify(tmp_path, capsys)
    assert found["verdict"] == "failed" and found["unchecked"] == []


def test_a_stiffness_at_its_bound_is_not_good(tmp_path, capsys):
    _write(tmp_path, "prior_off")
    _, found = _identify(tmp_path, capsys)
    assert found["verdict"] != "good" and "parameter 'stiffness' is at its bound" in found["reasons"]


def test_a_late_clock_is_recovered_with_the_stiffness(tmp_path):
    truth = _write(tmp_path, "clock")
    clock = {"nominal": [0.0], "lower": -0.02, "upper": 0.02, "unit": "s"}
    _add_parameter(tmp_path, name="clock", kind="delay", targets=["encoders", "place"], **clock)
    found = runner.run(*runner.prepare(tmp_path / "press.npz", tmp_path / "scene.yaml")).result.values()
    assert found["clock"] == pytest.approx(8e-3, abs=5e-4)
    assert found["stiffness"] == pytest.approx(truth["stiffness"], rel=0.02)


def test_a_channel_parameter_needs_its_channel_and_its_numbers(tmp_path):
    _write(tmp_path, "clean")
    _add_parameter(tmp_path, name="zero", kind="bias", targets=["force"], nominal=[0.0], lower=-5.0, upper=5.0)
    with pytest.raises(IdentificationError, match="bias of channel 'force' is 3 numbers, given 1"):
        runner.prepare(tmp_path / "press.npz", tmp_path / "scene.yaml")
