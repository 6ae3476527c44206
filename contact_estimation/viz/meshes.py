"""Triangle meshes of a 3-D view: links of an arm, and the unit shapes of arrows and ellipsoids."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_estimation.robot import Arm
from contact_estimation.robot.description import description_text, urdf_path

#: Corners of a circle.
_SEGMENTS = 28
#: Radius of the rounded edges of cylinders and boxes: share of the radius, and at most [m].
_FILLET_SHARE, _FILLET = 0.25, 0.012
#: Shapes differ by this share of their size: faces of two shapes in one plane would flicker.
_APART = 0.002
#: Radius of the rods that stand for links without a shape of their own [m].
_ROD = 0.04
_ROD_COLOUR = (0.70, 0.72, 0.75)


class Mesh(NamedTuple):
    """A surface that moves with a joint.

    Attributes:
        joint: index of the joint in the arm's chain, from 1; 0 is the base.
        vertices: (V, 3) [m] in the joint's frame; of joint 0 in the base frame.
        normals: (V, 3) outward.
        triangles: (T, 3) int, rows of ``vertices``.
        colour: red, green and blue, each 0 to 1.
    """

    joint: int
    vertices: np.ndarray
    normals: np.ndarray
    triangles: np.ndarray
    colour: tuple[float, ...]

    def moved(self, joint: int, rotation: np.ndarray, position: np.ndarray, colour: tuple[float, ...]) -> Mesh:
        """Attach the mesh to a joint at a pose: ``rotation`` (3, 3), ``position`` (3,) [m]."""
        vertices = self.vertices @ rotation.T + position
        return Mesh(joint, vertices, self.normals @ rotation.T, self.triangles, colour)


class Link(NamedTuple):
    """A joint of the chain.

    Attributes:
        parent: index of the joint before it; 0 is the base.
        rotation: (3, 3) of its frame at zero, in the parent's.
        position: (3,) [m] of its frame at zero, in the parent's.
        axis: (3,) in its frame.
        prismatic: whether it slides.
    """

    parent: int
    rotation: np.ndarray
    position: np.ndarray
    axis: np.ndarray
    prismatic: bool


def chain(arm: Arm) -> list[Link]:
    """Return the joints of ``arm``, base to tip."""
    model, base = arm.model, _base(arm)
    links = []
    for j in range(1, model.njoints):
        parent, placement = int(model.parents[j]), model.jointPlacements[j]
        placement = placement if parent else base.actInv(placement)
        axis, prismatic = np.array(arm.body.axes[j - 1], float), bool(arm.body.prismatic[j - 1])
        links.append(Link(parent, placement.rotation.copy(), placement.translation.copy(), axis, prismatic))
    return links


def tcp_of(arm: Arm) -> Link:
    """Return the TCP as a link without motion."""
    frame = arm.frame(arm.tcp_frame)
    place = frame.placement
    return Link(int(frame.parentJoint), place.rotation.copy(), place.translation.copy(), np.zeros(3), False)


def link_poses(arm: Arm, q: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return rotation (3, 3) and position (3,) [m] of base and joints in the base frame at ``q`` (n,) [rad]."""
    data = arm.model.createData()
    pin.forwardKinematics(arm.model, data, np.asarray(q, float))
    base = _base(arm)
    poses = [pin.SE3.Identity(), *(base.actInv(data.oMi[j]) for j in range(1, arm.model.njoints))]
    return [(pose.rotation, pose.translation) for pose in poses]


def arm_meshes(arm: Arm) -> list[Mesh]:
    """Return what the URDF shows of every link; a rod along each link where it shows nothing that can be read."""
    text, folder = description_text(arm.settings), str(urdf_path(arm.settings).parent)
    full = pin.buildModelFromXML(text)
    try:
        shapes = pin.buildGeomFromUrdfString(full, text, pin.GeometryType.VISUAL, package_dirs=[folder]).geometryObjects
    except ValueError:  # mesh files that are somewhere else
        shapes = []
    meshes, base = [], _base(arm)
    for k, shape in enumerate(shapes):
        name = full.names[shape.parentJoint]
        mesh = _mesh_of(shape.geometry)
        if mesh is None or (shape.parentJoint and not arm.model.existJointName(name)):
            continue  # what a locked joint carries is not drawn
        joint = arm.model.getJointId(name) if shape.parentJoint else 0
        place = shape.placement if joint else base.actInv(shape.placement)
        colour = tuple(float(value) for value in shape.meshColor[:3])
        mesh = mesh._replace(vertices=(1.0 + _APART * (k % 3)) * mesh.vertices)
        meshes.append(mesh.moved(int(joint), place.rotation, place.translation, colour))
    return meshes or _rods(arm)


def _rods(arm: Arm) -> list[Mesh]:
    """Return rods between the origins of the joints, and to the TCP."""
    rods = []
    for link in [*chain(arm), tcp_of(arm)]:
        length = float(np.linalg.norm(link.position))
        if length > 1e-3:
            rod = cylinder(_ROD, length).moved(link.parent, align_z(link.position), 0.5 * link.position, _ROD_COLOUR)
            rods.append(rod)
    return rods


