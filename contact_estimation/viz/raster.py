"""Pictures of a scene, drawn in numpy: no display, no graphics library.

A z-buffer with Gouraud shading: every triangle fills the pixels of its bounding box that it covers. Hidden shapes of an
estimate stay visible.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from contact_estimation.viz.markers import Shape
from contact_estimation.viz.meshes import Mesh, units

_LIGHT = np.array([0.35, -0.5, 0.8]) / np.linalg.norm([0.35, -0.5, 0.8])
#: Shares of light from everywhere, from the lamp and from beside the eye.
_AMBIENT, _LAMP, _HEADLIGHT = 0.38, 0.42, 0.32
_SKY_TOP, _SKY_BOTTOM = np.array([0.93, 0.95, 0.98]), np.array([1.0, 1.0, 1.0])
_FLOOR, _SHADOW = (0.90, 0.91, 0.92), (0.80, 0.81, 0.83)
#: Share of a hidden shape that is still seen.
_SHINE = 0.6
#: Pixels are averaged from this many in each direction.
_OVERSAMPLING = 2
_NEAR = 0.02  # [m]


class Camera(NamedTuple):
    """Where a picture is taken from.

    Attributes:
        target: (3,) [m] in the middle of the picture.
        distance: of the eye from it [m].
        azimuth: direction of the eye from it, about z [rad].
        elevation: direction of the eye from it, above the horizontal [rad].
        field: vertical field of view [rad].
    """

    target: np.ndarray
    distance: float
    azimuth: float
    elevation: float
    field: float = 0.7

    def axes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the eye (3,) [m] and the axes (3, 3) right, up and back as rows."""
        back = np.array(
            [
                np.cos(self.elevation) * np.cos(self.azimuth),
                np.cos(self.elevation) * np.sin(self.azimuth),
                np.sin(self.elevation),
            ]
        )
        right = np.array([-np.sin(self.azimuth), np.cos(self.azimuth), 0.0])
        return self.target + self.distance * back, np.array([right, np.cross(back, right), back])


def picture(
    solids: Iterable[Mesh], shapes: Iterable[Mesh], camera: Camera, width: int, height: int, floor: float = 0.0
) -> np.ndarray:
    """Draw a scene.

    Args:
        solids: meshes in the base frame.
        shapes: meshes in the base frame that are seen through the solids.
        camera: where from.
        width: of the picture [pixels].
        height: of the picture [pixels].
        floor: height [m] of the floor; shadows of the solids lie on it.

    Returns:
        (height, width, 3) uint8.
    """
    w, h = width * _OVERSAMPLING, height * _OVERSAMPLING
    solids = list(solids)
    canvas = _Canvas(camera, w, h)
    canvas.draw(_floor_mesh(floor), lit=False)
    for mesh in solids:
        canvas.draw(_shadow(mesh, floor), lit=False)
    for mesh in solids:
        canvas.draw(mesh)
    top = _Canvas(camera, w, h)
    for mesh in shapes:
        top.draw(mesh)
    drawn = np.isfinite(top.depth)
    share = np.where(top.depth <= canvas.depth + 1e-4, 1.0, _SHINE)[..., None] * drawn[..., None]
    image = (1.0 - share) * canvas.colour + share * top.colour
    image = image.reshape(height, _OVERSAMPLING, width, _OVERSAMPLING, 3).mean(axis=(1, 3))
    return np.asarray(np.round(255.0 * np.clip(image, 0.0, 1.0)), np.uint8)


def shape_meshes(
    shapes: Iterable[Shape], frames: dict[str, tuple[np.ndarray, np.ndarray]], opacity: float = 0.5
) -> list[Mesh]:
    """Turn the visible shapes of an estimate into meshes in the base frame.

    Args:
        shapes: of :mod:`contact_estimation.viz.markers`.
        frames: name -> rotation (3, 3) and position (3,) [m] in the base frame.
        opacity: a fainter shape, such as a covariance, is left out: meshes are opaque.
    """
    meshes = []
    for shape in shapes:
        if not shape.visible or shape.colour[3] < opacity:
            continue
        rotation, position = frames[shape.frame]
        for unit, turn, place, scale in shape.parts():
            mesh = units()[unit]
            vertices, normals = mesh.vertices * scale, mesh.normals / scale
            normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
            placed = mesh._replace(vertices=vertices, normals=normals)
            meshes.append(placed.moved(0, rotation @ turn, rotation @ place + position, shape.colour[:3]))
    return meshes


