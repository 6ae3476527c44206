"""Surface of the links: points with outward normals, sampled once from the collision geometry of the description.

Every collision shape is replaced by the convex hull of its vertices; a sphere, cylinder or capsule is cut into facets.
The triangles are sampled densely. Samples inside another shape of the link are dropped, and so are samples inside a
neighbouring link in every posture of their joint. Farthest-point sampling (Eldar et al. 1997) reduces the rest to the
candidates. Each candidate represents the samples nearest to it.
"""

from __future__ import annotations

import functools
import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin

from contact_estimation.exceptions import ConfigError, ModelError
from contact_estimation.robot.arm import Arm
from contact_estimation.robot.description import description_text, urdf_path

#: Dense samples per candidate: the area of a cell is then right within a third.
_DENSE = 12
#: Facets around a cylinder: the hull is at most 0.2 % of the radius inside it.
_FACETS = 48
#: Postures of a joint in which a neighbouring link may cover a point.
_POSTURES = 12
#: Triangles below this share of the largest are edges.
_LEAST_AREA = 1e-9
#: [m] A point that faces another shape this close is in the seam between the two: no finger fits there.
_SEAM = 3e-3
#: [m] Faces of two links this close to each other are both outside, of one link hardly.
_SKIN, _OWN_SKIN = 1e-3, 1e-4


@dataclass(frozen=True)
class Surface:
    """Candidates for the place of a contact, sorted by link.

    Attributes:
        names: links (L,) that have candidates.
        link: index (M,) into ``names``.
        joint: index (M,) of the joint that moves the link.
        points: (M, 3) [m] in the frame of that joint.
        normals: (M, 3) outwards, same axes.
        area: (M,) [m^2] that a candidate stands for.
        radius: (M,) [m] root mean square distance of that area from it.
    """

    names: tuple[str, ...]
    link: np.ndarray
    joint: np.ndarray
    points: np.ndarray
    normals: np.ndarray
    area: np.ndarray
    radius: np.ndarray


class _Hull:
    """A convex shape in the frame of its joint."""

    def __init__(self, triangles: np.ndarray) -> None:
        edges = triangles[:, 1:] - triangles[:, :1]  # (T, 2, 3)
        cross = np.cross(edges[:, 0], edges[:, 1])
        areas = 0.5 * np.linalg.norm(cross, axis=1)
        flat = areas > _LEAST_AREA * areas.max()  # a facet at a pole is an edge
        self.triangles, self.areas = triangles[flat], areas[flat]
        self.normals = cross[flat] / (2.0 * self.areas[:, None])
        offsets = -np.einsum("ij,ij->i", self.normals, self.triangles[:, 0])
        # Two triangles of a facet share their plane.
        self._planes = np.unique(np.column_stack([self.normals, offsets]).round(9), axis=0)

    def holds(self, points: np.ndarray) -> np.ndarray:
        """Tell which of ``points`` (M, 3) [m] are inside."""
        return np.asarray((points @ self._planes[:, :3].T + self._planes[:, 3] < 0.0).all(axis=1))

    def sample(self, density: float) -> tuple[np.ndarray, np.ndarray]:
        """Return points (M, 3) [m] and outward normals (M, 3), ``density`` [1/m^2] of them, evenly spread."""
        count = max(int(density * self.areas.sum()), 1)
        steps = np.arange(count) + 0.5
        triangle = np.searchsorted(np.cumsum(self.areas), steps / count * self.areas.sum())
        triangle = np.minimum(triangle, len(self.areas) - 1)
        # Roberts' two-dimensional low-discrepancy sequence, folded into the triangle.
        u, v = np.mod(np.outer([0.7548776662466927, 0.5698402909980532], steps), 1.0)
        u, v = np.where(u + v > 1.0, 1.0 - u, u), np.where(u + v > 1.0, 1.0 - v, v)
        corners = self.triangles[triangle]
        points = corners[:, 0] + u[:, None] * (corners[:, 1] - corners[:, 0])
        return points + v[:, None] * (corners[:, 2] - corners[:, 0]), self.normals[triangle]


