"""Report of a closed loop: the figures of paper 2, section 6.3, from runs with and without online estimation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contact_estimation.studies.mpc.closed_loop import LoopRecord, LoopSettings
from contact_estimation.viz.html import Page
from contact_estimation.viz.style import COLOURS, TRUTH, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AXES = "xyz"
_ESTIMATING, _FIXED = COLOURS[1], COLOURS[2]
_TIME = "time under MPC [s]"
_HEADER = (
    "",
    "force RMSE after 1 s [N]",
    "mean error, last 2 s [N]",
    "largest impedance force [N]",
    "limit [N]",
    "solve p50 [ms]",
    "solve p99 [ms]",
    "ticks without a plan",
)


def mpc_report(
    folder: Path | str, task: str, settings: LoopSettings, command: str, estimating: LoopRecord, fixed: LoopRecord
) -> Path:
    """Write ``report.html``.

    Args:
        folder: where to.
        task: name of the task.
        settings: the experiment.
        command: command line that repeats it.
        estimating: run with online estimation.
        fixed: run without.

    Returns:
        path of the report.
    """
    page = Page(
        f"MPC in closed loop: {task} on {settings.robot}",
        "Paper 2, section 6.3. The controller sees the estimator's output only; truth is drawn for comparison.",
    )
    page.code(command)
    page.table(list(_HEADER), [_summary("online estimation", estimating), _summary("no estimation", fixed)])
    for heading, drawing, caption in (
        (
            "Contact force",
            _forces(estimating, fixed),
            "Force of the environment on the robot, true, with and without online estimation, and what was wanted.",
        ),
        (
            "What the estimator did",
            _estimates(estimating),
            "Estimated against true force, and estimated rest position against the true surface.",
        ),
        (
            "Impedance force and its limit",
            _springs(estimating, fixed),
            "Norm of K_imp (x_0 - x) at every sample, before the controller's own limit.",
        ),
        (
            "Motion and solve time",
            _motion(estimating, fixed),
            "TCP position relative to the start of the MPC, and the time of every solve.",
        ),
    ):
        page.heading(heading)
        page.figure(drawing, caption)
    return page.write(Path(folder) / "report.html")


def _summary(name: str, record: LoopRecord) -> list[Any]:
    error = ", ".join(f"{value:+.2f}" for value in record.steady_error()[record.axes])
    p50, p99 = np.percentile(record.solve_ms, [50, 99]) if record.solve_ms.size else (np.nan, np.nan)
    limits = (record.max_spring, record.force_limit)
    return [name, record.force_rmse(), error, *limits, float(p50), float(p99), len(record.reasons)]


def _runs(estimating: LoopRecord, fixed: LoopRecord) -> tuple[tuple[LoopRecord, dict[str, str]], ...]:
    """Both runs with the colour and label of their lines."""
    return (
        (fixed, {"color": _FIXED, "label": "no estimation"}),
        (estimating, {"color": _ESTIMATING, "label": "online estimation"}),
    )


def _forces(estimating: LoopRecord, fixed: LoopRecord) -> Figure:
    axes = np.flatnonzero(estimating.axes)
    fig, plots = figure(len(axes), 1)
    for plot, axis in zip(plots[:, 0], axes):
        for record, style in _runs(estimating, fixed):
            plot.plot(record.t, record.force[:, axis], **style)
        plot.axhline(estimating.force_wanted[axis], color=TRUTH, linestyle="--", linewidth=0.9, label="wanted")
        plot.axvline(1.0, color="#999999", linewidth=0.8, linestyle=":")
        plot.set(ylabel=f"F{_AXES[axis]} [N]")
    plots[0, 0].legend(ncol=3, loc="best")
    plots[-1, 0].set(xlabel=f"{_TIME} (scored right of the dotted line)")
    return fig


def _estimates(record: LoopRecord) -> Figure:
    axes = np.flatnonzero(record.axes).tolist()
    fig, plots = figure(len(axes), 2)
    for i, axis in enumerate(axes):
        contact = _contact_of(record, axis, min(i, record.rest_estimate.shape[1] - 1))
        for plot, true, estimated, label in (
            (plots[i, 0], record.force[:, axis], record.force_estimate[:, axis], f"F{_AXES[axis]} [N]"),
            (
                plots[i, 1],
                1e3 * record.rest[:, axis],
                1e3 * record.rest_estimate[:, contact, axis],
                f"rest {_AXES[axis]} [mm]",
            ),
        ):
            plot.plot(record.t, true, color=TRUTH, label="true")
            plot.plot(record.t, estimated, color=_ESTIMATING, label="estimated")
            plot.set(ylabel=label)
    plots[0, 0].legend(ncol=2)
    for plot in plots[-1]:
        plot.set(xlabel=_TIME)
    return fig


def _contact_of(record: LoopRecord, axis: int, default: int) -> int:
    """Find the contact whose rest is nearest to the truth along ``axis``; others say nothing of it."""
    error = np.abs(record.rest_estimate[:, :, axis] - record.rest[:, None, axis]).mean(axis=0)
    return int(np.argmin(error)) if np.isfinite(error).all() else default


def _springs(estimating: LoopRecord, fixed: LoopRecord) -> Figure:
    fig, plots = figure(1, 1)
    plot = plots[0, 0]
    for record, style in _runs(estimating, fixed):
        plot.plot(record.t, record.spring, **style)
    plot.axhline(estimating.force_limit, color=TRUTH, linestyle="--", linewidth=0.9, label="limit F_max")
    plot.set(xlabel=_TIME, ylabel="||K (x0 - x)|| [N]", ylim=(0, 1.25 * estimating.force_limit))
    plot.legend(ncol=3, loc="lower right")
    return fig


def _motion(estimating: LoopRecord, fixed: LoopRecord) -> Figure:
    fig, plots = figure(1, 2)
    for axis in range(3):
        moved = 1e3 * (estimating.x[:, axis] - estimating.x[0, axis])
        plots[0, 0].plot(estimating.t, moved, color=COLOURS[1 + axis], label=_AXES[axis])
    plots[0, 0].set(xlabel=_TIME, ylabel="TCP, moved [mm]")
    plots[0, 0].legend(ncol=3)
    for record, style in _runs(estimating, fixed):
        ticks = np.linspace(0, record.t[-1], record.solve_ms.size)
        plots[0, 1].plot(ticks, record.solve_ms, ".", markersize=2.5, **style)
    plots[0, 1].set(xlabel=_TIME, ylabel="solve [ms]", yscale="log")
    plots[0, 1].legend()
    return fig
