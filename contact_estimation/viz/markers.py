"""Geometry of an estimate for a 3D view: force, contact point, covariances, surface, friction cone. No ROS.

Contact point, force and their covariances hang on the TCP frame, the surface and the place of an unknown contact on the
base frame, as they are estimated: no pose is needed to draw them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pinocchio as pin

from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.viz.meshes import align_z

Numbers: TypeAlias = tuple[float, ...]

_FORCE_COLOUR = (0.84, 0.37, 0.0)
_POINT_COLOUR = (0.0, 0.45, 0.70)
_SURFACE_COLOUR = (0.0, 0.62, 0.45)
_UNKNOWN_COLOUR = (0.80, 0.47, 0.65)
_COVARIANCE_ALPHA = 0.25
_POINT_DIAMETER, _REGION_DIAMETER = 0.02, 0.01  # [m]
#: Most probable points of a region that views of triangles draw.
REGION_POINTS = 50
_ARROW_SHAPE = (0.01, 0.022, 0.03)  # diameters of shaft and head, length of the head at most [m]
_HEAD_SHARE = 0.6  # of a short arrow's length
_CONE_HEIGHT = 0.08  # [m]
_DISC = (0.10, 0.10, 0.002)  # diameters [m] of the disc that touches the surface
#: Length of the stiffness axis per stiffness [m^2/N], and its bounds [m].
_STIFFNESS_SCALE, _STIFFNESS_LENGTH = 4e-6, (0.03, 0.25)
#: Semi-axes of the ellipsoids in standard deviations, and the length [m] beyond which one would hide the robot.
SIGMAS, MAX_SEMI_AXIS = 2.0, 0.5
_MIN_SEMI_AXIS = 1e-4  # [m]; a flat ellipsoid stays visible
#: What the colours mean: name and colour of each.
LEGEND = [
    ["estimated force", "#D65E00"],
    ["contact point", "#0073B3"],
    ["surface, stiffness axis", "#009E73"],
    ["unknown contact", "#CC78A6"],
    ["2 sigma: pale", "#f0c9a8"],
]


@dataclass(frozen=True)
class Shape:
    """One thing to draw.

    Attributes:
        name: identifies the shape from one estimate to the next.
        kind: "arrow" (from ``position`` to ``tip``), "ellipsoid" or "points".
        frame: of ``position``, ``tip`` and ``orientation``.
        visible: an invisible shape removes what was drawn under its name.
        position: (3,) [m] where the arrow begins, or centre of the ellipsoid.
        tip: (3,) [m] end of the arrow.
        orientation: quaternion x y z w of the ellipsoid's axes.
        size: diameters (3,) [m] of the ellipsoid along its axes, or of a point; of an arrow shaft and head, and length
            of the head.
        colour: red, green, blue and opacity, each 0 to 1.
        points: (k, 3) [m].
    """

    name: str
    kind: str
    frame: str
    visible: bool = True
    position: Numbers = (0.0, 0.0, 0.0)
    tip: Numbers = (0.0, 0.0, 0.0)
    orientation: Numbers = (0.0, 0.0, 0.0, 1.0)
    size: Numbers = (0.0, 0.0, 0.0)
    colour: Numbers = (0.0, 0.0, 0.0, 1.0)
    points: tuple[Numbers, ...] = ()

    def parts(self) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
        """Return the units it is made of, for views that draw triangles.

        Returns:
            Unit of :func:`contact_estimation.viz.meshes.units`, rotation (3, 3), position (3,) [m] and scale (3,).
        """
        position, size = np.array(self.position), np.array(self.size)
        if self.kind == "points":
            turn = np.eye(3)
            return [("sphere", turn, np.array(point), size) for point in self.points[:REGION_POINTS]]
        if self.kind != "arrow":
            return [("sphere", pin.Quaternion(np.array(self.orientation)).normalized().matrix(), position, size)]
        along = np.array(self.tip) - position
        length = float(np.linalg.norm(along))
        if length < 1e-6:
            return []
        turn, head = align_z(along), min(size[2], length)
        start = position + (1.0 - head / length) * along
        shaft = np.array([size[0], size[0], length - head])
        return [("shaft", turn, position, shaft), ("head", turn, start, np.array([size[1], size[1], head]))]


def estimate_shapes(
    estimate: Estimate, tcp_frame: str, base_frame: str, arrow_scale: float = 0.003, hide_below: float = 2.0
) -> list[Shape]:
    """Draw the force with the ellipsoid of its covariance at the tip, and each contact.

    A contact is its point with the ellipsoid of the covariance. Where it is closed, a disc shows the surface, an arrow
    into the environment the stiffness, and a cone the friction coefficient that is in use now.

    A force of an unknown contact has an arrow of its own instead, at the contact's point where one is told. The points
    where the contact may be are drawn on the links.

    Args:
        estimate: an invalid one shows nothing.
        tcp_frame: name of the TCP's frame.
        base_frame: name of the base frame.
        arrow_scale: length of the arrow per force [m/N].
        hide_below: a smaller force [N] shows no arrow.

    Returns:
        Shapes with the same names for every estimate of an observer.
    """
    known = [c for c in estimate.contacts if c.place is None]
    unknown = [c for c in estimate.contacts if c.place is not None]
    elsewhere = any(c.closed for c in unknown)
    start = known[0].point_tcp if known and not elsewhere else np.zeros(3)
    tip = start + arrow_scale * estimate.force_tcp
    pushes = estimate.valid and float(np.linalg.norm(estimate.force_tcp)) >= hide_below and _finite(start)
    translucent, force_covariance = (*_FORCE_COLOUR, _COVARIANCE_ALPHA), arrow_scale**2 * estimate.force_covariance
    seen = pushes and not elsewhere
    shapes = [
        arrow("force", tcp_frame, start, tip, (*_FORCE_COLOUR, 1.0), seen),
        ellipsoid("force/covariance", tcp_frame, tip, force_covariance, translucent, seen),
    ]
    for contact in unknown:
        shapes += _on_link(contact, base_frame, arrow_scale, estimate.valid)
        there = estimate.valid and contact.closed and not _finite(contact.point_base)
        shapes.append(arrow("unknown/wrench", tcp_frame, start, tip, (*_UNKNOWN_COLOUR, 1.0), pushes and there))
    for contact in known:
        point, name = contact.point_tcp, f"contact/{contact.name}"
        opacity = 0.3 + 0.7 * float(np.clip(np.nan_to_num(contact.probability, nan=1.0), 0.0, 1.0))
        translucent, covariance = (*_POINT_COLOUR, _COVARIANCE_ALPHA), contact.covariance[6:, 6:]
        shapes += [
            dot(name, tcp_frame, point, _POINT_DIAMETER, (*_POINT_COLOUR, opacity), estimate.valid),
            ellipsoid(f"{name}/covariance", tcp_frame, point, covariance, translucent, estimate.valid),
            *_closed_shapes(contact, base_frame, estimate.valid and contact.closed),
        ]
    return shapes


def _closed_shapes(contact: ContactState, frame: str, closed: bool) -> list[Shape]:
    """Draw what is known of the environment at a closed contact, base frame.

    A disc touches it, the stiffness axis points into it, and the friction cone stands on it.
    """
    stiffness, start = float(np.linalg.norm(contact.stiffness)), contact.point_base
    known = closed and _finite(contact.stiffness, start) and stiffness > 0.0
    normal = contact.stiffness / stiffness if known else np.array([0.0, 0.0, 1.0])
    name = f"contact/{contact.name}"
    length = float(np.clip(_STIFFNESS_SCALE * stiffness, *_STIFFNESS_LENGTH)) if known else 0.0
    axis = arrow(f"{name}/stiffness", frame, start, start - length * normal, (*_SURFACE_COLOUR, 1.0), known)
    slopes = [value for key, value in contact.law_parameters.items() if key.startswith("friction")]
    slope = float(np.linalg.norm(slopes)) if slopes else 0.0
    # A cone is an arrow that is all head, its tip at the contact: RViz has no other marker for it.
    top, size = start + _CONE_HEIGHT * normal, (1e-4, 2.0 * slope * _CONE_HEIGHT, _CONE_HEIGHT)
    pale = (*_SURFACE_COLOUR, _COVARIANCE_ALPHA)
    cone = arrow(f"{name}/friction_cone", frame, top, start, pale, known and slope > 0.0, size)
    if not known:
        return [Shape(f"{name}/surface", "ellipsoid", frame, False), axis, cone]
    turn, colour = _plain(pin.Quaternion(align_z(normal)).coeffs()), (*_SURFACE_COLOUR, 0.6)
    disc = Shape(f"{name}/surface", "ellipsoid", frame, True, _plain(start), (0.0,) * 3, turn, _DISC, colour)
    return [disc, axis, cone]


def _on_link(contact: ContactState, base_frame: str, arrow_scale: float, valid: bool) -> list[Shape]:
    """Draw where on the links an unknown contact is, and its force where that is a point."""
    assert contact.place is not None
    place, start, colour = contact.place, contact.point_base, (*_UNKNOWN_COLOUR, 1.0)
    translucent = (*_UNKNOWN_COLOUR, _COVARIANCE_ALPHA)
    shown = valid and len(place.region) > 0
    region = tuple(_plain(point) for point in place.region) if shown else ()
    return [
        arrow("unknown/force", base_frame, start, start + arrow_scale * place.force, colour, valid),
        dot("unknown/point", base_frame, start, _POINT_DIAMETER, colour, valid),
        ellipsoid("unknown/covariance", base_frame, start, place.covariance, translucent, valid),
        Shape(
            "unknown/region", "points", base_frame, shown, points=region, size=(_REGION_DIAMETER,) * 3, colour=colour
        ),
    ]


def arrow(
    name: str,
    frame: str,
    start: np.ndarray,
    tip: np.ndarray,
    colour: Numbers,
    visible: bool = True,
    size: Numbers | None = None,
) -> Shape:
    """Draw an arrow from ``start`` (3,) [m] to ``tip`` (3,) [m]; nothing where they are not finite.

    ``size`` holds the diameters of shaft and head, and the length of the head [m].
    """
    if not (visible and _finite(start, tip)):
        return Shape(name, "arrow", frame, False)
    if size is None:
        shaft, width, head = _ARROW_SHAPE
        size = shaft, width, min(head, _HEAD_SHARE * float(np.linalg.norm(np.subtract(tip, start))))
    return Shape(name, "arrow", frame, True, _plain(start), _plain(tip), size=size, colour=colour)


def dot(name: str, frame: str, centre: np.ndarray, diameter: float, colour: Numbers, visible: bool = True) -> Shape:
    """Draw a sphere of ``diameter`` [m] about ``centre`` (3,) [m]; nothing where it is not finite."""
    if not (visible and _finite(centre)):
        return Shape(name, "ellipsoid", frame, False)
    return Shape(name, "ellipsoid", frame, True, _plain(centre), size=(diameter,) * 3, colour=colour)


def ellipsoid(
    name: str, frame: str, centre: np.ndarray, covariance: np.ndarray, colour: Numbers, visible: bool = True
) -> Shape:
    """Draw the ellipsoid of ``SIGMAS`` standard deviations of ``covariance`` (3, 3) [m^2] about ``centre`` (3,) [m].

    A direction without variance becomes flat; a covariance without any (nothing is estimated), or with values that are
    not finite, shows nothing.
    """
    covariance = np.asarray(covariance, float)
    if not (visible and _finite(covariance, centre) and covariance.any()):
        return Shape(name, "ellipsoid", frame, False)
    variances, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]  # a rotation, not a reflection
    semi = np.clip(SIGMAS * np.sqrt(np.maximum(variances, 0.0)), _MIN_SEMI_AXIS, MAX_SEMI_AXIS)
    quaternion = _plain(pin.Quaternion(axes).coeffs())
    return Shape(name, "ellipsoid", frame, True, _plain(centre), (0.0,) * 3, quaternion, _plain(2.0 * semi), colour)


def _finite(*arrays: np.ndarray) -> bool:
    return all(bool(np.isfinite(array).all()) for array in arrays)


def _plain(values: Iterable[float]) -> Numbers:
    return tuple(float(value) for value in values)
