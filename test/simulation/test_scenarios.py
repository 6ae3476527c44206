"""Scenarios: all of them run, on every arm they name, and touch what they promise."""

import dataclasses
import shutil

import numpy as np
import pinocchio as pin
import pytest
import yaml

from contact_estimation.control.mpc import load_mpc_settings
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm
from contact_estimation.robot.settings import load_robot_settings
from contact_estimation.settings import find_config, from_mapping, replace, to_mapping
from contact_estimation.simulation.scenarios import ScenarioSettings, load_scenario, scenario_names
from contact_estimation.simulation.scenarios.motion import Motion
from contact_estimation.simulation.session import open_simulation

PAPERS = {"linear_contact", "single_point_rotation", "materials", "plane", "pivot"}


def test_the_papers_experiments_are_there():
    assert PAPERS | {"block", "tilted_plane", "wipe", "peg_in_slot", "mission"} == set(scenario_names())
    for name in PAPERS:
        assert "paper" in load_scenario(name).source


@pytest.mark.parametrize("name", scenario_names())
@pytest.mark.parametrize("robot", ["fr3", "ur16e"])
def test_every_scenario_starts_on_every_arm(name, robot):
    sim = open_simulation(name, robot)
    for sample in sim.run(0.1):
        assert np.isfinite(sample.tau).all() and np.isfinite(sample.truth["wrench_tcp"]).all()


def touches(name, **changes):
    sim = open_simulation(name, imperfections="ideal", rate=100.0, **changes)
    closed = set()
    for _ in sim.run():
        for row in sim.plant.touches:
            closed |= {surface.name for surface, touch in zip(sim.plant.surfaces, row) if touch.closed}
    return closed


def test_both_materials_and_the_slope_are_touched():
    assert touches("materials") == {"soft", "hard", "slope"}


def test_the_peg_meets_floor_and_a_wall():
    assert {"floor"} < touches("peg_in_slot")


def test_truth_says_the_tilted_normal():
    sim = open_simulation("tilted_plane", imperfections="ideal")
    truth = list(sim.run(3.0))[-1].truth
    normal = truth["stiffness"] / np.linalg.norm(truth["stiffness"])
    assert normal == pytest.approx([np.sin(np.pi / 9), 0.0, np.cos(np.pi / 9)], abs=1e-6)
    assert np.linalg.norm(truth["stiffness"]) == pytest.approx(8000)


def test_single_point_stays_while_the_arm_arcs_about_it():
    sim = open_simulation("single_point_rotation", imperfections="ideal", rate=100.0)
    points, rotations, force = [], [], []
    for sample in sim.run(8.0):
        points.append(sample.truth["contact_point"])
        rotations.append(sim.plant.rotation.copy())
        force.append((sim.plant.rotation @ sample.truth["wrench_tcp"][:3])[2])
    assert np.abs(np.array(points)[200:] - points[0]).max() < 3e-3
    assert np.linalg.norm(pin.log3(rotations[0].T @ rotations[-1])) > 0.1
    assert np.mean(force[200:]) == pytest.approx(30.0, rel=0.05)


@pytest.mark.parametrize("shape", ["smooth", "linear"])
def test_motion_twist_is_the_derivative_of_the_pose(shape):
    scenario = load_scenario("pivot")
    segments = [replace(s, shape=shape) for s in scenario.motion]
    motion = Motion(segments, np.array([0.4, 0.1, 0.3]), pin.exp3(np.array([3.0, 0.2, 0.1])), [0.0, 0.02, 0.15])
    h = 1e-6
    for t in (0.5, 3.0, 5.1, 9.0, 16.5):
        a, b, now = motion.at(t - h), motion.at(t + h), motion.at(t)
        assert (b.position - a.position) / (2 * h) == pytest.approx(now.twist[:3], abs=1e-6)
        assert now.rotation @ pin.log3(a.rotation.T @ b.rotation) / (2 * h) == pytest.approx(now.twist[3:], abs=1e-6)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"controller": {"fr3": "position"}}, "controller.fr3"),
        ({"rate": 300.0}, "multiple of timestep"),
        ({"rate": 1000.0, "control_rate": 500.0}, "must not exceed"),
        ({"tool_points": [[0.0, 0.0]]}, "tool_points"),
    ],
)
def test_bad_scenarios_are_refused(change, words):
    with pytest.raises(ConfigError, match=words):
        from_mapping(ScenarioSettings, {**to_mapping(load_scenario("plane")), **change}, "test")


