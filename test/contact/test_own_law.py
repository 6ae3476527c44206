"""A contact law in one file outside the package runs in replay, fit and MPC; test/ros has the node."""

from __future__ import annotations

import dataclasses
import json
import re
import sys

import numpy as np
import pytest
import yaml
from mpc_tasks import START, arm as fr3
from own_law import ADHESIVE, adhesive_force, adhesive_observer
from recordings import press_recording

from contact_estimation import plugins
from contact_estimation.cli import main
from contact_estimation.contact import find_law
from contact_estimation.control.controller import Observation
from contact_estimation.control.mpc import load_mpc_settings
from contact_estimation.control.mpc.controller import ContactModelWarning, MpcController
from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.io.npz import write_npz
from contact_estimation.robot import load_arm
from contact_estimation.settings import replace

STIFFNESS = 2e4


@pytest.fixture(scope="module")
def law(tmp_path_factory):
    """Name of the law, whose file lies outside the package."""
    path = tmp_path_factory.mktemp("outside") / "pad.py"
    path.write_text(ADHESIVE)
    return f"{path}:Adhesive"


@pytest.fixture(scope="module")
def recording():
    """A pad of 20 kN/m that pulls until 3 mm, pressed from 5 mm above it, without friction or noise."""
    return press_recording(
        load_arm("ur16e"), seconds=4.0, clearance=0.005, force_at=lambda depth: adhesive_force(STIFFNESS, depth)
    )


def test_replay_estimates_with_it(law, recording, tmp_path, capsys):
    observer, export = tmp_path / "pad.yaml", tmp_path / "estimate.npz"
    observer.write_text(yaml.safe_dump(adhesive_observer(law, recording.truth["rest"][0])))
    archive = write_npz(tmp_path / "press.npz", recording)
    assert main(["replay", str(archive), "--robot", "ur16e", "--config", str(observer), "--export", str(export)]) == 0
    capsys.readouterr()
    found = dict(np.load(export))
    depth = recording.truth["rest"][0][2] - load_arm("ur16e").tcp_poses(recording.q)[0][:, 2]
    truth = adhesive_force(STIFFNESS, depth)
    steady = np.abs(depth + 0.003) > 2e-4  # away from the jump, where a micrometre of encoder noise is newtons
    error = np.ravel(found["force_base"].reshape(len(depth), -1)[:, 2]) - truth
    assert np.sqrt(np.mean(error[steady & (depth > 0)] ** 2)) < 3.0
    assert np.abs(error[depth < -0.0035]).max() < 0.1  # a spring would pull with 70 N
    assert truth[depth < 0].min() < -50.0  # the pad does pull


