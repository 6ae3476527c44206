"""The examples run as they are written, and show what they claim."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def run(monkeypatch, capsys):
    """Run an example as ``python examples/NAME`` does, in this process; returns what it prints."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))

    def run_example(name: str) -> str:
        monkeypatch.setattr(sys, "argv", [name])
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run_example


def numbers(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w])", text)]


def test_every_example_has_a_test_and_says_how_to_run_it():
    tested = set(re.findall(r'run\("(\w+\.py)"\)', Path(__file__).read_text()))
    scripts = {path.name for path in (ROOT / "examples").glob("*.py")} - {"simulated_press.py"}
    assert tested == scripts and len(scripts) >= 10
    for name in scripts:
        assert f"python examples/{name}" in (ROOT / "examples" / name).read_text()


def test_estimate_from_arrays_ends_near_the_truth(run):
    last = run("estimate_from_arrays.py").splitlines()[-1]
    force, truth = (float(v) for v in re.search(r"force\s+(\S+) .*\(truth\s+(\S+)\)  stiffness", last).groups())
    stiffness = float(re.search(r"stiffness\s+(\S+) kN/m", last)[1])
    assert force == pytest.approx(truth, abs=3.0) and stiffness == pytest.approx(25.0, rel=0.05)


def test_replay_recording_uses_every_sample(run):
    samples, error = run("replay_recording.py").splitlines()
    count, valid = numbers(samples)
    assert count == valid == 2500 and numbers(error)[0] < 2.0


def test_compare_observers_prints_one_row_each(run):
    rows = run("compare_observers.py").splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["contact_imm", "ekf", "momentum_manufacturer"]
    assert all("2500/2500" in row for row in rows)


def test_simulate_scenario_turns_an_effect_off(run):
    noisy, quiet = (numbers(re.search(r"\[(.*)\]", line)[1]) for line in run("simulate_scenario.py").splitlines())
    assert sum(quiet) < 0.5 * sum(noisy)


def test_fit_contact_finds_the_stiffness(run):
    stiffness, std, truth = numbers(run("fit_contact.py").splitlines()[0])
    assert stiffness == pytest.approx(truth, rel=0.05) and std < 0.05 * truth


def test_calibrate_joints_finds_the_friction(run):
    for line in run("calibrate_joints.py").splitlines():
        found, std, truth = numbers(line)
        assert found == pytest.approx(truth, rel=0.05) and std < 0.1 * truth


def test_own_observer_reads_the_force(run):
    assert numbers(run("own_observer.py"))[0] < 2.0


def test_mpc_loop_reaches_the_wanted_force(run):
    samples, error = numbers(run("mpc_loop.py"))
    assert samples == 500 and error < 1.0


def test_identify_drop_holds_the_truth_in_its_interval(run):
    found, low, high, truth = numbers(run("identify_drop.py").splitlines()[0].replace("1/m^2", "").replace("95 %", ""))
    assert low < truth < high and found == pytest.approx(truth, rel=0.05)


def test_a_contact_that_opens_beats_the_spring_where_nothing_is_touched(run):
    free = {name: float(e) for name, e in re.findall(r"(\w+)\s+force error free\s+(\S+) N", run("own_contact.py"))}
    assert free["unilateral"] < 0.5 < 2.0 < free["spring"] and free["adhesive"] < free["spring"]
