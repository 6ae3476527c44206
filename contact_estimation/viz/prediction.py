"""Geometry of an MPC's plan for a 3D view: predicted path, force at its end, equilibrium. Plain data, no ROS."""

from __future__ import annotations

import numpy as np

from contact_estimation.viz.markers import Shape, arrow, dot

_PATH_COLOUR = (0.0, 0.62, 0.45)
_FORCE_COLOUR = (0.90, 0.62, 0.0, 1.0)
_EQUILIBRIUM_COLOUR = (0.80, 0.47, 0.65, 1.0)
_DOT, _EQUILIBRIUM_DOT = 0.006, 0.015  # diameters [m]
_FADED = 0.3  # opacity of the path's last dot


def prediction_shapes(
    positions: np.ndarray | None,
    forces: np.ndarray | None,
    horizon: int,
    equilibrium: np.ndarray,
    frame: str,
    arrow_scale: float = 0.003,
) -> list[Shape]:
    """Draw a plan: dots along its path, an arrow of its last force, a dot at the equilibrium.

    Args:
        positions: (H + 1, 3) [m] of the TCP; None without a plan.
        forces: (H + 1, 3) [N] on the robot; None without a plan.
        horizon: H, how many steps a plan has.
        equilibrium: (3,) [m] of the impedance controller.
        frame: of all of these.
        arrow_scale: length of the arrow per force [m/N].

    Returns:
        Shapes with the same names with a plan and without one.
    """
    path = np.full((horizon + 1, 3), np.nan) if positions is None else positions
    tip = path[-1] + arrow_scale * (np.full(3, np.nan) if forces is None else forces[-1])
    opacities = np.linspace(1.0, _FADED, horizon + 1)
    return [
        dot("mpc/equilibrium", frame, equilibrium, _EQUILIBRIUM_DOT, _EQUILIBRIUM_COLOUR),
        *(
            dot(f"mpc/path/{k}", frame, path[k], _DOT, (*_PATH_COLOUR, float(opacity)))
            for k, opacity in enumerate(opacities)
        ),
        arrow("mpc/force", frame, path[-1], tip, _FORCE_COLOUR),
    ]
