"""Geometry of an estimate for a 3D view: force arrow, contact point, covariance ellipsoids. Plain data, no ROS.

Everything hangs on the TCP frame, where contact point, force and their covariances are given: no pose is needed to
draw it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from contact_estimation.filters.observer import Estimate

_FORCE_COLOUR = (0.84, 0.37, 0.0, 1.0)
_POINT_COLOUR = (0.0, 0.45, 0.70, 1.0)
_COVARIANCE_ALPHA = 0.25
_POINT_DIAMETER = 0.02
#: Shaft and head diameter, head length at most, of the arrow [m].
ARROW_SHAPE = (0.01, 0.02, 0.03)
#: Semi-axes of the ellipsoids in standard deviations, and the length [m] beyond which an ellipsoid would hide the
#: robot.
SIGMAS, MAX_SEMI_AXIS = 2.0, 0.5


@dataclass(frozen=True)
class Shape:
    """One thing to draw.

    ``kind`` is "arrow" (from ``position`` to ``tip``), or "ellipsoid" (a sphere scaled to the diameters ``size`` (3,)
    [m] along the axes of ``orientation``, quaternion x y z w). ``name`` identifies the shape from one estimate to the
    next; an invisible shape removes what was drawn under its name. ``position`` and ``tip`` (3,) [m] are in ``frame``.
    """

    name: str
    kind: str
    frame: str
    visible: bool = True
    position: tuple = (0.0, 0.0, 0.0)
    tip: tuple = (0.0, 0.0, 0.0)
    orientation: tuple = (0.0, 0.0, 0.0, 1.0)
    size: tuple = (0.0, 0.0, 0.0)
    colour: tuple = (0.0, 0.0, 0.0, 1.0)


def estimate_shapes(
    estimate: Estimate, tcp_frame: str, arrow_scale: float = 0.003, hide_below: float = 2.0
) -> list[Shape]:
    """Shapes of ``estimate``: the force arrow with the ellipsoid of its covariance at the tip, then per contact the
    point and the ellipsoid of its covariance.

    The list has the same names for every estimate of an observer. An invalid estimate shows nothing.

    Args:
        arrow_scale: length of the arrow per force [m/N].
        hide_below: a smaller force [N] shows no arrow.
    """
    origin = estimate.contacts[0].point_tcp if estimate.contacts else np.zeros(3)
    shapes = [*_force(estimate, origin, tcp_frame, arrow_scale, hide_below)]
    for contact in estimate.contacts:
        visible = estimate.valid and bool(np.isfinite(contact.point_tcp).all())
        name = f"contact/{contact.name}"
        shapes.append(
            Shape(
                name,
                "ellipsoid",
                tcp_frame,
                visible,
                _plain(contact.point_tcp),
                size=(_POINT_DIAMETER,) * 3,
                colour=(
                    *_POINT_COLOUR[:3],
                    0.3 + 0.7 * float(np.clip(np.nan_to_num(contact.probability, nan=1.0), 0.0, 1.0)),
                ),
            )
        )
        shapes.append(ellipsoid(f"{name}/covariance", tcp_frame, contact.point_tcp, contact.covariance[6:, 6:],
                                (*_POINT_COLOUR[:3], _COVARIANCE_ALPHA), visible))
    return shapes


def _force(estimate: Estimate, origin, frame, scale, hide_below):
    visible = estimate.valid and float(np.linalg.norm(estimate.force_tcp)) >= hide_below
    visible = visible and bool(np.isfinite(origin).all())
    tip = origin + scale * estimate.force_tcp
    yield Shape("force", "arrow", frame, visible, _plain(origin), _plain(tip), size=ARROW_SHAPE, colour=_FORCE_COLOUR)
    yield ellipsoid("force/covariance", frame, tip, scale**2 * estimate.force_covariance,
                    (*_FORCE_COLOUR[:3], _COVARIANCE_ALPHA), visible)


def ellipsoid(name: str, frame: str, centre, covariance: np.ndarray, colour: tuple, visible: bool = True) -> Shape:
    """Ellipsoid of ``SIGMAS`` standard deviations of ``covariance`` (3, 3) [m^2] about ``centre`` (3,) [m].

    A direction without variance becomes flat; a covariance without any (nothing is estimated), or with values that are
    not finite, shows nothing.
    """
    covariance = np.asarray(covariance, float)
    if not (visible and np.isfinite(covariance).all() and np.isfinite(centre).all() and covariance.any()):
        return Shape(name, "ellipsoid", frame, False)
    variances, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]  # a rotation, not a reflection
    semi = np.minimum(SIGMAS * np.sqrt(np.maximum(variances, 0.0)), MAX_SEMI_AXIS)
    return Shape(
        name,
        "ellipsoid",
        frame,
        True,
        _plain(centre),
        orientation=_plain(Rotation.from_matrix(axes).as_quat()),
        size=_plain(2.0 * np.maximum(semi, 1e-4)),
        colour=colour,
    )


def _plain(values) -> tuple:
    return tuple(float(value) for value in values)
