"""Text, HTML and figures of probing results; figures 4 to 7 of paper 4 are redrawn from one planar run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contact_estimation.identify.probing.excitation import ExcitationSettings
from contact_estimation.studies.probing.score import Trace, errors_text
from contact_estimation.viz.html import Page
from contact_estimation.viz.style import COLOURS, TRUTH, band, figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Columns of tables: heading -> key of the score.
COLUMNS = {
    "converged [%]": "converged_pct",
    "at the end [%]": "converged_at_end_pct",
    "non-physical": "non_physical_runs",
    "tip [mm]": "tip_error_mm",
    "orientation [rad]": "orientation_error_rad",
    "stiffness [N/m]": "stiffness_error",
    "friction": "friction_error",
    "NEES": "nees_mean",
    "updates/s": "updates_per_second",
}
#: Per figure: (title, ((index of the parameter, label of the axis, factor to the shown unit), ...)).
_FIGURES = {
    "fig4_tip": ("Probe tip in the end-effector frame", ((0, "x [mm]", 1e3), (1, "y [mm]", 1e3))),
    "fig5_surface": ("Surface orientation and offset", ((2, "phi [rad]", 1.0), (3, "d [mm]", 1e3))),
    "fig6_dynamics": (
        "Stiffness and coefficient of friction",
        ((4, "stiffness [N/mm]", 1e-3), (5, "friction [-]", 1.0)),
    ),
}


def summary(result: dict[str, Any]) -> str:
    """Return the scores as text."""
    low, high = result["nees_interval"]
    over_time = ", ".join(f"{second} s {nees:.1f}" for second, nees in result["nees_over_time"].items())
    return (
        f"{result['example']}: {result['runs']} runs, scored {result['evaluated_at_s']:.2f} s after contact\n"
        f"  converged       {result['converged_pct']:.0f} % (at the end {result['converged_at_end_pct']:.0f} %), "
        f"non-physical {result['non_physical_runs']}\n"
        f"  median errors   {errors_text(result)}\n"
        f"  settled         {_settled(result['settling_time_s'])}\n"
        f"  NEES            {result['nees_mean']:.2f} for {result['nees_dof']} degrees of freedom "
        f"(consistent: {low:.2f} to {high:.2f}), {result['nees_covered_pct']:.0f} % of runs below the 95 % bound\n"
        f"  NEES over time  {over_time}\n"
        f"  NIS             {result['nis_per_component']:.2f} per component (1)\n"
        f"  speed           {result['updates_per_second']:.0f} full updates per second"
    )


def _settled(seconds: float) -> str:
    return f"after {seconds:.2f} s (median)" if np.isfinite(seconds) else "less than half of the runs"


def table(results: dict[str, dict[str, Any]]) -> str:
    """Return a Markdown table of named scores."""
    lines = [" | ".join(["| ", *COLUMNS]) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, result in results.items():
        values = [result[key] for key in COLUMNS.values()]
        cells = (f"{value:.3g}" if abs(value) < 1e4 else f"{value:.1e}" for value in values)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page(results: dict[str, dict[str, Any]], figures: dict[str, Figure], command: str) -> Page:
    """Return an HTML report of named scores and figures."""
    out = Page("Probing", "Contact geometry and dynamics identified together, online (paper 4).")
    out.code(command)
    out.table(["", *COLUMNS], [[name, *(r[key] for key in COLUMNS.values())] for name, r in results.items()])
    for name, fig in figures.items():
        out.figure(fig, name)
    return out


def write_figures(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """Save figures as ``<folder>/<name>.png``; returns the paths."""
    paths = [folder / f"{name}.png" for name in figures]
    for path, fig in zip(paths, figures.values()):
        save_figure(fig, path)
    return paths


def paper_figures(trace: Trace, true_slip: np.ndarray, excitation: ExcitationSettings) -> dict[str, Figure]:
    """Redraw figures 4 to 7.

    Args:
        trace: a planar run.
        true_slip: its planted tangential velocity (T,) [m/s].
        excitation: when the first rotation starts.

    Returns:
        name -> figure.
    """
    start = excitation.first_tilted_stroke * excitation.stroke_time
    out = {}
    for name, (title, panels) in _FIGURES.items():
        fig, axes = figure(len(panels), 1, width=7.0, height=1.9, sharex=True)
        for (i, label, factor), axis in zip(panels, axes[:, 0]):
            mean, truth = factor * trace.mean[:, i], factor * trace.planted[:, i]
            parameter_panel(axis, trace.t, mean, factor * trace.std[:, i], truth, label)
            _shade(axis, trace, start)
            low, high = min(mean.min(), truth.min()), max(mean.max(), truth.max())
            margin = 0.15 * (high - low)  # room for the transient, but not for the first sample's uncertainty
            axis.set_ylim(low - margin, high + margin)
        axes[0, 0].set_title(title)
        shared_legend(fig, axes)
        out[name] = fig
    fig, axes = figure(1, 1, width=7.0, height=2.6)
    axis = axes[0, 0]
    axis.plot(trace.t, 1e3 * trace.slip, color=COLOURS[1], label="estimate")
    axis.plot(trace.t, 1e3 * true_slip, color=TRUTH, linestyle="--", linewidth=0.9, label="truth")
    _shade(axis, trace, start)
    axis.set(ylabel="tangential velocity [mm/s]", title="Tangential velocity of the tip")
    shared_legend(fig, axes)
    out["fig7_slip"] = fig
    return out


def parameter_panel(
    axis: Axes, t: np.ndarray, mean: np.ndarray, std: np.ndarray, truth: np.ndarray | float, label: str
) -> None:
    """Draw an estimate (T,) with two standard deviations, and the truth, (T,) or one number."""
    band(axis, t, mean, std, COLOURS[1], "estimate, 2 std")
    axis.plot(t, np.broadcast_to(truth, t.shape), color=TRUTH, linestyle="--", linewidth=0.9, label="truth")
    axis.set_ylabel(label)


def shared_legend(fig: Figure, axes: np.ndarray, xlabel: str = "time since contact [s]") -> None:
    """Give all panels (rows, columns) one legend below, and the lowest ones the label of the time axis."""
    for axis in axes[-1]:
        axis.set_xlabel(xlabel)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def _shade(axis: Axes, trace: Trace, start: float) -> None:
    """Shade where forces are not used (sticking, or too short a slide), and mark the first rotation."""
    unused, across = ~trace.used, axis.get_xaxis_transform()
    axis.fill_between(
        trace.t, 0, 1, where=unused, transform=across, color="0.5", alpha=0.15, linewidth=0, label="forces not used"
    )
    axis.axvline(start, color=COLOURS[2], linewidth=0.9, linestyle=":", label="first rotation")
