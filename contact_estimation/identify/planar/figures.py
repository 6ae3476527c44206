"""Pictures of what was identified: table 1, recorded impacts and tosses, wheel (figure 11), arm and disk (figure
16)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from contact_estimation.identify.planar.arm_disk import PushResult
from contact_estimation.identify.planar.cube import CubeReport, FittedCube
from contact_estimation.identify.planar.cube_model import fit
from contact_estimation.identify.planar.impacts import ImpactReport, Impacts
from contact_estimation.identify.planar.table1 import PAPER, Row
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


def tosses_figure(fitted: FittedCube, report: CubeReport):
    """Rotation left unexplained against m/I; and by how much the lever of every impulse misses the shape's contact
    point, with the centre of mass in the middle and where it was found."""
    fig, axes = figure(1, 2, width=9.0, height=3.8)
    found, centred = fitted.model, replace(fitted.model, centre=np.zeros(3))
    ratios = np.linspace(0.8, 1.3, 26) * report.m_over_i
    held = [fit(fitted.residuals(), replace(found, ratio=np.array([k])), hold_ratio=True) for k in ratios]
    axes[0, 0].plot(ratios, [100.0 * fitted.unexplained(model) for model in held], color=COLOURS[1])
    axes[0, 0].axvspan(*report.interval, color=COLOURS[1], alpha=0.2, lw=0.0)
    axes[0, 0].set(xlabel="m/I [1/m$^2$]", ylabel="median rotation unexplained [%]", ylim=(0.0, None),
                   title=f"{report.impacts} impacts, all else fitted anew for each m/I")
    for model, colour, label in ((centred, COLOURS[2], "centre of mass in the middle"),
                                 (found, COLOURS[1], "where it was found")):
        miss = 1e3 * _lever_misfit(fitted, model)
        axes[0, 1].plot(*miss.T, ".", ms=3, alpha=0.6, color=colour, label=label)
    axes[0, 1].set(xlabel="along the lever [mm]", ylabel="sideways [mm]", xlim=(-15, 15), ylim=(-12, 12),
                   title="How far the impulses miss the contact point")
    axes[0, 1].legend()
    return fig


def _lever_misfit(fitted, model):
    """Implied minus modelled lever (n, 2) [m] in the plane across every impulse: along the lever and sideways."""
    residuals = fitted.residuals()
    lever, dv = residuals.turning(model)
    along = dv / np.linalg.norm(dv, axis=1, keepdims=True)
    # dw = m/I r x dv: the part of r across dv is dv x dw / (m/I dv^2).
    implied = np.cross(dv, fitted.impacts.dw) / (np.mean(model.ratio) * (dv**2).sum(axis=1, keepdims=True))
    across = lever - (lever * along).sum(axis=1, keepdims=True) * along
    outwards = across / np.linalg.norm(across, axis=1, keepdims=True)
    miss = implied - across
    return np.stack([(miss * outwards).sum(axis=1), (miss * np.cross(along, outwards)).sum(axis=1)], axis=1)


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
