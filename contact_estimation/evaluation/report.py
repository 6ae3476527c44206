"""The report on many recordings: distributions, the worst ten with pictures, errors, and a line for each recording."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from contact_estimation.atomic_write import atomic_write_text
from contact_estimation.evaluation.rows import Row
from contact_estimation.evaluation.tables import (
    distribution_table,
    header,
    labels,
    lines,
    missing_references,
    values_of,
    worst_rows,
)
from contact_estimation.evaluation.task import Task, replay_again
from contact_estimation.exceptions import RecordingError
from contact_estimation.jobs import Executor
from contact_estimation.viz import plots
from contact_estimation.viz.html import Page, cell, png_of
from contact_estimation.viz.style import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Figures whose distribution is drawn; the table has all.
_DRAWN = ("z in contact [N]", "z free [N]", "step median [µs]")
#: Ratios of the largest to the smallest value: beyond the first an axis is logarithmic, beyond the other it has room
#: for the decades alone.
_WIDE, _DECADES = 20.0, 500.0
_DISTRIBUTION = "Share of the recordings (vertical) whose figure is at most the one on the horizontal axis."


def write_reports(
    folder: Path, rows: Sequence[Row], tasks: Sequence[Task], observers: Sequence[str], executor: Executor, command: str
) -> Path:
    """Write ``report.html`` and ``table.csv``.

    Args:
        folder: where to; it is made.
        rows: of :func:`~contact_estimation.evaluation.rows.evaluate_all`.
        tasks: of the rows; the worst ones are replayed once more for their pictures.
        observers: their names; the worst ten are those of the first.
        executor: where they are replayed.
        command: that makes the report again.

    Returns:
        The page.

    Raises:
        RecordingError: the folder cannot be written.
    """
    page = _page(rows, tasks, observers, executor)
    page.heading("Make it again")
    page.code(command)
    table = io.StringIO(newline="")
    csv.writer(table).writerows(
        [header(), *([cell(c, 6) for c in line] for line in lines(rows, observers, labels(rows)))]
    )
    try:
        path = page.write(folder / "report.html")
        atomic_write_text(folder / "table.csv", table.getvalue())
    except OSError as error:
        raise RecordingError(f"{folder} cannot be written ({error.strerror}); choose another --report") from error
    return path


def _page(rows: Sequence[Row], tasks: Sequence[Task], observers: Sequence[str], executor: Executor) -> Page:
    failed, label = [row for row in rows if "error" in row], labels(rows)
    hours = sum(row.get("duration_s", 0.0) for row in rows) / 3600
    page = Page("Evaluation", f"{len(rows)} recordings, {hours:.2f} h; {len(failed)} with errors.")
    page.heading("Distributions over the recordings")
    page.table(*distribution_table(rows, observers))
    if (drawn := _distributions(rows, observers)) is not None:
        page.figure(drawn, _DISTRIBUTION)
    _add_worst(page, rows, tasks, observers, executor)
    if failed:
        page.heading("Errors")
        page.table(["recording", "error"], [[label[row["recording"]], row["error"]] for row in failed])
    if gaps := missing_references(rows, label):
        page.heading("Gaps of the reference")
        page.paragraph("These times are left out of the force errors.", note=True)
        page.table(["recording"], [[line] for line in gaps])
    page.heading("All recordings")
    page.table(header(), lines(rows, observers, label))
    return page


def _distributions(rows: Sequence[Row], observers: Sequence[str]) -> Figure | None:
    """Draw the empirical distribution function of some figures; None where no recording has them."""
    values = {observer: values_of(rows, observer) for observer in observers}
    drawn = [name for name in _DRAWN if any(len(v.get(name, ())) for v in values.values())]
    if not drawn:
        return None
    fig, axes = figure(1, len(drawn), height=2.6)
    for axis, name in zip(axes[0], drawn):
        for observer in observers:
            ordered = np.sort(values[observer].get(name, np.zeros(0)))
            axis.step(ordered, np.arange(1, len(ordered) + 1) / max(len(ordered), 1), where="post", label=observer)
        axis.set(xlabel=name, ylim=(0, 1.02))
        _scale(axis, np.concatenate([values[observer].get(name, np.zeros(0)) for observer in observers]))
    axes[0, 0].legend()
    return fig


def _scale(axis: Axes, values: np.ndarray) -> None:
    """Make the horizontal axis logarithmic where values differ by more than :data:`_WIDE`; its labels never overlap."""
    known = values[values > 0.0]
    spread = known.max() / known.min() if len(known) else 1.0
    if spread <= _WIDE:
        return
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if spread < _DECADES else (1.0,)))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.xaxis.set_minor_formatter(NullFormatter())


def _add_worst(
    page: Page, rows: Sequence[Row], tasks: Sequence[Task], observers: Sequence[str], executor: Executor
) -> None:
    """Add the table of every observer's worst recordings, and the forces of the first observer's."""
    page.heading("The worst recordings")
    page.paragraph(
        "By the RMS error of the force along the TCP's z in contact, else in free space; recordings without a "
        "reference by their invalid estimates.",
        note=True,
    )
    label = labels(rows)
    worst = {observer: [label[row["recording"]] for row in worst_rows(rows, observer)] for observer in observers}
    longest = max(map(len, worst.values()))
    page.table(
        list(worst), [[names[k] if k < len(names) else None for names in worst.values()] for k in range(longest)]
    )
    task_of = {str(task.path): task for task in tasks}
    chosen = [task_of[row["recording"]] for row in worst_rows(rows, observers[0])]
    pictures = {outcome.number: outcome for outcome in executor.run(force_picture, chosen)}
    for index, task in enumerate(chosen):
        name = label[str(task.path)]
        if pictures[index].error:
            page.paragraph(f"{name}: {pictures[index].error}")
        else:
            page.image(pictures[index].value, f"{name}: force on the robot, TCP axes; bands: 2 sigma.")


def force_picture(task: Task) -> bytes:
    """Replay a recording once more and draw the forces of all observers over the reference, as PNG.

    Args:
        task: what was replayed.
    """
    runs, reference = replay_again(task)
    return png_of(plots.force_figure(runs, float(next(iter(runs.values())).curve("t")[0]), reference))
