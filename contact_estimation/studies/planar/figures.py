"""Figures of the examples of paper 5: table 1, wheel (figure 11), arm and disk (figure 16)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contact_estimation.identify.arrays import Array
from contact_estimation.studies.planar.arm_disk import PushResult
from contact_estimation.studies.planar.table1 import PAPER, Row
from contact_estimation.studies.planar.wheel import WheelResult
from contact_estimation.viz.style import COLOURS, TRUTH, figure


def table_figure(table: dict[str, dict[int, Row]]) -> Figure:
    """Draw the error of m/I against signal-to-noise ratio beside the paper's."""
    fig, (axes,) = figure(1, len(table), width=8.0, height=3.4, sharey=True)
    for axis, (name, rows) in zip(axes, table.items()):
        snrs = list(rows)
        curves = (
            ("paper, error of the mean", "o--", TRUTH, [PAPER[name][s] for s in snrs]),
            ("here, error of the mean", "o-", COLOURS[1], [max(rows[s].error_pct, 1e-2) for s in snrs]),
            ("here, mean |error| of one drop", "s-", COLOURS[2], [rows[s].mean_absolute_pct for s in snrs]),
            ("here, median |error|", "^:", COLOURS[3], [rows[s].median_absolute_pct for s in snrs]),
        )
        for label, style, colour, values in curves:
            axis.semilogy(snrs, values, style, color=colour, label=label)
        axis.set(title=name, xlabel="signal-to-noise ratio [dB]", xticks=snrs)
        axis.invert_xaxis()
    axes[0].set_ylabel("error of m/I [%]")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig


def wheel_figure(result: WheelResult) -> Figure:
    """Draw the normal force of every spoke that touches, simulated and estimated (figure 11)."""
    trajectory, estimate = result.trajectory, result.estimate
    spokes = np.flatnonzero(trajectory.normal.sum(axis=0) > 0.0)
    fig, axes = figure(len(spokes), 1, width=8.0, height=1.6, sharex=True)
    for axis, spoke in zip(axes[:, 0], spokes):
        forces = trajectory.normal[:, spoke] / trajectory.h, estimate.normal[:, spoke] / trajectory.h
        _compare(axis, trajectory.t[:-1], *forces, f"spoke {spoke} [N]")
    axes[0, 0].set_title("Normal force of the spokes of a rimless wheel")
    axes[0, 0].legend()
    axes[-1, 0].set_xlabel("time [s]")
    return fig


def arm_disk_figure(result: PushResult) -> Figure:
    """Draw the forces between arm and disk: normal, and the two directions of friction (figure 16)."""
    trajectory, estimate = result.trajectory, result.estimate
    fig, axes = figure(3, 1, width=8.0, height=1.6, sharex=True)
    friction = trajectory.friction_impulse[:, 0], estimate.tangent[:, 0]
    pairs = (
        ("$c_n$ [N]", trajectory.normal[:, 0], estimate.normal[:, 0]),
        ("$c_{t,1}$ [N]", np.maximum(friction[0], 0.0), np.maximum(friction[1], 0.0)),
        ("$c_{t,2}$ [N]", np.maximum(-friction[0], 0.0), np.maximum(-friction[1], 0.0)),
    )
    for axis, (label, simulated, found) in zip(axes[:, 0], pairs):
        _compare(axis, trajectory.t[:-1], simulated / trajectory.h, found / trajectory.h, label)
    touching = trajectory.t[:-1][trajectory.normal[:, 0] > 0.0]
    if touching.size:
        axes[0, 0].set_xlim(touching[0] - 0.02, touching[-1] + 0.02)
    axes[0, 0].set_title("Force between arm and disk")
    axes[0, 0].legend()
    axes[-1, 0].set_xlabel("time [s]")
    return fig


def _compare(axis: Axes, t: Array, simulated: Array, estimated: Array, label: str) -> None:
    axis.plot(t, simulated, color=TRUTH, label="simulated")
    axis.plot(t, estimated, "--", color=COLOURS[2], label="estimated")
    axis.set_ylabel(label)
