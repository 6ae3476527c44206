"""A tool file reaches model, surface, views, observers, verbs and profiles."""

import dataclasses
import json

import numpy as np
import pytest
import yaml

from contact_estimation import cli
from contact_estimation.exceptions import ConfigError, ModelError
from contact_estimation.filters.registry import open_stream
from contact_estimation.robot import load_arm, load_robot_settings
from contact_estimation.robot.description import description_text
from contact_estimation.robot.profile import write_profile
from contact_estimation.robot.surface import link_surface
from contact_estimation.robot.tool import ToolSettings, add_tool, load_tool
from contact_estimation.ros.description import LaunchedRobot
from contact_estimation.settings import to_mapping
from contact_estimation.viz.meshes import arm_meshes

Q = np.array([0.3, -0.9, 0.4, -2.2, 0.3, 1.7, 0.6])
#: Key of a tool file -> another value, and what of the arm must change with it.
CHANGES = {
    "mass": (1.5, lambda arm: arm.gravity(Q)),
    "com": ([0.02, -0.01, 0.09], lambda arm: arm.gravity(Q)),
    "inertia": ([0.02, 0.02, 0.02, 0.001, 0.0, 0.0], lambda arm: arm.mass(Q)),
    "tcp": ([0.01, 0.0, 0.2], lambda arm: arm.tcp_jacobian(Q)),
    "tcp_rotation": ([0.0, 0.5, 0.0], lambda arm: arm.tcp_pose(Q)[1]),
    "geometry": ([{"shape": "sphere", "size": [0.06]}], lambda arm: _shape(arm)),
}


def _shape(arm):
    """Return what can be touched, and what is drawn, of the tool."""
    surface = link_surface(arm, 60)
    touched = surface.points[surface.link == surface.names.index("tool")]
    return np.concatenate([np.ptp(touched, axis=0), np.ptp(arm_meshes(arm)[-1].vertices, axis=0)])


@pytest.fixture(scope="module")
def gripper():
    return load_arm("fr3", "gripper")


def write(tmp_path, **changes):
    path = tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump({**to_mapping(load_tool("gripper")), **changes}))
    return str(path)


def test_every_key_has_its_change():
    assert set(CHANGES) == {field.name for field in dataclasses.fields(ToolSettings)}


@pytest.mark.parametrize("name", CHANGES)
def test_every_key_changes_the_arm(name, gripper, tmp_path):
    value, seen = CHANGES[name]
    other = load_arm("fr3", write(tmp_path, **{name: value}))
    assert np.abs(seen(other) - seen(gripper)).max() > 1e-4


def test_mass_and_inertia_are_those_of_a_body_at_its_place(gripper):
    bare, tool = load_arm("fr3"), gripper.tool
    flange, rotation = bare.tcp_pose(Q)
    jacobian = bare.tcp_jacobian(Q)
    lever = rotation @ np.array(tool.com)
    at_com = jacobian[:3] + np.cross(jacobian[3:].T, lever).T  # (3, n) of the centre of mass
    turning = rotation @ tool.tensor @ rotation.T
    more = tool.mass * at_com.T @ at_com + jacobian[3:].T @ turning @ jacobian[3:]
    np.testing.assert_allclose(gripper.mass(Q) - bare.mass(Q), more, atol=1e-9)
    np.testing.assert_allclose(gripper.gravity(Q) - bare.gravity(Q), 9.81 * tool.mass * at_com[2], atol=1e-9)
    np.testing.assert_allclose(gripper.tcp_pose(Q)[0], flange + rotation @ np.array(tool.tcp), atol=1e-12)


@pytest.mark.parametrize("observer", ["contact_imm", "momentum", "disturbance"])
def test_an_observer_takes_the_tool_for_no_contact(observer, gripper):
    """What holds arm and tool is 10 N too much for an observer that does not know the tool, and nothing otherwise."""
    forces = []
    for tool in ("gripper", ""):
        stream, tau = open_stream("fr3", observer, tool=tool), gripper.gravity(Q)
        for k in range(500):
            found = stream.push(1 + 2_000_000 * k, Q, 0 * Q, tau)
        forces.append(np.linalg.norm(found.force_base))
    assert forces[0] < 0.2 and forces[1] > 4.0


def test_a_simulated_arm_with_the_tool_is_free_only_for_who_knows_it(tmp_path, capsys):
    bag, free = str(tmp_path / "press.npz"), []
    words = ["--robot", "fr3", "--tool", "gripper"]
    assert cli.main(["simulate", "linear_contact", *words, "--seconds", "1", "--out", bag]) == 0
    for known in (words, words[:2]):
        capsys.readouterr()
        assert cli.main(["replay", bag, *known, "--observer", "momentum", "--keep-going", "--json"]) == 0
        free.append(json.loads(capsys.readouterr().out)["observers"]["momentum"]["force"]["free"]["rmse_z"])
    assert free[0] < 1.0 and free[1] > 5.0