class _Canvas:
    """Colour (h, w, 3) and depth (h, w) [m] of what was drawn so far."""

    def __init__(self, camera: Camera, width: int, height: int) -> None:
        self._eye, self._axes = camera.axes()
        self._scale = 0.5 * height / np.tan(0.5 * camera.field)
        shade = np.linspace(0.0, 1.0, height)[:, None, None]
        self.colour = np.broadcast_to((1 - shade) * _SKY_TOP + shade * _SKY_BOTTOM, (height, width, 3)).copy()
        self.depth = np.full((height, width), np.inf)

    def draw(self, mesh: Mesh, lit: bool = True) -> None:
        """Draw the side of a mesh that faces the eye."""
        seen = (mesh.vertices - self._eye) @ self._axes.T
        away = -seen[:, 2]
        height, width = self.depth.shape
        with np.errstate(divide="ignore", invalid="ignore"):
            x = 0.5 * width + self._scale * seen[:, 0] / away
            y = 0.5 * height - self._scale * seen[:, 1] / away
        colours = self._shaded(mesh) if lit else np.broadcast_to(np.array(mesh.colour), mesh.vertices.shape)
        corners = mesh.triangles[(away[mesh.triangles] > _NEAR).all(axis=1)]
        self._fill(x[corners], y[corners], away[corners], colours[corners])

    def _shaded(self, mesh: Mesh) -> np.ndarray:
        """Return the colour (V, 3) of every vertex: ambient and diffuse light, and a highlight."""
        view = self._eye - mesh.vertices
        view /= np.linalg.norm(view, axis=1, keepdims=True)
        half = view + _LIGHT
        half /= np.linalg.norm(half, axis=1, keepdims=True)
        lamp, eye, glance = (
            np.clip(np.einsum("ij,ij->i", mesh.normals, np.broadcast_to(d, view.shape)), 0.0, 1.0)
            for d in (_LIGHT, view, half)
        )
        shade, shine = _AMBIENT + _LAMP * lamp + _HEADLIGHT * eye, 0.22 * glance**40
        return np.array(shade[:, None] * np.array(mesh.colour) + shine[:, None])

    def _fill(self, x: np.ndarray, y: np.ndarray, away: np.ndarray, colours: np.ndarray) -> None:
        """Fill triangles: corners ``x``, ``y`` [pixels] and distance ``away`` [m] (T, 3), ``colours`` (T, 3, 3)."""
        height, width = self.depth.shape
        left, right = np.clip(np.ceil(x.min(axis=1)), 0, width), np.clip(np.floor(x.max(axis=1)) + 1, 0, width)
        top, bottom = np.clip(np.ceil(y.min(axis=1)), 0, height), np.clip(np.floor(y.max(axis=1)) + 1, 0, height)
        area = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (x[:, 2] - x[:, 0]) * (y[:, 1] - y[:, 0])
        # A negative area faces the eye: y points down.
        seen = np.flatnonzero((area < -1e-9) & (right > left) & (bottom > top))
        across = (right - left).astype(int)[seen]
        count = across * (bottom - top).astype(int)[seen]
        which = np.repeat(seen, count)
        place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        row, column = np.divmod(place, np.repeat(across, count))
        row, column = row + top[which].astype(int), column + left[which].astype(int)
        weights = np.empty((len(which), 3))
        for k in range(3):  # barycentric, over the depth: 1 / depth is linear in the picture
            b, c = (k + 1) % 3, (k + 2) % 3
            slope_x, slope_y = (y[:, b] - y[:, c]) / (area * away[:, k]), (x[:, c] - x[:, b]) / (area * away[:, k])
            offset = -slope_x * x[:, b] - slope_y * y[:, b]
            weights[:, k] = slope_x[which] * column + slope_y[which] * row + offset[which]
        inside = (weights >= 0.0).all(axis=1)
        weights, which, pixel = weights[inside], which[inside], (row * width + column)[inside]
        total = weights.sum(axis=1)
        depth, known = 1.0 / total, self.depth.reshape(-1)
        order = np.argsort(-depth)
        order = order[depth[order] < known[pixel[order]]]  # the last one written to a pixel is the nearest
        known[pixel[order]] = depth[order]
        share = weights[order] / total[order, None]
        self.colour.reshape(-1, 3)[pixel[order]] = np.einsum("pk,pkc->pc", share, colours[which[order]])


def _floor_mesh(height: float) -> Mesh:
    """Return the floor, in tiles so that none of them reaches behind the eye."""
    grid = np.linspace(-1.5, 1.5, 13)
    x, y = np.meshgrid(grid, grid, indexing="ij")
    vertices = np.column_stack([x.ravel(), y.ravel(), np.full(x.size, height)])
    i = (np.arange(12)[:, None] * 13 + np.arange(12)).ravel()
    triangles = np.concatenate([np.column_stack([i, i + 13, i + 14]), np.column_stack([i, i + 14, i + 1])])
    return Mesh(0, vertices, np.tile([0.0, 0.0, 1.0], (len(vertices), 1)), triangles, _FLOOR)


def _shadow(mesh: Mesh, floor: float) -> Mesh:
    """Return the shadow of a mesh on the floor."""
    vertices = mesh.vertices - (mesh.vertices[:, 2:] - floor) / _LIGHT[2] * _LIGHT
    vertices[:, 2] = floor + 1e-3
    return mesh._replace(vertices=vertices, colour=_SHADOW)