@pytest.mark.parametrize("joint", [0, 3])
def test_a_push_is_the_torque_that_statics_tells(joint):
    force, local = np.array([10.0, 40.0, -5.0]), np.array([-0.1, 0.02, 0.05])
    push = {"name": "hand", "start": 0.1, "duration": 0.8, "force": force.tolist()}
    still = [{"duration": 1.0}]
    pushes = [push | {"joint": joint, "point": local.tolist()}]
    simulation = open_simulation("mission", imperfections="ideal", surfaces=[], motion=still, pushes=pushes)
    samples = {round(sample.stamp_ns * 1e-9, 3): sample for sample in simulation.run()}
    arm, sample = simulation.arm, samples[0.5]
    data, name = arm.model.createData(), arm.joint_names[joint - 1] if joint else arm.tcp_frame
    pin.framesForwardKinematics(arm.model, data, sample.q)
    frame = arm.model.getFrameId(name)
    jacobian = pin.computeFrameJacobian(arm.model, data, sample.q, frame, pin.LOCAL_WORLD_ALIGNED)
    base = data.oMf[arm.model.getFrameId(arm.base_frame)].rotation
    lever, world = data.oMf[frame].rotation @ local, base @ force
    expected = jacobian.T @ np.concatenate([world, np.cross(lever, world)])
    np.testing.assert_allclose(sample.truth["tau_ext"], expected, atol=2e-3)
    at_tool = np.linalg.norm(sample.truth["wrench_tcp"][:3])
    assert at_tool == pytest.approx(0.0 if joint else np.linalg.norm(force), abs=1e-6)
    assert not samples[0.05].truth["tau_ext"].any() and not samples[0.95].truth["tau_ext"].any()


def test_an_unknown_scenario_lists_scenarios_alone():
    with pytest.raises(ConfigError, match=r"there is no task 'bogus'") as error:
        load_scenario("bogus")
    assert all(name in str(error.value) for name in scenario_names())
    assert "mpc_plane_fr3" not in str(error.value) and "loop_" not in str(error.value)


def test_a_task_of_another_verb_says_who_takes_it():
    for name, taker in (
        ("mpc_plane_fr3", "horizon and weights, as a task of the node mpc"),
        ("sequence_block_fr3", "task and steps, as a task of mpc sequence"),
        ("loop_plane_fr3", "mpc and observer, as a task of mpc TASK"),
        ("probe_press_fr3", "mpc and sensing, as a task of mpc probe"),
    ):
        with pytest.raises(ConfigError, match=f"{taker}.*; simulate SCENARIO takes one with surfaces and motion"):
            load_scenario(name)
    with pytest.raises(ConfigError, match="surfaces and motion, as a task of simulate"):
        load_mpc_settings("plane")


@pytest.mark.parametrize("scenario", ["linear_contact", "mission"])
def test_a_torque_controlled_arm_of_unknown_rotors_is_simulated_with_some(scenario):
    settings = dataclasses.replace(load_robot_settings("fr3"), rotor_inertia=None, name="own")
    with pytest.warns(UserWarning, match=r"'own' has no rotor_inertia .* kg m\^2"):
        simulation = open_simulation(scenario, Arm(settings))
    assert simulation.imperfections.sensors == "link_torque"
    assert simulation.imperfections.torque.side == "link"
    velocities = np.array([simulation.step().dq for _ in range(1000)])
    assert np.abs(np.diff(velocities, axis=0)).max() < 0.02  # [rad/s] noise 5e-4; without rotors it diverges at once


def test_a_scenario_of_the_robots_own_folder_comes_first(tmp_path):
    """``scenario:=plane`` with a robot's folder is that folder's plane."""
    profile = tmp_path / "my_arm"
    shutil.copytree(load_robot_settings("fr3").folder, profile)
    own = yaml.safe_load(find_config("tasks", "plane").read_text()) | {"rate": 250.0}
    for name in ("plane", "mine"):
        (profile / "tasks" / f"{name}.yaml").write_text(yaml.safe_dump(own))
        assert open_simulation(name, str(profile)).scenario.rate == 250.0
    assert open_simulation("plane", "fr3").scenario.rate == 500.0
