"""The filmstrip: projections of the scene at several times, with the contact force; it needs no GPU."""

from __future__ import annotations

import mujoco
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon
from scipy.spatial import ConvexHull, QhullError

from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.viz.style import COLOURS, figure

_ROUND = (mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_ELLIPSOID)


def moments(force: Array, count: int) -> Indices:
    """Choose indices (count,) that spread over the time where something touches, with one before the first contact."""
    touching = np.flatnonzero(np.linalg.norm(force, axis=1) > 1e-6)
    if len(touching) < count:
        return np.linspace(0, len(force) - 1, count).astype(int)
    return np.concatenate(
        [[max(touching[0] - 50, 0)], touching[np.linspace(0, len(touching) - 1, count - 1).astype(int)]]
    )


def draw_filmstrip(model: mujoco.MjModel, t: Array, q: Array, force: Array, body: str, count: int = 6) -> Figure:
    """Draw two rows of frames: seen from the side (x, z) and from above (x, y).

    Args:
        model: compiled scene.
        t: times (n,) [s].
        q: positions (n, nq).
        force: (n, 3) [N] on ``body``, world axes, drawn as an arrow there.
        body: that carries the arrow.
        count: frames.
    """
    chosen = moments(force, count)
    data = mujoco.MjData(model)
    fig, axes = figure(2, count, width=2.0 * count, height=1.35, sharex="row", sharey="row")
    tallest = max(np.linalg.norm(force, axis=1).max(), 1e-9)
    extent = _extent(model, data, q[chosen])
    for row, (plane, names) in enumerate((((0, 2), "xz"), ((0, 1), "xy"))):
        for column, k in enumerate(chosen):
            axis = axes[row, column]
            data.qpos[:] = q[k]
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_tendon(model, data)
            _draw(axis, model, data, plane)
            centre = data.body(body).xpos[list(plane)]
            arrow = force[k][list(plane)] / tallest * 0.35 * np.ptp(extent[list(plane)], axis=1).max()
            if np.linalg.norm(arrow) > 1e-6:
                axis.annotate(
                    "", centre + arrow, centre, arrowprops={"arrowstyle": "-|>", "color": COLOURS[2], "lw": 1.6}
                )
            axis.set_xlim(extent[plane[0]])
            axis.set_ylim(extent[plane[1]])
            axis.set_aspect("equal", adjustable="box")
            axis.set_xticks([])
            axis.set_yticks([])
            axis.grid(False)
            if row == 0:
                axis.set_title(f"{t[k]:.2f} s, {np.linalg.norm(force[k]):.2f} N", fontsize=8)
            if column == 0:
                axis.set_ylabel(f"{names[1]} over {names[0]}")
    return fig


def _extent(model: mujoco.MjModel, data: mujoco.MjData, poses: Array) -> Array:
    """Limits (3, 2) [m] that hold every moving body in all poses."""
    places = []
    for q in poses:
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        places.append(data.xpos[1:].copy())
    points: Array = np.concatenate(places)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.12 * max((high - low).max(), 0.1) + 0.03
    return np.column_stack([low - margin, high + margin])


def _draw(axis: Axes, model: mujoco.MjModel, data: mujoco.MjData, plane: tuple[int, int]) -> None:
    pick = list(plane)
    parents = data.xpos[model.body_parentid]
    for k in range(2, model.nbody):
        if model.body_parentid[k]:
            line = np.stack([parents[k][pick], data.xpos[k][pick]])
            axis.plot(*line.T, color="0.6", lw=2.5, solid_capstyle="round", zorder=1)
    for k in range(model.ngeom):
        kind, size, centre = model.geom_type[k], model.geom_size[k], data.geom_xpos[k]
        if kind == mujoco.mjtGeom.mjGEOM_MESH or kind == mujoco.mjtGeom.mjGEOM_PLANE:
            continue
        colour = COLOURS[1 + model.geom_bodyid[k] % 6]
        if kind in _ROUND:
            axis.add_patch(Circle(centre[pick], size[0], facecolor=colour, edgecolor="none", alpha=0.8, zorder=3))
            continue
        outline = (_rims(kind, size) @ data.geom_xmat[k].reshape(3, 3).T + centre)[:, pick]
        axis.add_patch(Polygon(_hull(outline), facecolor=colour, edgecolor="none", alpha=0.35, zorder=2))
    for k in range(model.nsite):
        axis.plot(*data.site_xpos[k][pick], ".", color="0.2", ms=2, zorder=4)
    for k in range(model.ntendon):
        first = data.ten_wrapadr[k]
        path = data.wrap_xpos.reshape(-1, 3)[first : first + data.ten_wrapnum[k]]
        axis.plot(*path[:, pick].T, color="0.2", lw=0.8, zorder=2)


def _rims(kind: int, size: Array) -> Array:
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return np.asarray(size * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]))
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    rim = np.column_stack([size[0] * np.cos(angle), size[0] * np.sin(angle), np.zeros(24)])
    return np.concatenate([rim + np.array([0, 0, size[1]]), rim - np.array([0, 0, size[1]])])


def _hull(points: Array) -> Array:
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:  # edge-on: a line
        return points
