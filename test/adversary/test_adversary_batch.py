"""The presses of the adversarial pack obey the contact law that their truth states."""

import mujoco
import numpy as np
import pytest

from benchmark.adversary import batch

SCENES = ("linkage", "slide", "finger")


def truth(scene, **changes):
    return batch.Truth(scene, 3000.0, 15.0, 0.4, 1e-3, 2500.0, 3.0, **changes)


def pressed(scene, depth=4e-3, seconds=0.4):
    """A bench that was told to hold its ball ``depth`` below the box's top."""
    bench = batch.Bench(truth(scene))
    goal = bench.joints_at(0.46, bench.top + batch.RADIUS - depth)
    bench.data.qpos[:2] = goal
    for _ in range(round(seconds / batch.STEP)):
        torque = bench.step(goal, np.zeros(2), np.zeros(2))
    return bench, torque


@pytest.mark.parametrize("scene", SCENES)
def test_at_rest_the_force_is_stiffness_times_depth(scene):
    bench, _ = pressed(scene)
    height = bench.data.xpos[bench.pad, 2]
    assert bench.force[2] == pytest.approx(3000.0 * (batch.RADIUS + bench.top - height), rel=2e-3)
    assert bench.force[2] > 1.0


def test_at_rest_motors_carry_weight_and_contact():
    bench, torque = pressed("slide")
    weight = 9.81 * (bench.model.body_mass[bench.last] + bench.model.body_mass[bench.pad])
    assert torque[1] == pytest.approx(weight - bench.force[2], rel=1e-2)


def test_at_rest_the_tip_spring_carries_the_contact():
    bench, _ = pressed("finger")
    along = bench.data.xmat[bench.pad].reshape(3, 3)[:, 2]
    held = bench.force - [0.0, 0.0, 9.81 * bench.model.body_mass[bench.pad]]
    assert -2500.0 * bench.data.qpos[2] == pytest.approx(-along @ held, rel=1e-2)


@pytest.mark.parametrize("scene", SCENES)
def test_the_sensor_reads_what_the_ball_hands_to_the_arm(scene):
    bench, _ = pressed(scene)
    turned = bench.data.site("sensor").xmat.reshape(3, 3).T
    weight = np.array([0.0, 0.0, 9.81 * bench.model.body_mass[bench.pad]])
    sensor = bench.data.sensor("force").data
    assert np.linalg.norm(sensor) == pytest.approx(np.linalg.norm(bench.force - weight), rel=1e-2)
    assert abs(sensor) == pytest.approx(abs(turned @ (bench.force - weight)), abs=0.1)


def test_a_press_touches_slides_and_obeys_coulomb():
    rows = batch.simulate(truth("linkage"), np.random.default_rng(1))
    normal, tangent = rows["contact"][:, 2], np.abs(rows["contact"][:, 0])
    assert np.all((normal > 0.0) <= (rows["depth"] > 0.0)) and normal.min() >= 0.0
    assert np.all(tangent <= 0.4 * normal + 1e-9)
    assert 0.2 < np.mean(normal > 1.0) < 0.9
    assert np.mean(tangent[normal > 1.0] > 0.399 * normal[normal > 1.0]) > 0.3


def test_a_harmless_description_is_what_mujoco_reads():
    for scene in ("linkage", "slide"):
        model = mujoco.MjModel.from_xml_string(batch.mjcf(scene))
        assert model.nv == 2
        assert model.body("pad").mass[0] == pytest.approx(0.05)


def test_the_scene_file_does_not_give_the_truth_away():
    planted = batch.Truth("finger", 3100.0, 15.0, 0.45, 1e-3, 2600.0, 3.2)
    starts = {p["name"]: p["nominal"][0] for p in batch.scene_settings(planted)["parameters"]}
    known = {name: getattr(planted, name) for name in starts if hasattr(planted, name)}
    assert len(known) == 6
    assert all(abs(starts[name] - value) > 1e-3 * abs(value) for name, value in known.items() if name != "lift")
    assert starts["lift"] == 0.0
