"""A base that leans and a load that changes are named; the world is Pinocchio's, with LuGre friction."""

import dataclasses
import re
import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
from calibration_truth import World, record

from contact_estimation.exceptions import IdentificationError
from contact_estimation.fit.calibration import CalibrationSettings, identify
from contact_estimation.fit.calibration.doubts import doubts
from contact_estimation.fit.calibration.model import gravity_turns
from contact_estimation.robot import load_arm

SETTINGS = CalibrationSettings()


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def told(arm, *worlds, seed=0, settings=SETTINGS):
    """What is said of one recording of each world."""
    recordings = [
        dataclasses.replace(record(world, seed + k)[0], source=f"{'abcd'[k]}.npz") for k, world in enumerate(worlds)
    ]
    return doubts(arm, identify(arm, recordings, settings), settings)


def figure(sentence, before):
    """The number with a standard deviation that follows some words."""
    value, _, std, *_ = sentence.split(before)[1].split()
    return float(value), float(std)


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
def test_a_base_that_leans_is_the_only_doubt(arm, speed):
    """The payload, the scales and the links that a wrong gravity asks for are not named beside it."""
    (doubt,) = told(arm, World(lean=3.0, speed=speed), seed=4)
    angle, std = figure(doubt, "leans by")
    assert abs(angle - 3.0) < max(3 * std, 0.1) and std < 0.3
    assert "key 'gravity' of robot.yaml" in doubt


def test_the_gravity_that_is_named_makes_the_calibration_good(arm):
    (doubt,) = told(arm, World(lean=3.0), seed=2)
    gravity = [float(g) for g in doubt.split("[")[1].split("]")[0].split(",")]
    leaning = type(arm)(dataclasses.replace(arm.settings, gravity=gravity))
    assert told(leaning, World(lean=3.0), seed=2) == []


def test_a_base_that_leans_hides_no_late_torque(arm):
    doubt, late = told(arm, World(lean=3.0, late=0.02), seed=4)
    assert "the base leans" in doubt and "ms late beside the positions" in late


def test_a_refusal_names_the_base_that_leans_too(arm):
    """The wrong gravity makes the payload's mass negative."""
    with pytest.raises(IdentificationError, match=r"a negative mass: .*; or the base leans by 3\.\d "):
        told(arm, World(lean=3.0), seed=1)


def test_another_robot_does_not_look_like_a_base_that_leans():
    """Fast motion, with which a UR10e is not refused as a UR16e."""
    settings = dataclasses.replace(SETTINGS, max_scale_error=0.9)
    doubts_told = told(load_arm("ur16e"), World(robot="ur10e", told="ur16e", speed=2.0), seed=3, settings=settings)
    assert any("the links of robot" in doubt for doubt in doubts_told)
    assert not any("leans" in doubt or "load differs" in doubt for doubt in doubts_told), doubts_told


@pytest.mark.parametrize("load", [0.0, 2.0])
def test_a_load_taken_up_half_way_is_the_only_doubt(arm, load):
    (doubt,) = told(arm, World(taken=1.0, load=load), seed=1)
    mass, std = figure(doubt, "the second half of a.npz has")
    assert abs(mass - 1.0) < max(3 * std, 0.1) and "kg more behind the flange than the first" in doubt


@pytest.mark.parametrize(
    ("worlds", "words"),
    [
        ((World(), World(load=1.5)), r"b.npz has 1\.[45]\d .* more behind the flange than a.npz"),
        ((World(taken=1.0), World(taken=1.0)), r"the second halves have (0\.9|1\.0)\d? .* more .* than the first"),
        ((World(), World(taken=1.0)), r"the second half of b.npz has (0\.9|1\.0)\d? .* more .* than the rest"),
        ((World(load=1.0), World(), World()), r"a.npz has (0\.9|1\.0)\d? .* more .* than the others"),
    ],
)
def test_the_part_with_another_load_is_named(arm, worlds, words):
    doubt = told(arm, *worlds, seed=3)[0]
    assert re.search(f"the load differs between the recordings or within one: {words}", doubt), doubt


def test_a_load_that_differs_is_told_without_a_payload(arm):
    """Where the payload is not identified, the halves are compared all the same."""
    settings = dataclasses.replace(SETTINGS, identify=["scale", "armature", "asymmetry"])
    assert any("the load differs" in doubt for doubt in told(arm, World(taken=0.5), seed=1, settings=settings))


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("load", [0.0, 2.0])
def test_recordings_of_one_load_on_a_level_base_are_not_doubted(arm, load, seed):
    assert told(arm, World(load=load), World(load=load), seed=seed) == []


def test_a_turn_of_gravity_is_the_difference_of_gravity_torques(arm):
    """An arm on a wall: its axes are perpendicular to gravity, and the change is Pinocchio's own."""
    wall = type(arm)(dataclasses.replace(arm.settings, gravity=[9.81, 0.0, 0.0]))
    found = identify(arm, [record(World(seconds=12.0), 0)[0]], SETTINGS)
    turns, axes = gravity_turns(wall, found.designs[0], np.zeros(4), np.zeros(60))
    np.testing.assert_allclose(axes @ [1.0, 0.0, 0.0], 0.0, atol=1e-12)
    q, model = found.designs[0].motion.q[5], wall.model.copy()
    before = pin.computeGeneralizedGravity(model, model.createData(), q)
    model.gravity.linear = pin.exp3(1e-5 * axes[0]) @ model.gravity.linear
    change = (pin.computeGeneralizedGravity(model, model.createData(), q) - before) / 1e-5
    np.testing.assert_allclose(turns[5, :, 0], change, rtol=1e-3, atol=1e-3)
