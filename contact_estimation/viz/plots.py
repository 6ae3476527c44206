"""Figures of replayed estimates.

Each takes ``logs``: observer -> columns of its :class:`~contact_estimation.io.export.EstimateLog`, and draws every
observer in the same colour everywhere; ``t0`` [s] is the stamp shown as zero. A figure that no observer has anything
for is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import chi2

from contact_estimation.filters.observer import CLOSED
from contact_estimation.viz.reference import Reference
from contact_estimation.viz.style import COLOURS, TRUTH, band, figure
from contact_estimation.viz.thinning import extremes

Columns: TypeAlias = dict[str, np.ndarray]
Logs: TypeAlias = dict[str, Columns]

_AXES = ("x", "y", "z")
#: Bands and curves are thinned to about this many points, their peaks among them; a figure has fewer pixels.
_POINTS = 4000


def force_figure(logs: Logs, t0: float, reference: Reference | None = None) -> Figure:
    """Draw the force on the robot in TCP axes, with two-sigma bands, over the reference.

    The axes fit the curves, not the bands: a filter that knows little must not flatten the others.
    """
    fig, axes = figure(3, 1, height=2.0, sharex=True)
    t = next(iter(logs.values()))["t"] - t0
    for k, axis in enumerate(axes[:, 0]):
        curves = [columns["force"][:, k] for columns in logs.values()]
        if reference is not None:
            curves.append(reference.force[:][:, k])
            _line(axis, t, curves[-1], color=TRUTH, label=reference.label, linewidth=1.6)
        for colour, name, columns in _each(logs):
            variance = columns["force_covariance"][:, k, k]
            _curve(axis, columns["t"] - t0, columns["force"][:, k], np.sqrt(np.maximum(variance, 0)), colour, name)
        _fit(axis, curves)
        axis.set_ylabel(f"force {_AXES[k]} [N]")
    return _finish(fig, axes)


def error_figure(logs: Logs, t0: float, reference: Reference) -> Figure:
    """Draw the force error along the TCP's z; contact is shaded."""
    fig, axes = figure(1, 1, height=2.2)
    axis: Axes = axes[0, 0]
    for colour, name, columns in _each(logs):
        _curve(axis, columns["t"] - t0, columns["force"][:, 2] - reference.force[:][:, 2], None, colour, name)
    t, whole = next(iter(logs.values()))["t"] - t0, axis.get_xaxis_transform()
    shade = {"color": "0.5", "alpha": 0.12, "linewidth": 0, "label": "in contact"}
    axis.fill_between(t, 0, 1, where=reference.contact[:], transform=whole, **shade)  # type: ignore[arg-type]  # mixed values
    axis.axhline(0.0, color=TRUTH, linewidth=0.8)
    axis.set_ylabel("force error z [N]")
    return _finish(fig, axes)


def stiffness_figure(logs: Logs, t0: float, reference: Reference | None = None) -> Figure | None:
    """Draw the stiffness of the first contact (norm of K) with the band of its norm; where it is open there is none."""
    drawn = _each(logs, lambda columns: "stiffness" in columns)
    if not drawn:
        return None
    fig, axes = figure(1, 1, height=2.6)
    axis: Axes = axes[0, 0]
    top = 0.0
    for colour, name, columns in drawn:
        # The stiffness of a contact that is open is what the settings expect.
        stiffness = np.where(columns["contact_probability"][:, 0] < CLOSED, np.nan, columns["stiffness"]) / 1e3
        vector, covariance = columns["contact_stiffness"][:, 0], columns["contact_covariance"][:, 0, :3, :3]
        with np.errstate(invalid="ignore", divide="ignore"):
            normal = vector / columns["stiffness"][:, None]
        spread = np.sqrt(np.maximum(np.einsum("ni,nij,nj->n", normal, covariance, normal), 0))
        _curve(axis, columns["t"] - t0, stiffness, spread / 1e3, colour, name)
        if np.isfinite(stiffness).any():
            top = max(top, 1.5 * float(np.nanpercentile(stiffness, 95)))
    if reference is not None and np.isfinite(reference.stiffness):
        label = f"reference: {reference.stiffness_label}"
        axis.axhline(reference.stiffness / 1e3, color=TRUTH, linewidth=1.6, label=label)
        top = min(top, 5 * reference.stiffness / 1e3) if top > 0 else top
        top = max(top, 1.5 * reference.stiffness / 1e3)
    if top > 0:
        axis.set_ylim(0, top)
    axis.set_ylabel("stiffness [kN/m]")
    return _finish(fig, axes)


def tcp_figure(t: np.ndarray, position: np.ndarray) -> Figure:
    """Draw the TCP's position (N, 3) [m], base frame [mm from the first one], over ``t`` (N,) [s]."""
    fig, axes = figure(1, 1, height=2.2)
    axis: Axes = axes[0, 0]
    for k, name in enumerate(_AXES):
        _line(axis, t, 1e3 * (position[:, k] - position[0, k]), color=COLOURS[k + 1], label=name)
    axis.set_ylabel("TCP [mm]")
    return _finish(fig, axes)


