"""Pictures of what was identified: table 1, recorded impacts and tosses, wheel (figure 11), arm and disk (figure
16)."""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.planar.arm_disk import PushResult
from contact_estimation.identify.planar.cube import CubeReport, unexplained_rotation
from contact_estimation.identify.planar.impacts import ImpactReport, Impacts
from contact_estimation.identify.planar.table1 import PAPER, Row
from contact_estimation.identify.planar.tosses import CornerImpacts
from contact_estimation.identify.planar.wheel import WheelResult
from contact_estimation.viz.style import COLOURS, TRUTH, figure


def table_figure(table: dict[str, dict[int, Row]]):
    """Error of m/I against signal-to-noise ratio beside the paper's."""
    fig, axes = figure(1, len(table), width=8.0, height=3.4, sharey=True)
    for axis, (name, rows) in zip(axes[0], table.items()):
        snrs = list(rows)
        curves = (("paper, error of the mean", "o--", TRUTH, [PAPER[name][s] for s in snrs]),
                  ("here, error of the mean", "o-", COLOURS[1], [max(rows[s].error_pct, 1e-2) for s in snrs]),
                  ("here, mean |error| of one drop", "s-", COLOURS[2], [rows[s].mean_absolute_pct for s in snrs]),
                  ("here, median |error|", "^:", COLOURS[3], [rows[s].median_absolute_pct for s in snrs]))
        for label, style, colour, values in curves:
            axis.semilogy(snrs, values, style, color=colour, label=label)
        axis.set(title=name, xlabel="signal-to-noise ratio [dB]", xticks=snrs)
        axis.invert_xaxis()
    axes[0, 0].set_ylabel("error of m/I [%]")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig


def impacts_figure(impacts: Impacts, report: ImpactReport):
    """Rotation against moment, and impulses predicted for unseen impacts against measured ones."""
    fig, axes = figure(1, 2, width=9.0, height=3.6)
    model, signs, jump = report.model, report.model.handedness, impacts.jump
    moment = signs.normal * impacts.normal[:, 2] * jump[:, 1] + signs.tangent * impacts.tangent[:, 2] * jump[:, 0]
    axes[0, 0].plot(moment, jump[:, 2], ".", ms=3, alpha=0.5, color=COLOURS[1])
    ends = np.array([moment.min(), moment.max()])
    axes[0, 0].plot(ends, model.m_over_i * ends, color=TRUTH, label=f"m/I {model.m_over_i:.0f} 1/m$^2$")
    axes[0, 0].set(xlabel="moment of impulse per mass [m$^2$/s]", ylabel="change of rotation [rad/s]",
                   title="All impacts")
    axes[0, 0].legend()
    for column, name, colour in ((1, "normal", COLOURS[1]), (0, "tangential", COLOURS[2])):
        axes[0, 1].plot(jump[:, column], report.predicted[:, column], ".", ms=3, alpha=0.5, color=colour, label=name)
    ends = np.array([jump[:, :2].min(), jump[:, :2].max()])
    axes[0, 1].plot(ends, ends, color=TRUTH, lw=0.8)
    axes[0, 1].set(xlabel="measured impulse per mass [m/s]", ylabel="predicted [m/s]",
                   title=f"Unseen impacts, median error {report.impulse_error_pct:.1f} %")
    axes[0, 1].legend()
    return fig