def align_z(direction: np.ndarray) -> np.ndarray:
    """Return a rotation (3, 3) whose third column points along ``direction`` (3,)."""
    z = np.asarray(direction, float) / np.linalg.norm(direction)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def cylinder(radius: float, length: float) -> Mesh:
    """Return a cylinder about z, its edges rounded."""
    fillet = min(_FILLET, _FILLET_SHARE * radius, 0.25 * length)
    turn = np.linspace(0.0, 0.5 * np.pi, 4)
    arc = np.column_stack([radius - fillet + fillet * np.sin(turn), 0.5 * length - fillet + fillet * np.cos(turn)])
    normals = np.column_stack([np.sin(turn), np.cos(turn)])
    profile = np.vstack([[[0.0, 0.5 * length]], arc, arc[::-1] * [1, -1], [[0.0, -0.5 * length]]])
    return _revolved(profile, np.vstack([[[0.0, 1.0]], normals, normals[::-1] * [1, -1], [[0.0, -1.0]]]))


@lru_cache(maxsize=1)
def units() -> dict[str, Mesh]:
    """Return what other shapes are scaled from.

    ``sphere`` of diameter 1; ``shaft``, a cylinder of diameter 1 from z = 0 to 1; ``head``, a cone of base diameter 1
    with its tip at z = 1; ``box`` of edge 1.
    """
    turn = np.linspace(0.0, np.pi, 13)
    circle = np.column_stack([np.sin(turn), np.cos(turn)])
    slope = np.array([1.0, 0.5]) / np.hypot(1.0, 0.5)  # normal of a cone as wide as it is high
    down, up, side = [0.0, -1.0], [0.0, 1.0], [1.0, 0.0]
    return {
        "sphere": _revolved(0.5 * circle, circle),
        "shaft": _revolved([[0, 1], [0.5, 1], [0.5, 1], [0.5, 0], [0.5, 0], [0, 0]], [up, up, side, side, down, down]),
        "head": _revolved([[0, 1], [0.5, 0], [0.5, 0], [0, 0]], [slope, slope, down, down]),
        "box": box(np.full(3, 0.5)),
    }


def box(half: np.ndarray) -> Mesh:
    """Return a box with the half edges ``half`` (3,) [m] about the origin."""
    vertices: list[np.ndarray] = []
    normals: list[np.ndarray] = []
    triangles: list[list[int]] = []
    for axis in range(3):
        for sign in (1.0, -1.0):
            normal = sign * np.eye(3)[axis]
            u, v = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3] * sign
            start = len(vertices)
            vertices += [half * (normal + a * u + b * v) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            normals += [normal] * 4
            triangles += [[start, start + 1, start + 2], [start, start + 2, start + 3]]
    return Mesh(0, np.array(vertices), np.array(normals), np.array(triangles), _ROD_COLOUR)


def _mesh_of(shape: Any) -> Mesh | None:
    """Return the mesh of a shape of Pinocchio's geometry library, or None for an unknown kind."""
    kind = type(shape).__name__
    if kind == "Cylinder":
        return cylinder(shape.radius, 2.0 * shape.halfLength)
    if kind == "Sphere":
        unit = units()["sphere"]
        return unit._replace(vertices=2.0 * shape.radius * unit.vertices)
    if kind == "Capsule":
        turn = np.linspace(0.0, 0.5 * np.pi, 9)
        circle = np.column_stack([np.sin(turn), np.cos(turn)])
        half = shape.radius * circle + [0.0, shape.halfLength]
        return _revolved(np.vstack([half, half[::-1] * [1, -1]]), np.vstack([circle, circle[::-1] * [1, -1]]))
    if kind == "Box":
        return box(np.array(shape.halfSide))
    if kind.startswith("BVHModel"):
        points = np.array(shape.vertices())
        corners = np.array([[t[0], t[1], t[2]] for t in (shape.tri_indices(i) for i in range(shape.num_tris))])
        flat = points[corners]  # (T, 3, 3)
        normals = np.cross(flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0])
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
        triangles = np.arange(3 * len(flat)).reshape(-1, 3)
        return Mesh(0, flat.reshape(-1, 3), np.repeat(normals, 3, axis=0), triangles, _ROD_COLOUR)
    return None


def _revolved(profile: Any, slopes: Any) -> Mesh:
    """Turn a profile (P, 2) of radius and height [m] with normals (P, 2), listed from the top, about z."""
    profile, slopes = np.asarray(profile, float), np.asarray(slopes, float)
    angle = np.linspace(0.0, 2.0 * np.pi, _SEGMENTS, endpoint=False)
    around = np.column_stack([np.cos(angle), np.sin(angle)])

    def turned(rows: np.ndarray) -> np.ndarray:
        ring = [np.column_stack([r * around, np.full(_SEGMENTS, z)]) for r, z in rows]
        return np.vstack(ring)

    k, j = np.meshgrid(np.arange(len(profile) - 1), np.arange(_SEGMENTS), indexing="ij")
    here, beside = k * _SEGMENTS + j, k * _SEGMENTS + (j + 1) % _SEGMENTS
    quads = [
        np.stack([here, here + _SEGMENTS, beside + _SEGMENTS], axis=-1),
        np.stack([here, beside + _SEGMENTS, beside], axis=-1),
    ]
    triangles = np.concatenate([quad.reshape(-1, 3) for quad in quads])
    vertices = turned(profile)
    corners = vertices[triangles]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return Mesh(0, vertices, turned(slopes), triangles[area > 1e-12], _ROD_COLOUR)


def _base(arm: Arm) -> pin.SE3:
    return arm.frame(arm.base_frame).placement
