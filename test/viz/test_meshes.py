"""Meshes of links: they stand where the arm's kinematics puts them, and their surfaces look outward."""

import numpy as np
import pytest

from contact_estimation.robot import load_arm
from contact_estimation.viz import meshes
from contact_estimation.viz.meshes import arm_meshes, chain, link_poses, tcp_of, units


@pytest.fixture(scope="module", params=["ur16e", "fr3"])
def arm(request):
    return load_arm(request.param)


def test_chain_and_poses_end_at_the_tcp(arm):
    q = np.linspace(-0.9, 0.8, arm.n)
    rotation, position = np.eye(3), np.zeros(3)
    for link, angle in zip([*chain(arm), tcp_of(arm)], [*q, 0.0]):  # by Rodrigues' formula, one joint after the other
        cross = np.cross(np.eye(3), link.axis)
        turn = np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross
        position, rotation = position + rotation @ link.position, rotation @ link.rotation @ turn
    true_position, true_rotation = arm.tcp_pose(q)
    np.testing.assert_allclose(position, true_position, atol=1e-9)
    np.testing.assert_allclose(rotation, true_rotation, atol=1e-9)
    tcp, (turn, place) = tcp_of(arm), link_poses(arm, q)[tcp_of(arm).parent]
    np.testing.assert_allclose(place + turn @ tcp.position, true_position, atol=1e-9)


def test_every_link_is_seen_and_looks_outward(arm):
    shown = arm_meshes(arm)
    assert {mesh.joint for mesh in shown} == set(range(arm.n + 1))
    for mesh in [*shown, *units().values()]:
        corners = mesh.vertices[mesh.triangles]
        facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        told = mesh.normals[mesh.triangles].sum(axis=1)
        assert (np.einsum("ij,ij->i", facing, told) > 0.0).mean() > 0.99


def test_an_arm_without_shapes_has_rods_from_joint_to_joint(arm, monkeypatch):
    def missing(*_, **__):
        raise ValueError("mesh file not found")

    monkeypatch.setattr(meshes.pin, "buildGeomFromUrdfString", missing)
    rods, q = arm_meshes(arm), np.zeros(arm.n)
    poses = link_poses(arm, q)
    points = np.vstack([mesh.vertices @ poses[mesh.joint][0].T + poses[mesh.joint][1] for mesh in rods])
    for _, position in [*poses, arm.tcp_pose(q)[::-1]]:
        assert np.linalg.norm(points - position, axis=1).min() < 0.06
