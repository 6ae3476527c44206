"""The links' surfaces: candidates against the cylinders of the URDF, read and computed without the code under test."""

import dataclasses
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.exceptions import ConfigError, ModelError
from contact_estimation.robot.arm import Arm, load_arm
from contact_estimation.robot.description import urdf_path
from contact_estimation.robot.settings import load_robot_settings
from contact_estimation.robot.surface import link_surface


def cylinders(arm):
    """Per link its cylinders as (pose in the joint's frame, radius, half length)."""
    found = {}
    for link in ElementTree.parse(urdf_path(arm.settings)).getroot().findall("link"):
        frame = arm.model.frames[arm.model.getFrameId(link.get("name"))]
        for shape in link.findall("collision"):
            turn, place = (np.array(shape.find("origin").get(k).split(), float) for k in ("rpy", "xyz"))
            size = shape.find("geometry/cylinder")
            pose = frame.placement * pin.SE3(pin.rpy.rpyToMatrix(*turn), place)
            found.setdefault(link.get("name"), []).append(
                (pose, float(size.get("radius")), float(size.get("length")) / 2)
            )
    return found


def distances(shapes, points):
    """Signed distance of points (M, 3) to the nearest of some cylinders, exact near their faces."""
    rows = []
    for pose, radius, half in shapes:
        local = (points - pose.translation) @ pose.rotation
        rows.append(np.maximum(np.hypot(local[:, 0], local[:, 1]) - radius, np.abs(local[:, 2]) - half))
    return np.min(rows, axis=0)


@pytest.mark.parametrize("robot", ["fr3", "ur16e"])
def test_candidates_are_on_the_surface_and_normals_point_out(robot):
    arm = load_arm(robot)
    surface, shapes = link_surface(arm, 1000), cylinders(arm)
    assert len(surface.joint) == 1000
    for k, name in enumerate(surface.names):
        own = surface.link == k
        points, normals = surface.points[own], surface.normals[own]
        assert np.abs(distances(shapes[name], points)).max() < 5e-4
        outside = distances(shapes[name], points + 2e-3 * normals) > 1e-3
        assert outside.mean() > 0.97  # at a seam of two cylinders the way out of one leads into the other
        assert set(surface.joint[own]) == {arm.model.frames[arm.model.getFrameId(name)].parentJoint - 1}


def test_every_free_point_has_a_candidate_nearby_and_areas_add_up():
    arm, rng = load_arm("fr3"), np.random.default_rng(0)
    surface, (pose, radius, half) = link_surface(arm, 1000), cylinders(arm)["fr3_link7"][0]
    turn, height = rng.uniform(0, 2 * np.pi, 500), rng.uniform(0.2 * half, half, 500)  # beyond link 6's reach
    points = (
        np.column_stack([radius * np.cos(turn), radius * np.sin(turn), height]) @ pose.rotation.T + pose.translation
    )
    own = surface.points[surface.link == surface.names.index("fr3_link7")]
    assert np.linalg.norm(points[:, None] - own, axis=2).min(axis=1).max() < 0.02
    whole = 2 * np.pi * 0.06 * (0.28 + 0.06)  # the cylinder of link 1, of which link 2 may cover a part
    found = surface.area[surface.link == 0].sum()
    assert 0.5 * whole < found < whole


@pytest.mark.parametrize("link, shape", [("fr3_link3", 1), ("fr3_link4", 0)])
def test_faces_of_two_links_in_one_plane_have_candidates_of_both(link, shape):
    """The ends of the two cylinders about the elbow's axis."""
    arm, rng = load_arm("fr3"), np.random.default_rng(0)
    surface, (pose, radius, half) = link_surface(arm, 1000), cylinders(arm)[link][shape]
    turn, out = rng.uniform(0, 2 * np.pi, 200), radius * np.sqrt(rng.uniform(0, 0.8, 200))
    points = np.column_stack([out * np.cos(turn), out * np.sin(turn), np.full(200, half)])
    own = surface.points[surface.link == surface.names.index(link)]
    apart = np.linalg.norm((points @ pose.rotation.T + pose.translation)[:, None] - own, axis=2)
    assert apart.min(axis=1).max() < 0.025


def test_few_candidates_are_at_least_one_per_link():
    arm = load_arm("fr3")
    for count in range(7, 14):
        surface = link_surface(arm, count)
        assert len(surface.link) == len(surface.area) == count
        assert np.bincount(surface.link, minlength=7).min() >= 1
    with pytest.raises(ConfigError, match=r"6 candidates were asked for, but 7 moving links.*at least 7"):
        link_surface(arm, 6)


def test_a_link_inside_its_neighbour_is_not_named(tmp_path):
    settings = load_robot_settings("fr3")
    tree = ElementTree.parse(urdf_path(settings))
    link = tree.getroot().find("link[@name='fr3_link4']")
    for shape in link.findall("collision"):
        link.remove(shape)
    ElementTree.SubElement(
        ElementTree.SubElement(ElementTree.SubElement(link, "collision"), "geometry"), "sphere", radius="0.01"
    )
    tree.write(tmp_path / "hidden.urdf")
    surface = link_surface(Arm(dataclasses.replace(settings, urdf=str(tmp_path / "hidden.urdf"))), 100)
    assert surface.names == tuple(f"fr3_link{k}" for k in (1, 2, 3, 5, 6, 7))
    assert set(surface.link) == set(range(6))
    np.testing.assert_array_equal(np.unique(surface.joint[surface.link == 3]), [4])


def test_a_robot_without_collision_geometry_is_refused(tmp_path):
    settings = load_robot_settings("fr3")
    tree = ElementTree.parse(urdf_path(settings))
    for link in tree.getroot().findall("link"):
        for shape in link.findall("collision"):
            link.remove(shape)
    tree.write(tmp_path / "bare.urdf")
    arm = Arm(dataclasses.replace(settings, urdf=str(tmp_path / "bare.urdf")))
    with pytest.raises(ModelError, match=r"no moving link .* has collision geometry"):
        link_surface(arm, 100)
