"""Planar bodies and where they touch flat ground: distance to contact and contact Jacobians (paper 5, eq. 9-11, 28-31).

Configuration q = (x, y, theta): centre of mass [m] in a frame whose x axis lies in the ground and whose y axis points
out of it, and the orientation [rad], counter-clockwise from x to y. A contact at offset r = (r_x, r_y) from the
centre of mass has the distance phi = y + r_y, the normal row J_n = (0, 1, r_x) and the tangent row J_t = (1, 0,
-r_y): the velocity of the body's material point. The paper's J_x (eq. 10) also carries the motion of the contact
point along the boundary (d beta / d theta); that is not a velocity at which friction does work, so it is left out
here. For polygons both agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from contact_estimation.exceptions import ConfigError


class Shape(Protocol):
    """A rigid outline that can touch the ground at ``n_contacts`` places."""

    n_contacts: int

    @property
    def radius(self) -> float:
        """Largest distance [m] of the outline from the centre of mass."""

    def levers(self, theta) -> np.ndarray:
        """Contact offsets r (..., n_contacts, 2) [m] from the centre of mass, world axes, at orientation ``theta``
        (...)."""

    def lever_rates(self, theta) -> np.ndarray:
        """Derivative (..., n_contacts, 2) of :meth:`levers` with respect to ``theta`` [m/rad]."""

    def lever(self, theta: float, contact: int) -> tuple[float, float, float, float]:
        """(r_x, r_y, dr_x/dtheta, dr_y/dtheta) of one contact at one angle: the scalar of the two above, without
        arrays."""


@dataclass(frozen=True)
class Polygon:
    """Corners (n, 2) [m] in body axes about the centre of mass; each corner may touch (eq. 28).

    Raises:
        ConfigError: ``corners`` is not an (n, 2) array of finite numbers.
    """

    corners: np.ndarray
    n_contacts: int = field(init=False)

    def __post_init__(self):
        corners = np.asarray(self.corners, float)
        if corners.ndim != 2 or corners.shape[1] != 2 or not np.isfinite(corners).all():
            raise ConfigError(f"Polygon: corners must be finite with shape (n, 2), got shape {corners.shape}")
        object.__setattr__(self, "corners", corners)
        object.__setattr__(self, "n_contacts", len(corners))

    @property
    def radius(self) -> float:
        """Distance [m] of the farthest corner."""
        return float(np.hypot(*self.corners.T).max())

    def levers(self, theta) -> np.ndarray:
        """See :class:`Shape`."""
        c, s = np.cos(theta)[..., None], np.sin(theta)[..., None]
        x, y = self.corners.T
        return np.stack([c * x - s * y, s * x + c * y], axis=-1)

    def lever_rates(self, theta) -> np.ndarray:
        """See :class:`Shape`."""
        r = self.levers(theta)
        return np.stack([-r[..., 1], r[..., 0]], axis=-1)

    def lever(self, theta: float, contact: int) -> tuple[float, float, float, float]:
        """See :class:`Shape`."""
        c, s = math.cos(theta), math.sin(theta)
        x, y = self.corners[contact].tolist()
        rx, ry = c * x - s * y, s * x + c * y
        return rx, ry, -ry, rx


def square(side: float) -> Polygon:
    """Square of ``side`` [m]; a homogeneous one has m/I = 6 / side^2."""
    half = _positive("square", "side", side) / 2.0
    return Polygon(half * np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]))


def rimless_wheel(spokes: int, length: float) -> Polygon:
    """Wheel of ``spokes`` massless spokes of ``length`` [m] (figure 6): only the tips touch."""
    if int(spokes) != spokes or spokes < 3:
        raise ConfigError(f"rimless_wheel: spokes is {spokes!r}, expected a whole number of at least 3")
    angle = 2.0 * np.pi * np.arange(int(spokes)) / spokes
    return Polygon(_positive("rimless_wheel", "length", length) * np.stack([np.cos(angle), np.sin(angle)], axis=1))


@dataclass(frozen=True)
class Ellipse:
    """Ellipse with SEMI-axes ``a`` along body x and ``b`` along body y [m]; homogeneous: m/I = 4 / (a^2 + b^2).

    The lowest point lies D(theta) = sqrt(a^2 sin^2 + b^2 cos^2) below the centre, at r_x = -dD/dtheta.
    """

    a: float
    b: float
    n_contacts: int = field(default=1, init=False)

    def __post_init__(self):
        _positive("Ellipse", "a", self.a)
        _positive("Ellipse", "b", self.b)

    @property
    def radius(self) -> float:
        """The larger semi-axis [m]."""
        return float(max(self.a, self.b))

    def _depth(self, theta):
        """D and its first two derivatives with respect to theta."""
        sine, cosine, gap = np.sin(theta), np.cos(theta), self.a**2 - self.b**2
        depth = np.sqrt(self.a**2 * sine**2 + self.b**2 * cosine**2)
        first = gap * sine * cosine / depth
        return depth, first, (gap * (cosine**2 - sine**2) - first**2) / depth

    def levers(self, theta) -> np.ndarray:
        """See :class:`Shape`."""
        depth, first, _ = self._depth(np.asarray(theta, float))
        return np.stack([-first, -depth], axis=-1)[..., None, :]

    def lever_rates(self, theta) -> np.ndarray:
        """See :class:`Shape`."""
        _, first, second = self._depth(np.asarray(theta, float))
        return np.stack([-second, -first], axis=-1)[..., None, :]

    def lever(self, theta: float, contact: int = 0) -> tuple[float, float, float, float]:
        """See :class:`Shape`."""
        depth, first, second = (float(x) for x in self._depth(theta))
        return -first, -depth, -second, -first


def contact_rows(shape: Shape, q) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distance phi (..., c) [m], normal rows J_n (..., c, 3) and tangent rows J_t (..., c, 3) at q (..., 3)."""
    q = np.asarray(q, float)
    r = shape.levers(q[..., 2])
    one, zero = np.ones(r.shape[:-1]), np.zeros(r.shape[:-1])
    normal, tangent = np.stack([zero, one, r[..., 0]], axis=-1), np.stack([one, zero, -r[..., 1]], axis=-1)
    return q[..., 1, None] + r[..., 1], normal, tangent


def lower_bound(shape: Shape) -> float:
    """Smallest m/I [1/m^2] any mass distribution inside the outline can have: I <= m radius^2."""
    return 1.0 / shape.radius**2


def _positive(owner: str, name: str, value) -> float:
    if not (np.isfinite(value) and value > 0):
        raise ConfigError(f"{owner}: {name} is {value!r}, expected a length greater than 0 [m]")
    return float(value)
