"""The shipped descriptions hold the manufacturers' numbers; broken ones are refused with the reason."""

import dataclasses
import re
from pathlib import Path

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest
import yaml
from shared import shared_file

from contact_estimation.exceptions import ModelError
from contact_estimation.robot import Arm, load_arm
from contact_estimation.robot.description import load_model, urdf_path
from contact_estimation.robot.settings import load_robot_settings
from contact_estimation.ros.description import LaunchedRobot


def rotation(rpy):
    return pin.rpy.rpyToMatrix(np.array(rpy, float))


def symmetric(moments):
    m = {name.removeprefix("i"): value for name, value in moments.items()}
    return np.array([[m["xx"], m["xy"], m["xz"]], [m["xy"], m["yy"], m["yz"]], [m["xz"], m["yz"], m["zz"]]])


def ur16e_links(data):
    return [
        (link["mass"], link["com_xyz"], rotation(link["inertia_frame_rpy"]), link["inertia_about_com_in_that_frame"])
        for link in data["links"].values()
    ]


def fr3_links(data):
    return [
        (link["mass"], link["com_xyz"], rotation(link["rpy"]), link["inertia"])
        for name, link in data["fr3"]["links"].items()
        if name != "link0"
    ]


@pytest.mark.parametrize(
    "name, links, joints",
    [("ur16e", ur16e_links, lambda d: d["joints"]), ("fr3", fr3_links, lambda d: d["fr3"]["joints"])],
)
def test_the_urdf_holds_the_manufacturers_numbers(name, links, joints):
    data = yaml.safe_load(shared_file(f"robots/{name}.yaml").read_text())
    model = load_model(load_robot_settings(name))
    for inertia, (mass, com, turn, moments) in zip(list(model.inertias)[1:], links(data), strict=True):
        assert inertia.mass == pytest.approx(mass, abs=1e-12)
        np.testing.assert_allclose(inertia.lever, com, atol=1e-9)
        np.testing.assert_allclose(inertia.inertia, turn @ symmetric(moments) @ turn.T, atol=1e-8)
    for i, joint in enumerate(list(joints(data).values())[: model.nv]):
        placement = model.jointPlacements[i + 1]
        if i > 0:  # the first one also carries the turn from base_link to the first link
            np.testing.assert_allclose(placement.translation, joint["origin_xyz"], atol=1e-9)
            np.testing.assert_allclose(placement.rotation, rotation(joint["origin_rpy"]), atol=1e-8)
        assert model.velocityLimit[i] == pytest.approx(joint["max_velocity"])
        assert model.effortLimit[i] == pytest.approx(joint["max_effort"])
        assert model.lowerPositionLimit[i] == pytest.approx(joint["lower"])
        assert model.upperPositionLimit[i] == pytest.approx(joint["upper"])


@pytest.fixture
def broken(tmp_path):
    """Robot settings on a URDF of the UR16e in which ``pattern`` is replaced."""

    def make(pattern="", new="", **changes):
        settings = load_robot_settings("ur16e")
        text, count = re.subn(pattern, new, urdf_path(settings).read_text(), count=1, flags=re.S)
        assert count == 1
        path = tmp_path / "arm.urdf"
        path.write_text(text)
        return dataclasses.replace(settings, urdf=str(path), **changes)

    return make


def test_a_link_without_inertia_is_named(broken):
    settings = broken(r'(<link name="forearm_link">.*?)<inertial>.*?</inertial>', r"\1")
    with pytest.raises(ModelError, match=r"moved by joint 'elbow_joint' has no mass.*<inertial>"):
        load_model(settings)


def test_a_link_with_zero_moments_is_named(broken):
    zero = '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    settings = broken(r'(<link name="wrist_3_link">.*?)<inertia [^>]*/>', rf"\1{zero}")
    with pytest.raises(ModelError, match=r"'wrist_3_joint' has principal moments"):
        load_model(settings)


