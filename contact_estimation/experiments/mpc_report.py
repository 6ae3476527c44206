"""Report of a closed loop: the figures of paper 2, section 6.3, redrawn from a run with and a run without online
estimation."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contact_estimation.experiments.closed_loop import LoopRecord, LoopSettings
from contact_estimation.viz.html import Page
from contact_estimation.viz.style import COLOURS, TRUTH, figure

_AXES = "xyz"
_ESTIMATING, _FIXED = COLOURS[1], COLOURS[2]


def mpc_report(
    folder: Path | str, task: str, settings: LoopSettings, command: str, estimating: LoopRecord, fixed: LoopRecord
) -> Path:
    """Write ``report.html`` into ``folder`` and return its path."""
    page = Page(
        f"MPC in closed loop: {task} on {settings.robot}",
        "Paper 2, section 6.3. The controller sees the estimator's output only; truth is drawn for comparison.",
    )
    page.code(command)
    page.table(
        [
            "",
            "force RMSE after 1 s [N]",
            "mean error, last 2 s [N]",
            "largest impedance force [N]",
            "limit [N]",
            "solve p50 [ms]",
            "solve p99 [ms]",
            "ticks without a plan",
        ],
        [_summary("online estimation", estimating), _summary("no estimation", fixed)],
    )
    page.heading("Contact force")
    page.figure(
        _forces(estimating, fixed),
        "Force of the environment on the robot, true, with and without online estimation, and what was wanted.",
    )
    page.heading("What the estimator did")
    page.figure(
        _estimates(estimating), "Estimated against true force, and estimated rest position against the true surface."
    )
    page.heading("Impedance force and its limit")
    page.figure(
        _springs(estimating, fixed), "Norm of K_imp (x_0 - x) at every sample, before the controller's own limit."
    )
    page.heading("Motion and solve time")
    page.figure(
        _motion(estimating, fixed), "TCP position relative to the start of the MPC, and the time of every solve."
    )
    return page.write(Path(folder) / "report.html")


def _summary(name: str, record: LoopRecord) -> list:
    error = record.steady_error()[record.axes]
    p50, p99 = np.percentile(record.solve_ms, [50, 99]) if record.solve_ms.size else (np.nan, np.nan)
    return [
        name,
        record.force_rmse(),
        ", ".join(f"{value:+.2f}" for value in error),
        record.max_spring,
        record.force_limit,
        float(p50),
        float(p99),
        len(record.reasons),
    ]


def _forces(estimating: LoopRecord, fixed: LoopRecord):
    axes = np.flatnonzero(estimating.axes)
    fig, plots = figure(len(axes), 1)
    for plot, axis in zip(plots[:, 0], axes):
        plot.plot(fixed.t, fixed.force[:, axis], color=_FIXED, label="no estimation")
        plot.plot(estimating.t, estimating.force[:, axis], color=_ESTIMATING, label="online estimation")
        plot.axhline(estimating.force_wanted[axis], color=TRUTH, linestyle="--", linewidth=0.9, label="wanted")
        plot.axvline(1.0, color="#999999", linewidth=0.8, linestyle=":")
        plot.set(ylabel=f"F{_AXES[axis]} [N]")
    plots[0, 0].legend(ncol=3, loc="best")
    plots[-1, 0].set(xlabel="time under MPC [s] (scored right of the dotted line)")
    return fig


def _estimates(record: LoopRecord):
    axes = np.flatnonzero(record.axes)
    fig, plots = figure(len(axes), 2)
    for i, axis in enumerate(axes):
        plots[i, 0].plot(record.t, record.force[:, axis], color=TRUTH, label="true")
        plots[i, 0].plot(record.t, record.force_estimate[:, axis], color=_ESTIMATING, label="estimated")
        plots[i, 0].set(ylabel=f"F{_AXES[axis]} [N]")
        contact = min(i, record.rest_estimate.shape[1] - 1)
        plots[i, 1].plot(record.t, 1e3 * record.rest[:, axis], color=TRUTH, label="true")
        plots[i, 1].plot(
            record.t,
            1e3 * record.rest_estimate[:, _contact_of(record, axis, contact), axis],
            color=_ESTIMATING,
            label="estimated",
        )
        plots[i, 1].set(ylabel=f"rest {_AXES[axis]} [mm]")
    plots[0, 0].legend(ncol=2)
    for plot in plots[-1]:
        plot.set(xlabel="time under MPC [s]")
    return fig


def _contact_of(record: LoopRecord, axis: int, default: int) -> int:
    """The contact whose rest is nearest to the truth along ``axis``: contacts along other axes say nothing of it."""
    error = np.abs(record.rest_estimate[:, :, axis] - record.rest[:, None, axis]).mean(axis=0)
    return int(np.argmin(error)) if np.isfinite(error).all() else default


def _springs(estimating: LoopRecord, fixed: LoopRecord):
    fig, plots = figure(1, 1)
    plot = plots[0, 0]
    plot.plot(fixed.t, fixed.spring, color=_FIXED, label="no estimation")
    plot.plot(estimating.t, estimating.spring, color=_ESTIMATING, label="online estimation")
    plot.axhline(estimating.force_limit, color=TRUTH, linestyle="--", linewidth=0.9, label="limit F_max")
    plot.set(xlabel="time under MPC [s]", ylabel="||K (x0 - x)|| [N]", ylim=(0, 1.25 * estimating.force_limit))
    plot.legend(ncol=3, loc="lower right")
    return fig


def _motion(estimating: LoopRecord, fixed: LoopRecord):
    fig, plots = figure(1, 2)
    for axis in range(3):
        moved = 1e3 * (estimating.x[:, axis] - estimating.x[0, axis])
        plots[0, 0].plot(estimating.t, moved, color=COLOURS[1 + axis], label=_AXES[axis])
    plots[0, 0].set(xlabel="time under MPC [s]", ylabel="TCP, moved [mm]")
    plots[0, 0].legend(ncol=3)
    for record, colour, name in ((fixed, _FIXED, "no estimation"), (estimating, _ESTIMATING, "online estimation")):
        plots[0, 1].plot(
            np.linspace(0, record.t[-1], record.solve_ms.size),
            record.solve_ms,
            ".",
            markersize=2.5,
            color=colour,
            label=name,
        )
    plots[0, 1].set(xlabel="time under MPC [s]", ylabel="solve [ms]", yscale="log")
    plots[0, 1].legend()
    return fig
