"""Figures of the results of recorded impacts and tosses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.cube import CubeReport, FittedCube
from contact_estimation.identify.planar.cube_model import CubeModel, fit
from contact_estimation.identify.planar.impacts import ImpactReport, Impacts
from contact_estimation.viz.style import COLOURS, TRUTH, figure


def impacts_figure(impacts: Impacts, report: ImpactReport) -> Figure:
    """Draw rotation against moment, and impulses predicted for unseen impacts against measured ones."""
    fig, ((left, right),) = figure(1, 2, width=9.0, height=3.6)
    model, jump, dots = report.model, impacts.jump, {"ms": 3, "alpha": 0.5}
    moment = impacts.moment(model.handedness)
    left.plot(moment, jump[:, 2], ".", color=COLOURS[1], **dots)
    ends = np.array([moment.min(), moment.max()])
    left.plot(ends, model.m_over_i * ends, color=TRUTH, label=f"m/I {model.m_over_i:.0f} 1/m$^2$")
    left.set(xlabel="moment of impulse per mass [m$^2$/s]", ylabel="change of rotation [rad/s]", title="All impacts")
    for column, name, colour in ((1, "normal", COLOURS[1]), (0, "tangential", COLOURS[2])):
        right.plot(jump[:, column], report.predicted[:, column], ".", color=colour, label=name, **dots)
    ends = np.array([jump[:, :2].min(), jump[:, :2].max()])
    right.plot(ends, ends, color=TRUTH, lw=0.8)
    title = f"Unseen impacts, median error {report.impulse_error_pct:.1f} %"
    right.set(xlabel="measured impulse per mass [m/s]", ylabel="predicted [m/s]", title=title)
    left.legend()
    right.legend()
    return fig


def tosses_figure(fitted: FittedCube, report: CubeReport) -> Figure:
    """Draw the rotation left unexplained against m/I, and how far the impulses miss the shape's contact point.

    The misses are drawn with the centre of mass in the middle and where it was found.
    """
    fig, ((left, right),) = figure(1, 2, width=9.0, height=3.8)
    found, centred = fitted.model, replace(fitted.model, centre=np.zeros(3))
    ratios = np.linspace(0.8, 1.3, 26) * report.m_over_i
    held = [fit(fitted.residuals(), replace(found, ratio=np.array([k])), hold_ratio=True) for k in ratios]
    left.plot(ratios, [100.0 * fitted.unexplained(model) for model in held], color=COLOURS[1])
    left.axvspan(*report.interval, color=COLOURS[1], alpha=0.2, lw=0.0)
    title = f"{report.impacts} impacts, all else fitted again for each m/I"
    left.set(xlabel="m/I [1/m$^2$]", ylabel="median rotation unexplained [%]", ylim=(0.0, None), title=title)
    for model, colour, label in (
        (centred, COLOURS[2], "centre of mass in the middle"),
        (found, COLOURS[1], "where it was found"),
    ):
        right.plot(*1e3 * _lever_misfit(fitted, model).T, ".", ms=3, alpha=0.6, color=colour, label=label)
    right.set(xlabel="along the lever [mm]", ylabel="sideways [mm]", xlim=(-15, 15), ylim=(-12, 12))
    right.set_title("How far the impulses miss the contact point")
    right.legend()
    return fig


def _lever_misfit(fitted: FittedCube, model: CubeModel) -> Array:
    """Implied minus modelled lever (n, 2) [m] in the plane across every impulse: along the lever and sideways."""
    lever, dv = fitted.residuals().turning(model)
    along = dv / np.linalg.norm(dv, axis=1, keepdims=True)
    # dw = m/I r x dv: the part of r across dv is dv x dw / (m/I dv^2).
    implied = np.cross(dv, fitted.impacts.dw) / (np.mean(model.ratio) * (dv**2).sum(axis=1, keepdims=True))
    across = lever - (lever * along).sum(axis=1, keepdims=True) * along
    outwards = across / np.linalg.norm(across, axis=1, keepdims=True)
    miss = implied - across
    return np.stack([(miss * outwards).sum(axis=1), (miss * np.cross(along, outwards)).sum(axis=1)], axis=1)