def test_text_that_is_no_urdf(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text("<robot>")
    with pytest.raises(ModelError, match=r"cannot be read as a URDF"):
        load_model(dataclasses.replace(load_robot_settings("ur16e"), urdf=str(path)))


@pytest.mark.parametrize(
    "changes, words",
    [
        (
            {"joints": ["shoulder_pan", "shoulder_lift_joint"]},
            "joint 'shoulder_pan' is not in .*nearest: 'shoulder_pan_joint'",
        ),
        ({"joints": ["shoulder_lift_joint", "shoulder_pan_joint"]}, "the order"),
        ({"tcp_frame": "tool1"}, "frame 'tool1' is not in"),
        ({"base_frame": "forearm_link"}, "base_frame 'forearm_link' moves"),
        ({"urdf": "absent.urdf"}, "no URDF at 'absent.urdf'"),
    ],
)
def test_wrong_names_are_refused(changes, words):
    with pytest.raises(ModelError, match=words):
        load_model(dataclasses.replace(load_robot_settings("ur16e"), **changes))


def test_a_description_in_the_working_directory_is_not_that_of_the_profile(tmp_path, monkeypatch):
    settings = load_robot_settings("ur16e")
    own = urdf_path(settings)
    (tmp_path / own.name).write_text(own.read_text().replace("ur16e", "another"))
    monkeypatch.chdir(tmp_path)
    assert urdf_path(settings) == own
    assert LaunchedRobot("ur16e", "").urdf() == own.read_text()
    (tmp_path / "mine.urdf").write_text(own.read_text())
    for folder in (settings.folder, ""):
        with pytest.raises(ModelError, match=r"no URDF at 'mine.urdf'"):
            urdf_path(dataclasses.replace(settings, urdf="mine.urdf", folder=folder))
    assert urdf_path(dataclasses.replace(settings, urdf="mine.urdf", folder=".")) == Path("mine.urdf")


@pytest.mark.parametrize("limit", [r"<limit [^>]*/>", None])
def test_a_continuous_joint_is_a_revolute_one_without_limits(broken, limit):
    last = r'(<joint name="wrist_3_joint" type=")revolute(".*?)'
    settings = broken(last + (limit or "(?=<limit)"), r"\1continuous\2")
    arm, plain = Arm(settings), load_arm("ur16e")
    assert arm.unlimited.tolist() == [5]
    assert not len(plain.unlimited)
    assert arm.velocity_limit[5] > 0.0
    q = np.array([0.3, -1.2, 1.4, -0.7, 0.4, 0.2])
    pose, turned = arm.body.kinematics, q + [0, 0, 0, 0, 0, 2 * np.pi]
    for other in (q, turned):
        place = [np.array(ca.DM(ca.evalf(part))) for part in arm.tcp(pose(ca.DM(other)))]
        np.testing.assert_allclose(place[0], pin_pose(plain, q).rotation, atol=1e-12)
        np.testing.assert_allclose(place[1][:, 0], pin_pose(plain, q).translation, atol=1e-12)


def pin_pose(arm, q):
    """TCP placement in the base frame by Pinocchio."""
    data = arm.model.createData()
    pin.framesForwardKinematics(arm.model, data, q)
    base, tcp = (data.oMf[arm.model.getFrameId(name)] for name in (arm.base_frame, arm.tcp_frame))
    return base.actInv(tcp)


def test_positions_told_within_one_turn_go_on_where_they_wrap():
    arm = load_arm("ur16e")
    arm.unlimited = np.array([5])
    q = np.zeros((500, 6))
    q[:, 0], q[:, 5] = np.linspace(0.0, 6.0, 500), np.linspace(1.0, 14.0, 500)
    told = (q + np.pi) % (2 * np.pi) - np.pi
    found = arm.unwrap(told)
    np.testing.assert_allclose(found[:, 5] - found[0, 5], q[:, 5] - q[0, 5], atol=1e-12)
    np.testing.assert_array_equal(found[:, 0], told[:, 0])  # of a joint with limits a jump stays one


def test_a_link_and_a_joint_may_have_one_name(broken):
    settings = broken(r'name="flange_to_tool0"', 'name="tool0"')
    assert load_model(settings).nv == 6
    assert Arm(settings).frame("tool0").type == pin.FrameType.BODY
    kinematics = Arm(settings).kinematics(ca.SX.zeros(6))
    np.testing.assert_allclose(
        np.array(ca.DM(ca.evalf(kinematics.frame("tool0")[1])))[:, 0],
        pin_pose(load_arm("ur16e"), np.zeros(6)).translation,
        atol=1e-12,
    )


def test_joints_that_are_not_asked_for_are_locked():
    settings = load_robot_settings("ur16e")
    whole = load_model(settings)
    part = load_model(dataclasses.replace(settings, joints=settings.joints[:3]))
    assert list(part.names)[1:] == settings.joints[:3]
    q = np.array([0.2, -1.0, 1.3])
    gravity = pin.computeGeneralizedGravity(part, part.createData(), q)
    full = pin.computeGeneralizedGravity(whole, whole.createData(), np.concatenate([q, np.zeros(3)]))
    np.testing.assert_allclose(gravity, full[:3], atol=1e-10)