def test_fit_finds_its_stiffness_and_reach(law, recording, tmp_path, capsys):
    start = tmp_path / "start.yaml"
    start.write_text(yaml.safe_dump(adhesive_observer("spring", "start")))
    archive, out = write_npz(tmp_path / "press.npz", recording), tmp_path / "fitted.yaml"
    words = ["fit", archive, "--robot", "ur16e", "--config", start, "--law", law, "--out", out, "--json"]
    assert main([*map(str, words), "--estimate", "stiffness", "rest", "law"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stiffness_norm"] == pytest.approx(STIFFNESS, rel=0.02)
    assert found["rests"][0][2] == pytest.approx(recording.truth["rest"][0][2], abs=1e-4)
    assert found["law_parameters"]["reach"] == pytest.approx(3e-3, abs=1e-4)
    written = yaml.safe_load(out.read_text())["contacts"][0]
    assert written["law"] == law and written["law_parameters"]["reach"] == pytest.approx(3e-3, abs=1e-4)


def observation(law: str, clearance: float, **parameters: float) -> Observation:
    """An estimate of a contact of 10 kN/m whose surface is ``clearance`` below the finger."""
    position, rotation = fr3().tcp_pose(START)
    finger = np.array([0.0, 0.0, 0.10])
    tip = position + rotation @ finger
    rest = tip - [0.0, 0.0, clearance]
    contact = ContactState(
        "contact_1",
        1.0,
        np.array([0.0, 0.0, 1e4]),
        rest,
        finger,
        tip,
        np.zeros((9, 9)),
        law=law,
        law_parameters=parameters,
    )
    still, none = np.zeros(7), np.zeros(3)
    told = Observation.of(Estimate(0.0, START, still, still, none, none, none, np.eye(3), (contact,)))
    return dataclasses.replace(told, force=None)  # the law alone says how hard it pulls


def predicted(controller: MpcController, told: Observation) -> float:
    """Contact force [N] along the normal that the plan begins with."""
    controller.activate(told)
    solution = controller.solver.solve(controller.problem.stack(told.q, told.dq))
    assert solution.ok
    return float(controller.prediction(solution)[1][0, 2])


@pytest.fixture(scope="module")
def controller(law):
    task = load_mpc_settings("mpc_plane_fr3")
    contacts = [{"name": "contact_1", "law": law, "stiffness": [0.0, 0.0, 1e3], "point": [0.0, 0.0, 0.1]}]
    return MpcController(fr3(), replace(task, "test", horizon=8, contacts=contacts), deadline=10.0)


def test_the_mpc_plans_on_the_pull_and_not_beyond_it(law, controller):
    assert predicted(controller, observation(law, 0.002)) == pytest.approx(-20.0, abs=1e-3)
    assert predicted(controller, observation(law, 0.004)) == pytest.approx(0.0, abs=1e-6)


def test_the_mpc_takes_the_laws_parameters_from_the_estimate(law, controller):
    assert predicted(controller, observation(law, 0.004, reach=5e-3)) == pytest.approx(-40.0, abs=1e-3)


def test_a_plan_with_another_law_than_the_estimates_warns(law):
    task = load_mpc_settings("mpc_plane_fr3")
    spring = MpcController(fr3(), replace(task, "test", horizon=8), deadline=10.0)
    with pytest.warns(ContactModelWarning, match="is estimated with law '.*pad.py:Adhesive' but planned with 'spring'"):
        spring.activate(observation(law, 0.004))


def test_a_module_on_the_path_is_found(tmp_path, monkeypatch):
    (tmp_path / "pad_module.py").write_text(ADHESIVE)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_law("pad_module:Adhesive").parameters[0].name == "reach"


def test_a_law_of_an_installed_package_is_found_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "pad_package.py").write_text(ADHESIVE)
    info = tmp_path / "pad-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: pad\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[contact_estimation.laws]\npad = pad_package:Adhesive\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_law("pad").opens
    find_law.cache_clear()
    plugins.load.cache_clear()
    assert "pad_package" in sys.modules


@pytest.mark.parametrize(
    "names, friction", [("friction_radial", []), ("friction_1 friction_2", [0, 1]), ("friction_2 friction_1", [1, 0])]
)
def test_a_parameter_is_a_friction_coefficient_by_its_whole_name(names, friction, tmp_path):
    path = tmp_path / "rubbing.py"
    several = f'tuple(LawParameter(name=n, mean=0.0, std=0.1) for n in "{names}".split())'
    path.write_text(re.sub(r"\(LawParameter.*", several, ADHESIVE))
    contact = load_observer_settings("contact_imm").contacts[0]
    assert dataclasses.replace(contact, law=f"{path}:Adhesive").friction == friction


BAD = {
    "unknown name": ("", "sprung", "there is no contact law 'sprung' .nearest: 'spring'.. Known: spring, sliding"),
    "no module": ("", "no_such_module:Law", "'no_such_module' cannot be imported .ModuleNotFoundError"),
    "no class": (ADHESIVE, "{}:Sticky", "has no 'Sticky'; it has LawParameter, Adhesive"),
    "syntax": ("class", "{}:Adhesive", "cannot be imported .SyntaxError"),
    "no class at all": ("Adhesive = 3", "{}:Adhesive", "is 3; expected a class"),
    "arguments": (ADHESIVE + "    def __init__(self, reach): ...", "{}:Adhesive", "cannot be made without arguments"),
    "no flag": (ADHESIVE.replace("opens = True", ""), "{}:Adhesive", "'opens' must be True or False, found None"),
    "parameters": (ADHESIVE.replace("parameters = (", "parameters = list, ("), "{}:Adhesive", "tuple of LawParameter"),
    "one friction": (
        ADHESIVE.replace('"reach"', '"friction_1"'),
        "{}:Adhesive",
        "friction_1 and friction_2 are .* both",
    ),
    "shape": (
        ADHESIVE.replace("0 * slip", "depth"),
        "{}:Adhesive",
        r"returns shapes .* expected a number and \(2, 1\)",
    ),
    "stranger": (ADHESIVE.replace("0 * slip", 'ca.SX.sym("a", 2)'), "{}:Adhesive", "it failed with RuntimeError"),
    "slip": (ADHESIVE.replace("0 * slip", "slip"), "{}:Adhesive", "'feels_slip' must be True"),
    "not finite": (ADHESIVE.replace("stiffness * depth", "stiffness / depth"), "{}:Adhesive", "is not finite"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_law_is_refused_with_a_reason(case, tmp_path):
    text, name, words = BAD[case]
    path = tmp_path / "bad.py"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        find_law(name.format(path))
