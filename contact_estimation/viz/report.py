"""The report on a replayed or recorded run: one page with a table of figures and the pictures behind it."""

from __future__ import annotations

from pathlib import Path

from contact_estimation.io.recording import Recording
from contact_estimation.viz import plots
from contact_estimation.viz.html import Page
from contact_estimation.viz.summary import (CONTACT_FORCE, FREE_FORCE, Reference, invalid_reasons, summarise,
                                             summary_table)

def replay_report(path: Path | str, recording: Recording, logs: dict, reference: Reference | None,
                  title: str = "Replay", subtitle: str = "", command: str = "") -> Path:
    """Write the report; returns its path.

    Args:
        path: the HTML file.
        recording: what was replayed.
        logs: observer -> :class:`~contact_estimation.io.export.EstimateLog`.
        reference: of :func:`~contact_estimation.viz.summary.reference_of`, with one row per row of every log.
        title, subtitle: of the page. command: how to make it again, printed at its end.
    """
    columns = {name: log.columns() for name, log in logs.items()}
    t0 = float(recording.t[0])
    page = Page(title, subtitle or f"{recording.source}: {len(recording)} samples, {recording.duration:.1f} s")
    header, rows = summary_table({name: summarise(c, reference) for name, c in columns.items()})
    page.table(header, rows)
    page.paragraph(_explain(reference), note=True)
    for name, reasons in invalid_reasons(columns).items():
        page.paragraph(f"{name}: {sum(reasons.values())} estimates are invalid and left out: "
                       + "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(5)))
    truth = recording.truth.get("contact_point")
    page.heading("Force")
    _show(page, plots.force_figure(columns, t0, reference), "Force of the environment on the robot, TCP axes. Bands: "
          "2 sigma; the axes fit the curves, so that a wide band may leave them.")
    if reference is not None:
        _show(page, plots.error_figure(columns, t0, reference),
              f"Estimated minus {reference.label} force along the TCP's z.")
    page.heading("Stiffness")
    _show(page, plots.stiffness_figure(columns, t0, reference), "Norm of the stiffness vector; bands: 2 sigma.")
    page.heading("Contact point")
    _show(page, plots.contact_point_figure(columns, t0, truth), "Contact point on the robot (solid; bands: 2 sigma of "
          "the point in the tool) and rest position of the environment (dotted), base frame, from the first point.")
    page.heading("Innovation")
    _show(page, plots.innovation_figure(columns, t0), "Normalised innovation squared, relative to its 95 % bound.")
    page.heading("Timing")
    _show(page, plots.timing_figure(columns), "Wall-clock time from a sample to its stored estimate, on this machine.")
    if command:
        page.heading("Make it again")
        page.code(command)
    return page.write(path)


def _explain(reference) -> str:
    if reference is None:
        return "The recording has neither a measured wrench nor truth: estimates are shown without errors."
    source = "the simulation's truth" if reference.label == "truth" else \
        "the force/torque sensor, as it reads, not tared"
    stiffness = f" Stiffness is compared with {reference.stiffness:.0f} N/m ({reference.stiffness_label})." \
        if reference.stiffness_label else ""
    return (f"Force columns are RMS errors against {source}. In contact: it pushes along the TCP's z with more than "
            f"{CONTACT_FORCE:g} N; free: with less than {FREE_FORCE:g} N. Stiffness is the median in contact; settled: "
            f"time from the first contact until it stays within 20 %.{stiffness}")


def _show(page, fig, caption) -> None:
    if fig is None:
        page.paragraph("None of the observers estimates this.", note=True)
    else:
        page.figure(fig, caption)
