"""Figures 4 to 7 of paper 4, redrawn from one planar run."""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.probing.excitation import ExcitationSettings
from contact_estimation.identify.probing.runs import Trace
from contact_estimation.viz.style import COLOURS, TRUTH, band, figure

#: Per figure: (title, ((parameter index, axis label, factor to the shown unit), ...)).
_FIGURES = {
    "fig4_tip": ("Probe tip in the end-effector frame", ((0, "x [mm]", 1e3), (1, "y [mm]", 1e3))),
    "fig5_surface": ("Surface orientation and offset", ((2, "phi [rad]", 1.0), (3, "d [mm]", 1e3))),
    "fig6_dynamics": (
        "Stiffness and coefficient of friction",
        ((4, "stiffness [N/mm]", 1e-3), (5, "friction [-]", 1.0)),
    ),
}


def paper_figures(trace: Trace, true_slip: np.ndarray, excitation: ExcitationSettings) -> dict:
    """Name -> matplotlib figure. ``trace`` is a planar run, ``true_slip`` (T,) [m/s] its planted tangential
    velocity."""
    start = excitation.first_tilted_stroke * excitation.stroke_time
    out = {}
    for name, (title, panels) in _FIGURES.items():
        fig, axes = figure(len(panels), 1, width=7.0, height=1.9, sharex=True)
        for (i, label, factor), axis in zip(panels, axes[:, 0]):
            band(axis, trace.t, factor * trace.mean[:, i], factor * trace.std[:, i], COLOURS[1], "estimate, 2 std")
            axis.plot(trace.t, factor * trace.planted[:, i], color=TRUTH, linestyle="--", linewidth=0.9, label="truth")
            _shade(axis, trace, start)
            _limits(axis, factor * trace.mean[:, i], factor * trace.planted[:, i])
            axis.set_ylabel(label)
        axes[0, 0].set_title(title)
        _legend(fig, axes)
        out[name] = fig
    fig, axes = figure(1, 1, width=7.0, height=2.6)
    axis = axes[0, 0]
    axis.plot(trace.t, 1e3 * trace.slip, color=COLOURS[1], label="estimate")
    axis.plot(trace.t, 1e3 * true_slip, color=TRUTH, linestyle="--", linewidth=0.9, label="truth")
    _shade(axis, trace, start)
    axis.set(ylabel="tangential velocity [mm/s]", title="Tangential velocity of the tip")
    _legend(fig, axes)
    out["fig7_slip"] = fig
    return out


def _shade(axis, trace, start):
    """Grey where forces are not used (sticking, or too short a slide); a line at the first rotation."""
    axis.fill_between(
        trace.t,
        0,
        1,
        where=~trace.used,
        transform=axis.get_xaxis_transform(),
        color="0.5",
        alpha=0.15,
        linewidth=0,
        label="forces not used",
    )
    axis.axvline(start, color=COLOURS[2], linewidth=0.9, linestyle=":", label="first rotation")


def _limits(axis, values, truth):
    """Room for the transient, but not for the first sample's uncertainty."""
    low, high = min(values.min(), truth.min()), max(values.max(), truth.max())
    margin = 0.15 * (high - low)
    axis.set_ylim(low - margin, high + margin)


def _legend(fig, axes):
    axes[-1, 0].set_xlabel("time since contact [s]")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=len(labels))
