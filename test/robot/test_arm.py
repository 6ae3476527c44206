"""The arm: numbers from the symbolic dynamics, tool, mounting, inverse kinematics."""

import dataclasses
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.robot.arm import Arm, load_arm
from contact_estimation.robot.motor import MotorSide
from contact_estimation.robot.settings import load_robot_settings


@pytest.fixture
def posture(arm):
    return np.random.default_rng(2).uniform(0.7 * arm.lower + 0.3 * arm.upper, 0.3 * arm.lower + 0.7 * arm.upper)


def test_the_numbers_equal_pinocchio_with_reflected_rotor_inertia(arm, posture):
    data = arm.model.createData()
    dq = np.random.default_rng(3).normal(size=arm.n)
    mass = np.triu(pin.crba(arm.model, data, posture))
    mass = mass + np.triu(mass, 1).T + np.diag(arm.motor.armature)
    np.testing.assert_allclose(arm.mass(posture), mass, atol=1e-10)
    np.testing.assert_allclose(
        arm.gravity(posture), pin.computeGeneralizedGravity(arm.model, data, posture), atol=1e-10
    )
    np.testing.assert_allclose(
        arm.coriolis(posture, dq), pin.computeCoriolisMatrix(arm.model, data, posture, dq) @ dq, atol=1e-10
    )


def test_the_tcp_jacobian_is_the_derivative_of_the_pose(arm, posture):
    h, jacobian = 1e-6, arm.tcp_jacobian(posture)
    for i in range(arm.n):
        step = np.eye(arm.n)[i] * h
        (p1, r1), (p0, r0) = arm.tcp_pose(posture + step), arm.tcp_pose(posture - step)
        np.testing.assert_allclose(jacobian[:3, i], (p1 - p0) / (2 * h), atol=1e-8)
        np.testing.assert_allclose(jacobian[3:, i], pin.log3(r1 @ r0.T) / (2 * h), atol=1e-8)


def test_solve_pose_finds_a_posture_of_the_pose(arm, posture):
    position, rotation = arm.tcp_pose(posture)
    found = arm.solve_pose(position, rotation, posture + 0.05)
    p, r = arm.tcp_pose(found)
    np.testing.assert_allclose(p, position, atol=1e-8)
    np.testing.assert_allclose(r, rotation, atol=1e-8)


def test_a_tool_adds_its_weight_at_its_centre_of_mass(arm, posture):
    com, mass = np.array([0.02, -0.01, 0.15]), 2.5
    tool = Arm(dataclasses.replace(arm.settings, name=f"{arm.name}_tool", tool_mass=mass, tool_com=list(com)))
    _, rotation = arm.tcp_pose(posture)
    jacobian = arm.tcp_jacobian(posture)
    lever, weight = rotation @ com, mass * np.array(arm.settings.gravity)
    expected = -(jacobian[:3].T @ weight + jacobian[3:].T @ np.cross(lever, weight))
    np.testing.assert_allclose(tool.gravity(posture) - arm.gravity(posture), expected, atol=1e-9)


def test_hanging_from_the_ceiling_turns_gravity_round(arm, posture):
    ceiling = Arm(dataclasses.replace(arm.settings, name=f"{arm.name}_ceiling", gravity=[0.0, 0.0, 9.81]))
    np.testing.assert_allclose(ceiling.gravity(posture), -arm.gravity(posture), atol=1e-10)


def test_gravity_is_given_in_base_axes():
    """The UR's base link is turned against its first link: gravity along base x must act along base x."""
    arm = load_arm("ur16e")
    wall = Arm(dataclasses.replace(arm.settings, name="ur16e_wall", gravity=[9.81, 0.0, 0.0]))
    q, h = np.array([0.3, -1.0, 1.5, -0.7, 0.4, 0.2]), 1e-6
    tool = Arm(dataclasses.replace(wall.settings, name="ur16e_wall_tool", tool_mass=1.0))
    step = np.eye(6)[0] * h
    expected = -9.81 * (arm.tcp_pose(q + step)[0][0] - arm.tcp_pose(q - step)[0][0]) / (2 * h)
    assert tool.gravity(q)[0] - wall.gravity(q)[0] == pytest.approx(expected, abs=1e-6)


def test_a_position_of_another_robot_is_refused(arm):
    with pytest.raises(ConfigError, match=r"q has shape \(4,\), expected"):
        arm.gravity(np.zeros(4))


def test_motor_side(arm):
    settings = arm.settings
    np.testing.assert_allclose(arm.motor.armature, np.array(settings.gear_ratio) ** 2 * settings.rotor_inertia)
    with pytest.raises(ConfigError, match=r"rotor_inertia has 2 entries, expected one per joint"):
        MotorSide.from_settings(dataclasses.replace(settings, rotor_inertia=[1.0, 2.0]))


def test_currents_become_torques_where_the_constants_are_known():
    ur, franka = load_arm("ur16e"), load_arm("fr3")
    # A UR10e controller with the same joints logs 11.976 and 9.839 Nm/A on joints 2 and 3.
    np.testing.assert_allclose(ur.motor.torque_from_current(np.ones(6))[1:4], [11.976, 9.839, 10.763], rtol=0.015)
    with pytest.raises(ConfigError, match=r"torque_constant"):
        franka.motor.torque_from_current(np.ones(7))


def test_an_unknown_robot_names_the_nearest():
    with pytest.raises(ConfigError, match=r"no robot 'ur61e'.*nearest: 'ur16e'"):
        load_robot_settings("ur61e")


def test_behind_the_gears_rotors_and_their_friction_are_out_of_sight():
    arm = load_arm("fr3")
    link, q = arm.measured_at("link"), 0.5 * (arm.lower + arm.upper)
    assert arm.measured_at("motor") is arm and arm.measured_at("link") is link
    np.testing.assert_allclose(arm.mass(q) - link.mass(q), np.diag(arm.motor.armature), atol=1e-12)
    np.testing.assert_allclose(link.gravity(q), arm.gravity(q), atol=1e-12)
    assert not link.motor.viscous.any() and link.name == arm.name and arm.motor.viscous.any()


def test_the_arm_of_another_thread_has_buffers_of_its_own(arm, posture):
    """As if the other thread came in between input and evaluation."""
    other, numeric = arm.for_another_thread(), arm._numeric
    expected, run = arm.tcp_pose(posture)[0], numeric._run
    numeric._run = lambda: (other.tcp_pose(0.5 * posture), run())
    try:
        assert np.array_equal(arm.tcp_pose(posture)[0], expected)
    finally:
        numeric._run = run
    assert np.array_equal(other.tcp_pose(posture)[0], expected)


def test_an_arm_is_loaded_from_a_path_object_and_nothing_is_no_arm(arm):
    folder = Path(arm.settings.folder)
    assert load_arm(folder).joint_names == load_arm(folder / "robot.yaml").joint_names == arm.joint_names
    with pytest.raises(ConfigError, match="a robot is given by its name or the path of its files, found None"):
        load_arm(None)