def test_an_observer_with_a_description_of_its_own_keeps_the_tool():
    arm = load_arm("ur16e", "gripper")
    stream = open_stream(arm, "paper_online")
    assert stream.arm.name == "ur16e_paper" and stream.arm.tool == arm.tool


@pytest.mark.parametrize(
    "words",
    [
        *("replay none.npz", "compare none.npz", "calibrate none.npz", "tune none.npz", "view none.npz"),
        *("fit none.npz --out none.yaml", "observability none.npz", "convert none.npz none", "simulate plane"),
        "mpc plane",
    ],
)
def test_every_verb_takes_the_tool(words, capsys):
    assert cli.main([*words.split(), "--robot", "fr3", "--tool", "griper"]) != 0
    assert "there is no tool 'griper' (nearest: 'gripper')" in capsys.readouterr().err


def test_a_profile_takes_its_tool_along(gripper, tmp_path):
    folder = write_profile(gripper.settings, tmp_path / "mine")
    assert load_arm(str(folder)).tool == gripper.tool
    other = load_robot_settings(str(folder), write(tmp_path, mass=3.0))
    assert load_tool(other.tool).mass == 3.0 and other.tool_mass == 0.0


def test_a_profile_written_into_its_own_folder_changes_only_with_its_settings(gripper, tmp_path):
    folder = write_profile(gripper.settings, tmp_path / "mine")
    (folder / "robot.yaml").write_text(text := "# a comment\n" + (folder / "robot.yaml").read_text())
    settings = load_robot_settings(str(folder))
    assert (write_profile(settings, folder) / "robot.yaml").read_text() == text
    changed = dataclasses.replace(settings, tool_mass=1.5)
    assert load_robot_settings(str(write_profile(changed, folder))) == changed


def test_a_path_of_a_profiles_tool_leads_from_its_folder_not_from_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "profile" / "tools").mkdir(parents=True)
    (tmp_path / "tools").mkdir()
    text = yaml.safe_dump({**to_mapping(load_robot_settings("fr3")), "folder": "", "tool": "tools/mine.yaml"})
    (tmp_path / "profile" / "robot.yaml").write_text(text)
    (tmp_path / "profile" / "tools" / "mine.yaml").write_text("mass: 1.0")
    (tmp_path / "tools" / "mine.yaml").write_text("mass: 2.0")
    monkeypatch.chdir(tmp_path)
    assert load_tool(load_robot_settings("profile").tool).mass == 1.0
    assert 'value="1.0"' in LaunchedRobot("profile", "").urdf()
    assert load_tool(load_robot_settings("profile", "tools/mine.yaml").tool).mass == 2.0, "a path that is given"


def test_a_tool_replaces_the_load_of_the_profile(tmp_path):
    folder = write_profile(dataclasses.replace(load_robot_settings("fr3"), tool_mass=2.0), tmp_path / "loaded")
    assert load_robot_settings(str(folder)).tool_mass == 2.0
    assert load_robot_settings(str(folder), "gripper").tool_mass == 0.0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"inertia": [1.0, 1.0, 3.0, 0.0, 0.0, 0.0]}, "principal moments"),
        ({"mass": 0.0}, "without a mass"),
        ({"geometry": [{"shape": "cylinder", "size": [0.1]}]}, "radius, length"),
        ({"masse": 1.0}, "nearest known key is 'mass'"),
    ],
)
def test_what_no_tool_can_be_is_refused(change, told, tmp_path):
    with pytest.raises(ConfigError, match=told):
        load_tool(write(tmp_path, **change))


def test_a_description_with_a_tool_of_its_own_is_refused():
    settings = load_robot_settings("fr3", "gripper")
    with pytest.raises(ModelError, match="a link 'tool"):
        add_tool(description_text(settings), load_tool(settings.tool), settings.tcp_frame)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": 850.0}, "'mass' must be at most 100 .in grams.., found 850.0 kg"),
        ({"com": [0.0, 0.0, 60.0]}, r"'com\[2\]' must be at most 2 .in millimetres.., found 60.0 m"),
        ({"tcp": [0.0, 0.0, 180.0]}, r"'tcp\[2\]' must be at most 2 .in millimetres"),
        ({"geometry": [{"shape": "sphere", "size": [40.0]}]}, r"size\[0\]' must be at most 2 .in millimetres"),
    ],
    ids=["mass", "com", "tcp", "size"],
)
def test_a_tool_in_other_units_is_refused(tmp_path, change, message):
    with pytest.raises(ConfigError, match=message):
        load_tool(write(tmp_path, **change))