def tosses_figure(impacts: CornerImpacts, report: CubeReport):
    """Rotation left unexplained against m/I, for impulses at the corner and for impulses in the section of cube and
    ground; and where the impulses must have acted for a point contact's m/I and for the one found."""
    fig, axes = figure(1, 2, width=9.0, height=3.8)
    ratios, size = np.linspace(0.6, 1.6, 81) * report.m_over_i, np.median(np.linalg.norm(impacts.dw, axis=1))
    moment = np.cross(impacts.r, impacts.dv)
    for label, colour, left in (
            ("impulse at the corner", COLOURS[2], lambda k: np.linalg.norm(impacts.dw - k * moment, axis=1)),
            ("impulse where the ground cuts the cube", COLOURS[1], lambda k: unexplained_rotation(impacts, k))):
        axes[0, 0].plot(ratios, [100.0 * np.median(left(k)) / size for k in ratios], color=colour, label=label)
    axes[0, 0].axvspan(*report.interval, color=COLOURS[1], alpha=0.2, lw=0.0)
    axes[0, 0].set(xlabel="m/I [1/m$^2$]", ylabel="median rotation unexplained [%]", ylim=(0.0, None),
                   title=f"{report.impacts} impacts on one corner")
    axes[0, 0].legend()
    towards = -impacts.r[:, :2] / np.linalg.norm(impacts.r[:, :2], axis=1, keepdims=True)
    for ratio, colour in ((report.m_over_i_corner, COLOURS[2]), (report.m_over_i, COLOURS[1])):
        shift = 1e3 * (_points_of_action(impacts, ratio) - impacts.r)[:, :2]
        axes[0, 1].plot((shift * towards).sum(axis=1), shift @ [1, 0] * towards[:, 1] - shift @ [0, 1] * towards[:, 0],
                        ".", ms=3, alpha=0.6, color=colour, label=f"m/I {ratio:.0f} 1/m$^2$")
    axes[0, 1].plot(0.0, 0.0, "+", ms=12, color=TRUTH, label="corner")
    axes[0, 1].set(xlabel="towards the middle of the cube [mm]", ylabel="sideways [mm]", xlim=(-25, 25), ylim=(-20, 20),
                   title="Where the impulses act")
    axes[0, 1].legend()
    return fig


def _points_of_action(impacts, ratio):
    """The point (n, 3) at the height of the ground on every impulse's line of action, from the centre."""
    foot = np.cross(impacts.dv, impacts.dw) / (ratio * (impacts.dv**2).sum(axis=1, keepdims=True))
    along = (impacts.section[:, 0, 2] - foot[:, 2]) / impacts.dv[:, 2]
    return foot + along[:, None] * impacts.dv


def wheel_figure(result: WheelResult):
    """Normal force of every spoke that touches, simulated and estimated (figure 11)."""
    trajectory, estimate = result.trajectory, result.estimate
    spokes = np.flatnonzero(trajectory.normal.sum(axis=0) > 0.0)
    fig, axes = figure(len(spokes), 1, width=8.0, height=1.6, sharex=True)
    for axis, spoke in zip(axes[:, 0], spokes):
        t, h = trajectory.t[:-1], trajectory.h
        axis.plot(t, trajectory.normal[:, spoke] / h, color=TRUTH, label="simulated")
        axis.plot(t, estimate.normal[:, spoke] / h, "--", color=COLOURS[2], label="estimated")
        axis.set_ylabel(f"spoke {spoke} [N]")
    axes[0, 0].set_title("Normal force of the spokes of a rimless wheel")
    axes[0, 0].legend()
    axes[-1, 0].set_xlabel("time [s]")
    return fig


def arm_disk_figure(result: PushResult):
    """Forces between arm and disk: normal, and the two directions of friction (figure 16)."""
    trajectory, estimate = result.trajectory, result.estimate
    fig, axes = figure(3, 1, width=8.0, height=1.6, sharex=True)
    friction = trajectory.friction_impulse[:, 0], estimate.tangent[:, 0]
    pairs = (("$c_n$ [N]", trajectory.normal[:, 0], estimate.normal[:, 0]),
             ("$c_{t,1}$ [N]", np.maximum(friction[0], 0.0), np.maximum(friction[1], 0.0)),
             ("$c_{t,2}$ [N]", np.maximum(-friction[0], 0.0), np.maximum(-friction[1], 0.0)))
    for axis, (label, simulated, found) in zip(axes[:, 0], pairs):
        axis.plot(trajectory.t[:-1], simulated / trajectory.h, color=TRUTH, label="simulated")
        axis.plot(trajectory.t[:-1], found / trajectory.h, "--", color=COLOURS[2], label="estimated")
        axis.set_ylabel(label)
    touching = trajectory.t[:-1][trajectory.normal[:, 0] > 0.0]
    if touching.size:
        axes[0, 0].set_xlim(touching[0] - 0.02, touching[-1] + 0.02)
    axes[0, 0].set_title("Force between arm and disk")
    axes[0, 0].legend()
    axes[-1, 0].set_xlabel("time [s]")
    return fig
