"""Figures and report of an exploration followed by a press under MPC."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contact_estimation.studies.mpc.probe_press import Explored, PressRecord, ProbePressSettings
from contact_estimation.studies.probing.report import parameter_panel, shared_legend
from contact_estimation.viz.html import Page
from contact_estimation.viz.style import COLOURS, TRUTH, figure, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Index of a parameter, label, factor to the shown unit.
_PANELS = ((2, "tip z [mm]", 1e3), (4, "angle b [rad]", 1.0), (6, "stiffness [N/mm]", 1e-3), (7, "friction [-]", 1.0))
_HEADER = (
    "surface",
    "explored [s]",
    "targets reached",
    "tip [mm]",
    "orientation [rad]",
    "stiffness [N/m]",
    "friction",
    "force RMSE probed [N]",
    "guessed [N]",
)


def probe_report(
    folder: Path | str,
    command: str,
    settings: ProbePressSettings,
    explored: list[Explored],
    probed: list[PressRecord],
    guessed: list[PressRecord],
) -> Path:
    """Write ``report.html`` and its figures, of the first surface.

    Args:
        folder: where to.
        command: command line that repeats it.
        settings: the experiment.
        explored: exploration of every surface.
        probed: press with the probed contact.
        guessed: press with the guessed contact.

    Returns:
        path of the report.
    """
    folder = Path(folder)
    page = Page(
        f"Probe and press: {settings.robot}",
        "Paper 4 to paper 2: the arm explores a surface through its impedance controller, then presses under MPC.",
    )
    page.code(command)
    rows: list[list[object]] = []
    for i, (found, one, other) in enumerate(zip(explored, probed, guessed)):
        exploration, errors = found.exploration, [float(error) for error in found.errors * [1e3, 1.0, 1.0, 1.0]]
        found_out = [exploration.seconds, str(exploration.reached), *errors]
        rows.append([str(i), *found_out, one.force_rmse(), other.force_rmse()])
    page.table(list(_HEADER), rows)
    for name, heading, drawing, caption in (
        (
            "exploration.png",
            "Exploration",
            exploration_figure(explored[0]),
            "Estimate and two standard deviations after every sample.",
        ),
        (
            "press.png",
            "Press under MPC",
            press_figure(probed[0], guessed[0]),
            "True normal force, and the way along the surface.",
        ),
    ):
        save_figure(drawing, folder / name)
        page.heading(heading)
        page.figure(drawing, caption)
    return page.write(folder / "report.html")


def exploration_figure(explored: Explored) -> Figure:
    """Draw the parameters over the exploration, against the planted ones."""
    history = explored.exploration.history
    t, mean, std = (np.array(column) for column in zip(*((e.t, e.mean, e.std) for e in history)))
    fig, plots = figure(2, 2, width=7.4, height=2.0, sharex=True)
    for plot, (i, label, factor) in zip(plots.ravel(), _PANELS):
        parameter_panel(plot, t, factor * mean[:, i], factor * std[:, i], factor * explored.planted[i], label)
    shared_legend(fig, plots)
    return fig


def press_figure(probed: PressRecord, guessed: PressRecord) -> Figure:
    """Draw normal force and way of the press with the probed and with the guessed contact."""
    fig, plots = figure(2, 1, width=7.4, height=2.0, sharex=True)
    for record, colour, name in ((guessed, COLOURS[2], "guessed contact"), (probed, COLOURS[1], "probed contact")):
        plots[0, 0].plot(record.t, record.force, color=colour, label=name)
        plots[1, 0].plot(record.t, 1e3 * record.slide, color=colour)
    plots[0, 0].axhline(probed.wanted, color=TRUTH, linestyle="--", linewidth=0.9, label="wanted")
    plots[0, 0].set_ylabel("normal force [N]")
    plots[1, 0].set(ylabel="way [mm]")
    shared_legend(fig, plots, "time under MPC [s]")
    return fig
