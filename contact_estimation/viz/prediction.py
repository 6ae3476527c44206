"""Geometry of an MPC's plan for a 3D view: predicted path, predicted force at its end, equilibrium. Plain data, no
ROS."""

from __future__ import annotations

import numpy as np

from contact_estimation.viz.markers import ARROW_SHAPE, Shape

_PATH_COLOUR = (0.0, 0.62, 0.45, 1.0)
_FORCE_COLOUR = (0.90, 0.62, 0.0, 1.0)
_EQUILIBRIUM_COLOUR = (0.80, 0.47, 0.65, 1.0)
_DOT, _EQUILIBRIUM_DOT = 0.006, 0.015


def prediction_shapes(
    positions: np.ndarray | None,
    forces: np.ndarray | None,
    horizon: int,
    equilibrium: np.ndarray,
    frame: str,
    arrow_scale: float = 0.003,
) -> list[Shape]:
    """Shapes of a plan: dots along ``positions`` (H + 1, 3) [m], an arrow of the last of ``forces`` (H + 1, 3) [N]
    times ``arrow_scale`` [m/N], a dot at ``equilibrium`` (3,) [m]; all in ``frame``.

    The list has the same names with a plan and without one (``positions`` None), where only the equilibrium is visible.
    """
    shapes = [
        Shape(
            "mpc/equilibrium",
            "ellipsoid",
            frame,
            bool(np.isfinite(equilibrium).all()),
            _plain(equilibrium),
            size=(_EQUILIBRIUM_DOT,) * 3,
            colour=_EQUILIBRIUM_COLOUR,
        )
    ]
    for k in range(horizon + 1):
        visible = positions is not None and bool(np.isfinite(positions[k]).all())
        place = _plain(positions[k]) if visible else (0.0, 0.0, 0.0)
        fade = (*_PATH_COLOUR[:3], 1.0 - 0.7 * k / max(horizon, 1))
        shapes.append(Shape(f"mpc/path/{k}", "ellipsoid", frame, visible, place, size=(_DOT,) * 3, colour=fade))
    visible = positions is not None and bool(np.isfinite(positions[-1]).all() and np.isfinite(forces[-1]).all())
    ends = (
        (_plain(positions[-1]), _plain(positions[-1] + arrow_scale * forces[-1]))
        if visible
        else ((0.0,) * 3, (0.0,) * 3)
    )
    shapes.append(Shape("mpc/force", "arrow", frame, visible, *ends, size=ARROW_SHAPE, colour=_FORCE_COLOUR))
    return shapes


def _plain(values) -> tuple:
    return tuple(float(value) for value in values)