def _triangles(shape: Any, name: str) -> np.ndarray:
    """Return the convex hull of a collision shape as triangles (T, 3, 3) [m], anticlockwise from outside."""
    turn = 2.0 * np.pi * np.arange(_FACETS) / _FACETS
    circle = np.column_stack([np.cos(turn), np.sin(turn), np.zeros(_FACETS)])
    kind = type(shape).__name__
    if kind == "Box":
        x, y, z = shape.halfSide
        return _between(np.array([[[x, y, h], [-x, y, h], [-x, -y, h], [x, -y, h]] for h in (-z, z)]))
    if kind == "Cylinder":
        return _between(
            np.array([shape.radius * circle + [0.0, 0.0, z] for z in (-shape.halfLength, shape.halfLength)])
        )
    if kind in ("Sphere", "Capsule"):
        half = shape.halfLength if kind == "Capsule" else 0.0
        heights = np.sin(np.linspace(-0.5, 0.5, _FACETS // 2) * np.pi)
        ball = [np.sqrt(1.0 - z * z) * circle + [0.0, 0.0, z] for z in heights]
        return _between(np.array([shape.radius * ring + [0.0, 0.0, np.sign(ring[0, 2]) * half] for ring in ball]))
    for method in ("vertices", "points"):
        if hasattr(shape, method):
            return _around(np.array(getattr(shape, method)()))
    raise ModelError(
        f"collision geometry '{name}' is a {kind}; expected a box, cylinder, sphere, capsule or mesh: replace it in "
        "the URDF"
    )


def _between(rings: np.ndarray) -> np.ndarray:
    """Return triangles between rings (R, F, 3) of vertices, from the lowest to the highest, and on both ends."""
    low, high = rings[:-1], rings[1:]
    low_next, high_next = np.roll(low, -1, axis=1), np.roll(high, -1, axis=1)
    sides = np.stack([[low, low_next, high_next], [low, high_next, high]])  # (2, 3, R - 1, F, 3)
    bottom, top = rings[0][::-1], rings[-1]
    ends = [np.stack([np.broadcast_to(end[0], end[2:].shape), end[1:-1], end[2:]], axis=1) for end in (bottom, top)]
    return np.concatenate([np.moveaxis(sides, 1, 3).reshape(-1, 3, 3), *ends])


def _around(vertices: np.ndarray) -> np.ndarray:
    """Return the triangles of the convex hull of ``vertices`` (V, 3)."""
    from scipy.spatial import ConvexHull  # 0.1 s that only meshes need

    hull = ConvexHull(vertices)
    triangles = vertices[hull.simplices]  # (T, 3, 3)
    cross = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    inwards = np.einsum("ij,ij->i", cross, hull.equations[:, :3]) < 0.0
    triangles[inwards] = triangles[inwards, ::-1]
    return np.asarray(triangles)


@dataclass(frozen=True)
class _Described:
    """An arm as a key: arms of the same description are equal.

    Attributes:
        content: everything the arm is made from.
        arm: one of them.
    """

    content: bytes
    arm: Arm = field(compare=False)


def link_surface(arm: Arm, count: int) -> Surface:
    """Sample the surface of all moving links; once per process for arms of the same description.

    Links share the candidates by the square root of their area: the short links near the tool, where the joint torque
    determines a place best, get the denser ones.

    Args:
        arm: the robot.
        count: number of candidates, at least one per link.

    Raises:
        ConfigError: there are more links than candidates.
        ModelError: the description has no collision geometry, or it cannot be read.
    """
    content = pickle.dumps((arm.determinants, description_text(arm.settings), urdf_path(arm.settings)))
    return _sampled(_Described(content, arm), count)


@functools.lru_cache(maxsize=8)
def _sampled(described: _Described, count: int) -> Surface:
    """Return the surface of :func:`link_surface`."""
    arm = described.arm
    hulls = _hulls(arm)
    moving = [key for key in hulls if key[0] > 0]
    if not moving:
        raise ModelError(
            f"robot '{arm.name}': no moving link of {urdf_path(arm.settings)} has collision geometry; add <collision> "
            "elements, plain cylinders are enough"
        )
    if count < len(moving):
        raise ConfigError(
            f"robot '{arm.name}': {count} candidates were asked for, but {len(moving)} moving links have collision "
            f"geometry; give 'candidates' of at least {len(moving)}"
        )
    areas = {key: sum(h.areas.sum() for h in hulls[key]) for key in moving}
    shares = np.sqrt(list(areas.values()))
    counts = np.maximum(np.round(count * shares / shares.sum()).astype(int), 1)
    counts[-1] = max(counts[-1] + count - counts.sum(), 1)
    while counts.sum() > count:
        counts[np.argmax(counts)] -= 1
    names: list[str] = []
    parts: list[tuple[np.ndarray, ...]] = []
    for key, own in zip(moving, counts):
        dense = [hull.sample(_DENSE * own / areas[key]) for hull in hulls[key]]
        keep = [~_covered(arm, hulls, key, i, *sampled) for i, sampled in enumerate(dense)]
        points = np.vstack([p[k] for (p, _), k in zip(dense, keep)])
        normals = np.vstack([v[k] for (_, v), k in zip(dense, keep)])
        if not len(points):
            continue
        chosen, cell, squared = _farthest(points, own)
        size = np.bincount(cell, minlength=len(chosen))
        radius = np.sqrt(np.bincount(cell, squared, len(chosen)) / size)
        area = areas[key] / sum(map(len, keep)) * size  # all samples, also covered ones
        which = np.full((2, len(chosen)), [[len(names)], [key[0] - 1]])
        names.append(key[1])
        parts.append((*which, points[chosen], normals[chosen], area, radius))
    return Surface(tuple(names), *(np.concatenate(column) for column in zip(*parts)))


def _hulls(arm: Arm) -> dict[tuple[int, str], list[_Hull]]:
    """Return the shapes of every link, by Pinocchio's joint index and the link's name, base to tip."""
    path = urdf_path(arm.settings)
    try:
        text, kind = description_text(arm.settings), pin.GeometryType.COLLISION
        found = pin.buildGeomFromUrdfString(arm.model, text, kind, package_dirs=[str(path.parent)])
    except Exception as error:  # pinocchio raises ValueError or RuntimeError, by version
        raise ModelError(
            f"the collision geometry of {path} cannot be read ({error}); paths of meshes must lead from its folder, "
            "those with package:// from a package in AMENT_PREFIX_PATH or ROS_PACKAGE_PATH"
        ) from error
    hulls: dict[tuple[int, str], list[_Hull]] = {}
    for shape in sorted(found.geometryObjects, key=lambda shape: shape.parentJoint):
        key = (shape.parentJoint, arm.model.frames[shape.parentFrame].name)
        triangles = _triangles(shape.geometry, shape.name) @ shape.placement.rotation.T + shape.placement.translation
        hulls.setdefault(key, []).append(_Hull(triangles))
    return hulls


def _covered(
    arm: Arm,
    hulls: dict[tuple[int, str], list[_Hull]],
    key: tuple[int, str],
    own: int,
    points: np.ndarray,
    normals: np.ndarray,
) -> np.ndarray:
    """Tell which ``points`` (M, 3) of shape ``own`` of a link are inside its others, or always inside a neighbour.

    What is in front of them decides: faces of two links that lie in one plane do not cover each other.
    """
    covered = np.zeros(len(points), bool)
    for (joint, name), shapes in hulls.items():
        if joint == key[0]:
            others = [hull for i, hull in enumerate(shapes) if (name, i) != (key[1], own)]
            for front in (_OWN_SKIN, _SEAM):
                covered |= np.any([hull.holds(points + front * normals) for hull in others], axis=0)
        elif abs(joint - key[0]) == 1:
            always = np.flatnonzero(~covered)  # most points leave a neighbour in the first postures
            for pose in _postures(arm, joint, key[0]) if len(always) else ():
                turned = np.zeros(len(always), bool)
                for front in (_SKIN, _SEAM):
                    inside = (points + front * normals)[always] @ pose.rotation.T + pose.translation
                    turned |= np.any([hull.holds(inside) for hull in shapes], axis=0)
                always = always[turned]
            covered[always] = True
    return covered


def _postures(arm: Arm, joint: int, key: int) -> list[pin.SE3]:
    """Placements of joint ``key``'s frame in a neighbouring ``joint``'s, over the range between the two."""
    model, data, upper = arm.model, arm.model.createData(), max(joint, key)
    lowest, highest = float(arm.lower[upper - 1]), float(arm.upper[upper - 1])
    if upper - 1 in arm.unlimited:
        lowest, highest = -np.pi, np.pi
    poses = []
    for value in np.linspace(lowest, highest, _POSTURES):
        q = pin.neutral(model)
        q[upper - 1] = value
        pin.forwardKinematics(model, data, q)
        poses.append(data.oMi[joint].actInv(data.oMi[key]))
    return poses


def _farthest(points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose ``count`` of ``points`` (M, 3), each the one farthest from those before it.

    Returns:
        Their indices (count,); per point the nearest of them, as an index into these (M,), and its squared distance
        (M,).
    """
    count = min(count, len(points))
    chosen, nearest, squared = np.zeros(count, int), np.zeros(len(points), int), np.full(len(points), np.inf)
    for k in range(count):
        chosen[k] = np.argmax(squared) if k else np.argmax(points @ np.ones(3))
        apart = points - points[chosen[k]]
        distance = np.einsum("ij,ij->i", apart, apart)
        nearer = distance < squared
        nearest[nearer], squared[nearer] = k, distance[nearer]
    return chosen, nearest, squared
