"""Scenes: remote contact, taut strings, the springy tip, and the YAML schema."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np
import pytest
import yaml
from batch_scenes import BALL

from contact_estimation.exceptions import ConfigError, ModelError
from contact_estimation.identify.batch import scene_file
from contact_estimation.identify.batch.engine import Engine, contact_forces
from contact_estimation.identify.batch.scene import add_springy_tip
from contact_estimation.settings import find_config
from contact_estimation.studies.batch import anchor


def test_remote_contact_acts_before_the_surfaces_touch(ball_scene):
    q = ball_scene.nominal.qpos0[None].copy()
    q[0, 3] += 0.001  # the ball hovers 1 mm over the floor
    still = np.zeros((1, ball_scene.nominal.nv))
    near = ball_scene.build(ball_scene.parameters.nominal, remote_distance=0.002)
    assert np.all(contact_forces(ball_scene.nominal, q, still, still) == 0.0)
    assert contact_forces(near, q, still, still, ("ball", "world"))[0, 2] == pytest.approx(2.0, rel=2e-3)


@pytest.mark.parametrize("stretch", [0.001, 0.002])
def test_a_string_pulls_with_its_stiffness_and_only_a_taut_one_pushes(stretch):
    scene = anchor.problem(0, 0.2).scene
    still = np.zeros((2, 6))
    for remote, slack in ((0.0, 0.0), (1e-3, 4000.0 * stretch)):
        model = scene.build(scene.parameters.nominal, remote)
        q = np.tile(model.qpos0, (2, 1))
        q[:, 2] += 0.4 - 0.25 - 0.05 - q[:, 2] + np.array([-stretch, stretch])
        forces, _ = Engine("inverse", 1).evaluate(model, q, still, still, still)
        weight = 0.4 * 9.81
        assert forces[:, 2] - weight == pytest.approx([-4000.0 * stretch, slack], rel=2e-3, abs=1e-9)


def test_springy_tip_adds_springs():
    spec = mujoco.MjSpec.from_string(BALL)
    names = add_springy_tip(spec, "arm", 300.0, 2.0, "xz")
    model = spec.compile()
    assert names == ["arm_spring_x", "arm_spring_z"] and model.nv == 9
    assert model.jnt_stiffness[model.joint("arm_spring_z").id] == 300.0
    with pytest.raises(ModelError, match="no body 'nothing'"):
        add_springy_tip(spec, "nothing", 1.0, 1.0)
    with pytest.raises(ModelError, match="axes are 'xw'; expected letters of x, y and z"):
        add_springy_tip(mujoco.MjSpec.from_string(BALL), "arm", 1.0, 1.0, "xw")


def test_the_shipped_scene_loads_and_knows_its_channels():
    settings, scene = scene_file.load(find_config("scenes", "ur16e_press"))
    assert scene.nominal.nv == 6 and scene.nominal.npair == 1
    assert [c.name for c in scene_file.channels(settings)] == ["encoders", "torque", "force"]
    assert scene_file.dynamics_std(settings, scene.nominal).shape == (6,)


@pytest.mark.parametrize(
    "change, text",
    [
        ({"contact_pairs": []}, "nearest known key"),
        ({"formulation": "inverted"}, "one of inverse, forward"),
        ({"dynamics_std": {"default": 0.0}}, "greater than 0"),
        ({"contact": ["tool0"]}, r"'contact' has 1 names, \['tool0'\]; expected two bodies"),
    ],
)
def test_a_bad_scene_file_is_refused(tmp_path, change, text):
    data = yaml.safe_load(find_config("scenes", "ur16e_press").read_text()) | change
    path = tmp_path / "scene.yaml"
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(ConfigError, match=text):
        scene_file.load(path)


def test_unknown_bodies_and_joints_are_named(tmp_path):
    data = yaml.safe_load(find_config("scenes", "ur16e_press").read_text())
    path = tmp_path / "scene.yaml"
    path.write_text(yaml.safe_dump(data | {"contact": ["tool0", "tool1"]}))
    with pytest.raises(ModelError, match=r"'tool1'.*tool0"):
        scene_file.load(path)
    data["bodies"][0]["parent"] = "tool1"
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(ModelError, match=r"'tool1'.*tool0"):
        scene_file.load(path)
    settings, scene = scene_file.load(find_config("scenes", "ur16e_press"))
    with pytest.raises(ConfigError, match="elbow"):
        scene_file.dynamics_std(dataclasses.replace(settings, dynamics_std={"elbow": 1.0}), scene.nominal)