def contact_point_figure(logs: Logs, t0: float, truth: np.ndarray | None = None) -> Figure | None:
    """Draw contact point and rest position of the first contact, base frame [mm from the first known point]."""
    drawn = _each(logs, lambda columns: "rest" in columns and bool(np.isfinite(columns["rest"]).any()))
    if not drawn:
        return None
    start = _first_finite(truth if truth is not None else drawn[0][2]["contact_point"])
    fig, axes = figure(3, 1, height=1.8, sharex=True)
    for k, axis in enumerate(axes[:, 0]):
        if truth is not None:
            t, true = drawn[0][2]["t"] - t0, (truth[:, k] - start[k]) * 1e3
            # Dashed and on top: an estimate that is right covers it otherwise.
            _line(axis, t, true, color=TRUTH, label="truth", linestyle=(0, (4, 4)), zorder=4)
        curves: list[np.ndarray] = []
        for colour, name, columns in drawn:
            t = columns["t"] - t0
            spread = np.sqrt(np.maximum(columns["contact_covariance"][:, 0, 6 + k, 6 + k], 0)) * 1e3
            point, rest = ((columns[part][:, k] - start[k]) * 1e3 for part in ("contact_point", "rest"))
            _curve(axis, t, point, spread, colour, name)
            _line(axis, t, rest, color=colour, linestyle=":", label=f"{name}: rest")
            curves += [point, rest]
        _fit(axis, curves)
        axis.set_ylabel(f"{_AXES[k]} [mm]")
    return _finish(fig, axes)


def innovation_figure(logs: Logs, t0: float) -> Figure | None:
    """Draw the normalised innovation squared over its 95 % bound."""
    drawn = _each(logs, lambda columns: bool((columns["nis_dof"] > 0).any()))
    if not drawn:
        return None
    fig, axes = figure(1, 1, height=2.2)
    axis: Axes = axes[0, 0]
    for colour, name, columns in drawn:
        bound = chi2.ppf(0.95, np.maximum(columns["nis_dof"], 1))
        share = np.where(columns["nis"] > 0, columns["nis"] / bound, np.nan)
        _curve(axis, columns["t"] - t0, share, None, colour, name)
    axis.axhline(1.0, color=TRUTH, linewidth=0.8, label="95 % of a consistent filter lies below")
    axis.set_yscale("log")
    axis.set_ylabel("NIS / 95 % bound")
    return _finish(fig, axes)


def timing_figure(logs: Logs) -> Figure | None:
    """Draw the share of samples that took longer than a time."""
    drawn = _each(logs, lambda columns: bool(np.isfinite(columns["step_time"]).any()))
    if not drawn:
        return None
    fig, axes = figure(1, 1, height=2.4)
    axis: Axes = axes[0, 0]
    for colour, name, columns in drawn:
        times = np.sort(columns["step_time"][np.isfinite(columns["step_time"])]) * 1e6
        axis.plot(times, 1.0 - np.arange(len(times)) / len(times), color=colour, label=name)
    axis.set(xscale="log", yscale="log", xlabel="time per sample [µs]", ylabel="share of samples above")
    axis.legend(loc="upper right", frameon=False)
    return fig


def _each(logs: Logs, having: Callable[[Columns], bool] = bool) -> list[tuple[str, str, Columns]]:
    """(colour, name, columns) of the observers ``having`` something; colours go by the place among all observers."""
    return [
        (COLOURS[1 + k % (len(COLOURS) - 1)], name, columns)
        for k, (name, columns) in enumerate(logs.items())
        if having(columns)
    ]


def _curve(axis: Axes, t: np.ndarray, mean: np.ndarray, std: np.ndarray | None, colour: str, label: str) -> None:
    if std is None or not np.isfinite(std).any():
        _line(axis, t, mean, color=colour, label=label)
    else:
        rows = _shown(mean)
        band(axis, t[rows], mean[rows], np.nan_to_num(std[rows]), colour, label)


def _fit(axis: Axes, curves: Sequence[np.ndarray]) -> None:
    """Limits of the y axis from the curves, with a margin."""
    values = np.concatenate(curves)
    values = values[np.isfinite(values)]
    if len(values):
        low, high = values.min(), values.max()
        margin = 0.08 * (high - low) or 1.0
        axis.set_ylim(low - margin, high + margin)


def _line(axis: Axes, t: np.ndarray, values: np.ndarray, **style: Any) -> None:
    rows = _shown(values)
    axis.plot(t[rows], values[rows], **style)


def _shown(values: np.ndarray) -> np.ndarray:
    """Return the rows of a curve (N,) that a screen can show: of each stretch the first, the smallest, the largest."""
    step = len(values) // (_POINTS // 3)
    if step <= 3:
        return np.arange(len(values))
    begins = range(0, len(values), step)
    chosen = {*begins, len(values) - 1}.union(*(extremes(values, first, first + step) for first in begins))
    return np.array(sorted(chosen))


def _first_finite(values: np.ndarray) -> np.ndarray:
    good = np.isfinite(values).all(axis=1)
    return values[int(np.argmax(good))] if good.any() else np.zeros(3)


def _finish(fig: Figure, axes: np.ndarray) -> Figure:
    handles, labels = axes[0, 0].get_legend_handles_labels()
    columns = max(1, min(len(labels), 110 // (max(map(len, labels)) + 8)))  # as many as fit beside each other
    fig.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
    axes[-1, 0].set_xlabel("time [s]")
    for axis in axes[:, 0]:
        axis.margins(x=0)
    return fig
