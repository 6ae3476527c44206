"""Figures of replayed estimates.

Each takes ``runs``: observer -> its :class:`~contact_estimation.viz.curves.Curves`, and draws every observer in the
same colour everywhere; ``t0`` [s] is the stamp shown as zero. A figure that no observer has anything for is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contact_estimation.viz.curves import Curves
from contact_estimation.viz.reference import Reference
from contact_estimation.viz.style import COLOURS, TRUTH, band, figure
from contact_estimation.viz.thinning import extremes

Runs: TypeAlias = Mapping[str, Curves]

_AXES = ("x", "y", "z")
#: Bands and curves are thinned to about this many points, their peaks among them; a figure has fewer pixels.
_POINTS = 4000


def force_figure(runs: Runs, t0: float, reference: Reference | None = None) -> Figure:
    """Draw the force on the robot in TCP axes, with two-sigma bands, over the reference.

    The axes fit the curves, not the bands: a filter that knows little must not flatten the others.
    """
    fig, axes = figure(3, 1, height=2.0, sharex=True)
    t = _time(runs) - t0
    for k, axis in enumerate(axes[:, 0]):
        limits = []
        if reference is not None:
            true = reference.force[:][:, k]
            limits.append(_limits(true))
            _line(axis, t, true, color=TRUTH, label=reference.label, linewidth=1.6)
        for colour, name, run in _each(runs):
            force = run.curve("force", k)
            limits.append(_limits(force))
            _curve(axis, run.curve("t") - t0, force, run.curve("force_std", k), colour, name)
        _fit(axis, limits)
        axis.set_ylabel(f"force {_AXES[k]} [N]")
    return _finish(fig, axes, t)


def error_figure(runs: Runs, t0: float, reference: Reference) -> Figure:
    """Draw the force error along the TCP's z; contact is shaded."""
    fig, axes = figure(1, 1, height=2.2)
    axis: Axes = axes[0, 0]
    for colour, name, run in _each(runs):
        _curve(axis, run.curve("t") - t0, run.curve("force", 2) - reference.force[:][:, 2], None, colour, name)
    t, contact = _time(runs) - t0, reference.contact[:]
    edges, whole = _edges(contact), axis.get_xaxis_transform()
    shade = {"color": "0.5", "alpha": 0.12, "linewidth": 0, "label": "in contact"}
    axis.fill_between(t[edges], 0, 1, where=contact[edges], transform=whole, **shade)  # type: ignore[arg-type]  # mixed values
    axis.axhline(0.0, color=TRUTH, linewidth=0.8)
    axis.set_ylabel("force error z [N]")
    return _finish(fig, axes, t)


def stiffness_figure(runs: Runs, t0: float, reference: Reference | None = None) -> Figure | None:
    """Draw the stiffness of the first contact (norm of K) with the band of its norm; where it is open there is none."""
    drawn = _each(runs, lambda run: run.has("stiffness"))
    if not drawn:
        return None
    fig, axes = figure(1, 1, height=2.6)
    axis: Axes = axes[0, 0]
    top = 0.0
    for colour, name, run in drawn:
        stiffness, spread = run.curve("stiffness") / 1e3, run.curve("stiffness_std") / 1e3
        _curve(axis, run.curve("t") - t0, stiffness, spread, colour, name)
        top = max(top, 1.5 * float(np.nanpercentile(stiffness, 95)))
    if reference is not None and np.isfinite(reference.stiffness):
        label = f"reference: {reference.stiffness_label}"
        axis.axhline(reference.stiffness / 1e3, color=TRUTH, linewidth=1.6, label=label)
        top = min(top, 5 * reference.stiffness / 1e3) if top > 0 else top
        top = max(top, 1.5 * reference.stiffness / 1e3)
    if top > 0:
        axis.set_ylim(0, top)
    axis.set_ylabel("stiffness [kN/m]")
    return _finish(fig, axes, _time(runs) - t0)


def tcp_figure(t: np.ndarray, position: np.ndarray) -> Figure:
    """Draw the TCP's position (N, 3) [m], base frame [mm from the first one], over ``t`` (N,) [s]."""
    fig, axes = figure(1, 1, height=2.2)
    axis: Axes = axes[0, 0]
    for k, name in enumerate(_AXES):
        _line(axis, t, 1e3 * (position[:, k] - position[0, k]), color=COLOURS[k + 1], label=name)
    axis.set_ylabel("TCP [mm]")
    return _finish(fig, axes, t)


