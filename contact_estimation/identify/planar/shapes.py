"""Planar bodies on flat ground: distance to contact and contact Jacobians (paper 5, eq. 9-11, 28-31).

Configuration q = (x, y, theta): centre of mass [m] in a frame whose x axis lies in the ground and whose y axis points
out of it, and the orientation [rad], counter-clockwise from x to y. A contact at offset r = (r_x, r_y) from the
centre of mass has

    phi = y + r_y,    J_n = (0, 1, r_x),    J_t = (1, 0, -r_y)    (distance; velocity of the body's material point).

The paper's J_x (eq. 10) also carries the motion of the contact point along the boundary (d beta / d theta). Friction
does no work at that velocity, so it is left out here. For polygons both agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.exceptions import ConfigError
from contact_estimation.identify.arrays import Array, Indices

SMALLEST_GYRATION = 0.25  # smallest radius of gyration sqrt(I/m) searched, of the outline's radius


class Shape(Protocol):
    """A rigid outline that can touch the ground at some places."""

    @property
    def n_contacts(self) -> int:
        """Number of places that can touch."""

    @property
    def radius(self) -> float:
        """Largest distance [m] of the outline from the centre of mass."""

    def levers(self, theta: ArrayLike) -> Array:
        """Contact offsets r (..., n_contacts, 2) [m] from the centre of mass, world axes, at ``theta`` (...) [rad]."""

    def lever(self, theta: float, contact: int) -> tuple[float, float, float, float]:
        """One offset and its derivative, (r_x, r_y, dr_x/dtheta, dr_y/dtheta), without arrays."""

    def levers_at(self, theta: Array, contacts: Indices) -> tuple[Array, Array, Array, Array]:
        """Return the same four (..., J) of J ``contacts``, each at its own ``theta`` (..., J) [rad]."""


@dataclass(frozen=True)
class Polygon:
    """Corners that may each touch (eq. 28).

    Raises:
        ConfigError: ``corners`` is not an (n, 2) array of finite numbers.
    """

    corners: Array  # (n, 2) [m], body axes about the centre of mass

    def __post_init__(self) -> None:
        corners = np.asarray(self.corners, float)
        if corners.ndim != 2 or corners.shape[1] != 2 or not np.isfinite(corners).all():
            raise ConfigError(f"Polygon: corners must be finite with shape (n, 2), got shape {corners.shape}")
        object.__setattr__(self, "corners", corners)

    @property
    def n_contacts(self) -> int:
        """Number of corners."""
        return len(self.corners)

    @property
    def radius(self) -> float:
        """Distance [m] of the farthest corner."""
        return float(np.hypot(*self.corners.T).max())

    def levers(self, theta: ArrayLike) -> Array:
        """See :class:`Shape`."""
        c, s = np.asarray(np.cos(theta))[..., None], np.asarray(np.sin(theta))[..., None]
        x, y = self.corners.T
        return np.stack([c * x - s * y, s * x + c * y], axis=-1)

    def lever(self, theta: float, contact: int) -> tuple[float, float, float, float]:
        """See :class:`Shape`."""
        c, s = math.cos(theta), math.sin(theta)
        x, y = self.corners[contact].tolist()
        rx, ry = c * x - s * y, s * x + c * y
        return rx, ry, -ry, rx

    def levers_at(self, theta: Array, contacts: Indices) -> tuple[Array, Array, Array, Array]:
        """See :class:`Shape`."""
        c, s, (x, y) = np.cos(theta), np.sin(theta), self.corners[contacts].T
        rx, ry = c * x - s * y, s * x + c * y
        return rx, ry, -ry, rx


def square(side: float) -> Polygon:
    """Square of ``side`` [m]; a homogeneous one has m/I = 6 / side^2."""
    half = _positive("square", "side", side) / 2.0
    return Polygon(half * np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]))


def rimless_wheel(spokes: int, length: float) -> Polygon:
    """Wheel of massless spokes of ``length`` [m] (figure 6): only the tips touch."""
    if int(spokes) != spokes or spokes < 3:
        raise ConfigError(f"rimless_wheel: spokes is {spokes!r}, expected a whole number of at least 3")
    angle = 2.0 * np.pi * np.arange(int(spokes)) / spokes
    return Polygon(_positive("rimless_wheel", "length", length) * np.stack([np.cos(angle), np.sin(angle)], axis=1))


@dataclass(frozen=True)
class Ellipse:
    """Ellipse that touches at its lowest point; a homogeneous one has m/I = 4 / (a^2 + b^2).

    The lowest point lies D(theta) = sqrt(a^2 sin^2 + b^2 cos^2) below the centre, at r_x = -dD/dtheta.
    """

    a: float  # SEMI-axis along body x [m]
    b: float  # SEMI-axis along body y [m]

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            _positive("Ellipse", name, getattr(self, name))

    @property
    def n_contacts(self) -> int:
        """One."""
        return 1

    @property
    def radius(self) -> float:
        """Longer semi-axis [m]."""
        return float(max(self.a, self.b))

    def _depth(self, theta: ArrayLike) -> tuple[Array, Array, Array]:
        """D(theta) and its first two derivatives."""
        sine, cosine, gap = np.asarray(np.sin(theta)), np.asarray(np.cos(theta)), self.a**2 - self.b**2
        depth = np.sqrt(self.a**2 * sine**2 + self.b**2 * cosine**2)
        first = gap * sine * cosine / depth
        return depth, first, (gap * (cosine**2 - sine**2) - first**2) / depth

    def levers(self, theta: ArrayLike) -> Array:
        """See :class:`Shape`."""
        depth, first, _ = self._depth(theta)
        return np.stack([-first, -depth], axis=-1)[..., None, :]

    def lever(self, theta: float, contact: int = 0) -> tuple[float, float, float, float]:
        """See :class:`Shape`."""
        depth, first, second = map(float, self._depth(theta))
        return -first, -depth, -second, -first

    def levers_at(self, theta: Array, contacts: Indices) -> tuple[Array, Array, Array, Array]:
        """See :class:`Shape`."""
        depth, first, second = self._depth(theta)
        return -first, -depth, -second, -first


def contact_rows(shape: Shape, q: ArrayLike) -> tuple[Array, Array, Array]:
    """Return distance and Jacobian rows of every contact.

    Args:
        shape: outline.
        q: configurations (..., 3).

    Returns:
        phi (..., c) [m], normal rows J_n (..., c, 3) and tangent rows J_t (..., c, 3).
    """
    q = np.asarray(q, float)
    r = shape.levers(q[..., 2])
    normal, tangent = np.zeros((2, *r.shape[:-1], 3))
    normal[..., 1], normal[..., 2] = 1.0, r[..., 0]
    tangent[..., 0], tangent[..., 2] = 1.0, -r[..., 1]
    return q[..., 1, None] + r[..., 1], normal, tangent


def ratio_bounds(shape: Shape) -> tuple[float, float]:
    """Smallest and largest m/I [1/m^2] searched: all mass lies inside the outline, not all in its middle."""
    lower = 1.0 / shape.radius**2
    return lower, lower / SMALLEST_GYRATION**2


def gyration_radii(shape: Shape, count: int = 60) -> Array:
    """Return ``count`` even radii of gyration sqrt(I/m) [m] over the range searched."""
    return np.asarray(shape.radius * np.linspace(SMALLEST_GYRATION, 1.0, count))


def _positive(owner: str, name: str, value: float) -> float:
    if not (np.isfinite(value) and value > 0):
        raise ConfigError(f"{owner}: {name} is {value!r}, expected a length greater than 0 [m]")
    return float(value)
