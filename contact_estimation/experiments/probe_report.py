"""Figures and report of an exploration followed by a press under MPC."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contact_estimation.viz.html import Page
from contact_estimation.viz.style import COLOURS, TRUTH, band, figure

_PROBED, _GUESSED = COLOURS[1], COLOURS[2]
#: Index of a parameter, label, factor to the shown unit.
_PANELS = ((2, "tip z [mm]", 1e3), (4, "angle b [rad]", 1.0), (6, "stiffness [N/mm]", 1e-3), (7, "friction [-]", 1.0))


def probe_report(folder, command: str, settings, explored, probed, guessed) -> Path:
    """Write ``report.html`` and its figures, of the first surface, into ``folder``; returns the report's path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    exploration, press = exploration_figure(explored[0]), press_figure(probed[0], guessed[0])
    exploration.savefig(folder / "exploration.png")
    press.savefig(folder / "press.png")
    page = Page(
        f"Probe and press: {settings.robot}",
        "Paper 4 to paper 2: the arm explores a surface through its impedance controller, then presses under MPC.",
    )
    page.code(command)
    page.table(
        ["surface", "explored [s]", "targets reached", "tip [mm]", "orientation [rad]", "stiffness [N/m]", "friction",
         "force RMSE probed [N]", "guessed [N]"],
        [
            [str(i), found.exploration.seconds, str(found.exploration.reached), 1e3 * found.errors[0],
             *map(float, found.errors[1:]), one.force_rmse(), other.force_rmse()]
            for i, (found, one, other) in enumerate(zip(explored, probed, guessed))
        ],
    )
    page.heading("Exploration")
    page.figure(exploration, "Estimate and two standard deviations after every sample.")
    page.heading("Press under MPC")
    page.figure(press, "True normal force, and the way along the surface.")
    return page.write(folder / "report.html")


def exploration_figure(explored):
    """Parameters over the exploration, against the planted ones."""
    history = explored.exploration.history
    t, mean, std = (np.array(column) for column in zip(*((e.t, e.mean, e.std) for e in history)))
    planted = explored.planted
    fig, plots = figure(2, 2, width=7.4, height=2.0, sharex=True)
    for plot, (i, label, factor) in zip(plots.ravel(), _PANELS):
        band(plot, t, factor * mean[:, i], factor * std[:, i], _PROBED, "estimate, 2 std")
        plot.axhline(factor * planted[i], color=TRUTH, linestyle="--", linewidth=0.9, label="truth")
        plot.set_ylabel(label)
    for plot in plots[-1]:
        plot.set_xlabel("time since contact [s]")
    handles, labels = plots[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return fig


def press_figure(probed, guessed):
    """Normal force and way of the press with the probed and with the guessed contact."""
    fig, plots = figure(2, 1, width=7.4, height=2.0, sharex=True)
    for record, colour, name in ((guessed, _GUESSED, "guessed contact"), (probed, _PROBED, "probed contact")):
        plots[0, 0].plot(record.t, record.force, color=colour, label=name)
        plots[1, 0].plot(record.t, 1e3 * record.slide, color=colour)
    plots[0, 0].axhline(probed.wanted, color=TRUTH, linestyle="--", linewidth=0.9, label="wanted")
    plots[0, 0].set_ylabel("normal force [N]")
    plots[1, 0].set(ylabel="way [mm]", xlabel="time under MPC [s]")
    handles, labels = plots[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return fig