def contact_point_figure(runs: Runs, t0: float, truth: np.ndarray | None = None) -> Figure | None:
    """Draw contact point and rest position of the first contact, base frame [mm from the first known point]."""
    drawn = _each(runs, lambda run: run.has("rest"))
    if not drawn:
        return None
    start = _first_finite(truth if truth is not None else drawn[0][2].points("contact_point"))
    fig, axes = figure(3, 1, height=1.8, sharex=True)
    for k, axis in enumerate(axes[:, 0]):
        if truth is not None:
            t, true = drawn[0][2].curve("t") - t0, (truth[:, k] - start[k]) * 1e3
            # Dashed and on top: an estimate that is right covers it otherwise.
            _line(axis, t, true, color=TRUTH, label="truth", linestyle=(0, (4, 4)), zorder=4)
        limits = []
        for colour, name, run in drawn:
            t, spread = run.curve("t") - t0, run.curve("contact_point_std", k) * 1e3
            point, rest = ((run.curve(part, k) - start[k]) * 1e3 for part in ("contact_point", "rest"))
            _curve(axis, t, point, spread, colour, name)
            _line(axis, t, rest, color=colour, linestyle=":", label=f"{name}: rest")
            limits += [_limits(point), _limits(rest)]
        _fit(axis, limits)
        axis.set_ylabel(f"{_AXES[k]} [mm]")
    return _finish(fig, axes, _time(runs) - t0)


def innovation_figure(runs: Runs, t0: float) -> Figure | None:
    """Draw the normalised innovation squared over its 95 % bound."""
    drawn = _each(runs, lambda run: run.has("nis_per_dof"))
    if not drawn:
        return None
    fig, axes = figure(1, 1, height=2.2)
    axis: Axes = axes[0, 0]
    for colour, name, run in drawn:
        _curve(axis, run.curve("t") - t0, run.curve("nis_share"), None, colour, name)
    axis.axhline(1.0, color=TRUTH, linewidth=0.8, label="95 % of a consistent filter lies below")
    axis.set_yscale("log")
    axis.set_ylabel("NIS / 95 % bound")
    return _finish(fig, axes, _time(runs) - t0)


def timing_figure(runs: Runs) -> Figure | None:
    """Draw the share of samples that took longer than a time."""
    drawn = _each(runs, lambda run: run.has("step_time"))
    if not drawn:
        return None
    fig, axes = figure(1, 1, height=2.4)
    axis: Axes = axes[0, 0]
    for colour, name, run in drawn:
        times = run.curve("step_time")
        times = np.sort(times[np.isfinite(times)]) * 1e6
        above = _ranks(len(times))
        axis.plot(times[len(times) - above], above / len(times), color=colour, label=name)
    axis.set(xscale="log", yscale="log", xlabel="time per sample [µs]", ylabel="share of samples above")
    axis.legend(loc="upper right", frameon=False)
    return fig


def _time(runs: Runs) -> np.ndarray:
    """Return the stamps (N,) [s] of all samples."""
    return next(iter(runs.values())).curve("t")


def _each(runs: Runs, having: Callable[[Curves], bool] = bool) -> list[tuple[str, str, Curves]]:
    """(colour, name, curves) of the observers ``having`` something; colours go by the place among all observers."""
    return [
        (COLOURS[1 + k % (len(COLOURS) - 1)], name, run) for k, (name, run) in enumerate(runs.items()) if having(run)
    ]


def _curve(axis: Axes, t: np.ndarray, mean: np.ndarray, std: np.ndarray | None, colour: str, label: str) -> None:
    if std is None or not np.isfinite(std).any():
        _line(axis, t, mean, color=colour, label=label)
    else:
        rows = _shown(mean)
        band(axis, t[rows], mean[rows], np.nan_to_num(std[rows]), colour, label)


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest finite value; NaN of none."""
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)


def _fit(axis: Axes, limits: Sequence[tuple[float, float]]) -> None:
    """Fit the y axis to the limits of its curves, with a margin."""
    values = np.array(limits)
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


def _edges(values: np.ndarray) -> np.ndarray:
    """Return the rows (k,) at which runs of equal values begin and end."""
    changes = values[1:] != values[:-1]
    return np.flatnonzero(np.append(changes, True) | np.append(True, changes))


def _ranks(count: int) -> np.ndarray:
    """Return numbers from ``count`` to 1 that a logarithmic axis can tell apart, at most about :data:`_POINTS`."""
    return np.unique(np.round(np.geomspace(1, count, _POINTS)).astype(int))[::-1]


def _first_finite(values: np.ndarray) -> np.ndarray:
    good = np.isfinite(values).all(axis=1)
    return values[int(np.argmax(good))] if good.any() else np.zeros(3)


def _finish(fig: Figure, axes: np.ndarray, t: np.ndarray) -> Figure:
    """Add legend and time axis, which is that of all samples ``t`` (N,) [s] in every figure of a report."""
    handles, labels = axes[0, 0].get_legend_handles_labels()
    columns = max(1, min(len(labels), 110 // (max(map(len, labels)) + 8)))  # as many as fit beside each other
    fig.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
    axes[-1, 0].set_xlabel("time [s]")
    for axis in axes[:, 0]:
        axis.margins(x=0)
        if len(t) > 1:
            axis.set_xlim(t[0], t[-1])
    return fig
