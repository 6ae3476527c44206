"""Geometry of an estimate for a 3D view: force arrow, contact point, covariance ellipsoids. Plain data, no ROS.

Everything hangs on the TCP frame, where contact point, force and their covariances are given: no pose is needed to
draw it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.spatial.transform import Rotation

from contact_estimation.filters.observer import Estimate

Numbers: TypeAlias = tuple[float, ...]

_FORCE_COLOUR = (0.84, 0.37, 0.0)
_POINT_COLOUR = (0.0, 0.45, 0.70)
_COVARIANCE_ALPHA = 0.25
_POINT_DIAMETER = 0.02  # [m]
_ARROW_SHAPE = (0.01, 0.02, 0.03)  # diameters of shaft and head, length of the head at most [m]
#: Semi-axes of the ellipsoids in standard deviations, and the length [m] beyond which one would hide the robot.
SIGMAS, MAX_SEMI_AXIS = 2.0, 0.5
_MIN_SEMI_AXIS = 1e-4  # [m]; a flat ellipsoid stays visible


@dataclass(frozen=True)
class Shape:
    """One thing to draw.

    Attributes:
        name: identifies the shape from one estimate to the next.
        kind: "arrow" (from ``position`` to ``tip``) or "ellipsoid".
        frame: of ``position``, ``tip`` and ``orientation``.
        visible: an invisible shape removes what was drawn under its name.
        position: (3,) [m] where the arrow begins, or centre of the ellipsoid.
        tip: (3,) [m] end of the arrow.
        orientation: quaternion x y z w of the ellipsoid's axes.
        size: diameters (3,) [m] of the ellipsoid along its axes; of an arrow shaft and head, and length of the head.
        colour: red, green, blue and opacity, each 0 to 1.
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


def estimate_shapes(
    estimate: Estimate, tcp_frame: str, arrow_scale: float = 0.003, hide_below: float = 2.0
) -> list[Shape]:
    """Draw the force with the ellipsoid of its covariance at the tip, and each contact point with its own.

    Args:
        estimate: an invalid one shows nothing.
        tcp_frame: name of the TCP's frame.
        arrow_scale: length of the arrow per force [m/N].
        hide_below: a smaller force [N] shows no arrow.

    Returns:
        Shapes with the same names for every estimate of an observer.
    """
    start = estimate.contacts[0].point_tcp if estimate.contacts else np.zeros(3)
    tip = start + arrow_scale * estimate.force_tcp
    pushes = estimate.valid and float(np.linalg.norm(estimate.force_tcp)) >= hide_below and _finite(start)
    translucent, force_covariance = (*_FORCE_COLOUR, _COVARIANCE_ALPHA), arrow_scale**2 * estimate.force_covariance
    shapes = [
        arrow("force", tcp_frame, start, tip, (*_FORCE_COLOUR, 1.0), pushes),
        ellipsoid("force/covariance", tcp_frame, tip, force_covariance, translucent, pushes),
    ]
    for contact in estimate.contacts:
        point, name = contact.point_tcp, f"contact/{contact.name}"
        opacity = 0.3 + 0.7 * float(np.clip(np.nan_to_num(contact.probability, nan=1.0), 0.0, 1.0))
        translucent, covariance = (*_POINT_COLOUR, _COVARIANCE_ALPHA), contact.covariance[6:, 6:]
        shapes += [
            dot(name, tcp_frame, point, _POINT_DIAMETER, (*_POINT_COLOUR, opacity), estimate.valid),
            ellipsoid(f"{name}/covariance", tcp_frame, point, covariance, translucent, estimate.valid),
        ]
    return shapes


def arrow(name: str, frame: str, start: np.ndarray, tip: np.ndarray, colour: Numbers, visible: bool = True) -> Shape:
    """Draw an arrow from ``start`` (3,) [m] to ``tip`` (3,) [m]; nothing where they are not finite."""
    if not (visible and _finite(start, tip)):
        return Shape(name, "arrow", frame, False)
    return Shape(name, "arrow", frame, True, _plain(start), _plain(tip), size=_ARROW_SHAPE, colour=colour)


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
    quaternion = _plain(Rotation.from_matrix(axes).as_quat())
    return Shape(name, "ellipsoid", frame, True, _plain(centre), (0.0,) * 3, quaternion, _plain(2.0 * semi), colour)


def _finite(*arrays: np.ndarray) -> bool:
    return all(bool(np.isfinite(array).all()) for array in arrays)


def _plain(values: Iterable[float]) -> Numbers:
    return tuple(float(value) for value in values)
