"""Tables of many recordings: a line for each, how the figures are distributed over them, and the worst of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contact_estimation.evaluation.rows import Row
from contact_estimation.io.survey import missing_words
from contact_estimation.viz.summary import figure_columns, summary_table

#: Beside the median: shares of the recordings [%] that are no worse, and all headings.
_SHARES, _HEADINGS = (90, 100), ("median", "90 %", "worst")


def labels(rows: Sequence[Row]) -> dict[str, str]:
    """Return what a table calls each recording: its name, or where names repeat the path below their common folder.

    Args:
        rows: one per recording.

    Returns:
        Path in the row -> label, different for every path.
    """
    paths = [row["recording"] for row in rows]
    names = {path: Path(path).name for path in paths}
    if len(set(names.values())) == len(names):
        return names
    common = os.path.commonpath([os.path.abspath(Path(path).parent) for path in paths])
    return {path: os.path.relpath(path, common) for path in paths}


def values_of(rows: Sequence[Row], observer: str) -> dict[str, np.ndarray]:
    """Collect each figure of an observer over the recordings that have it.

    Args:
        rows: one per recording.
        observer: its name in the rows.

    Returns:
        Heading of the summary table -> values.
    """
    cells = [_cells(row["observers"][observer]) for row in rows if succeeded(row, observer)]
    names = cells[0] if cells else {}
    return {name: np.array([c[name] for c in cells if c[name] is not None], float) for name in names}


def _cells(figures: dict[str, Any]) -> dict[str, float | None]:
    return {"invalid [%]": 100.0 * (1.0 - figures["valid"] / figures["samples"])} | figure_columns(figures)


def succeeded(row: Row, observer: str) -> bool:
    """Return whether a recording has figures of an observer.

    Args:
        row: of the recording.
        observer: its name in the row.
    """
    return "error" not in row["observers"][observer]


def distribution_table(rows: Sequence[Row], observers: Sequence[str]) -> tuple[list[str], list[list[object]]]:
    """Make header and rows of the table of quantiles: a line per observer and figure; sizes of signed errors.

    Args:
        rows: one per recording.
        observers: names in the rows.
    """
    lines: list[list[object]] = []
    for observer in observers:
        for name, values in values_of(rows, observer).items():
            if len(values):
                sizes = np.abs(values)
                quantiles = [np.median(sizes), *np.percentile(sizes, _SHARES, method="higher")]
                lines.append([observer, name, len(values), *map(float, quantiles)])
    return ["observer", "figure", "recordings", *_HEADINGS], lines


def worst_rows(rows: Sequence[Row], observer: str, count: int = 10) -> list[Row]:
    """Return the recordings on which an observer did worst.

    By the RMS error of the force along z in contact, else in free space; recordings without a reference come after
    those with one, by the share of invalid estimates.

    Args:
        rows: one per recording.
        observer: its name in the rows.
        count: of recordings, at most.
    """
    good = [row for row in rows if succeeded(row, observer)]
    return sorted(good, key=lambda row: _badness(row["observers"][observer]), reverse=True)[:count]


def _badness(figures: dict[str, Any]) -> tuple[bool, float]:
    force = figures["force"] or {}
    for part in ("contact", "free"):
        if force.get(part):
            return True, float(force[part]["rmse_z"])
    return False, 1.0 - figures["valid"] / figures["samples"]


def missing_references(rows: Sequence[Row], label: Mapping[str, str]) -> list[str]:
    """Say of which recordings the reference is missing for some of the time, and for how much.

    Args:
        rows: one per recording.
        label: of :func:`labels`.
    """
    return [
        f"{label[row['recording']]}: the reference is {missing_words(share)}"
        for row in rows
        if (share := row.get("reference_missing", 0.0))
    ]


def header() -> list[str]:
    """Header of the table."""
    return ["recording", "robot", *summary_table({})[0]]


def lines(rows: Sequence[Row], observers: Sequence[str], label: Mapping[str, str]) -> list[list[object]]:
    """Return the lines of the table, for each recording and observer that has figures.

    Args:
        rows: one per recording.
        observers: names in the rows.
        label: of :func:`labels`.
    """
    return [
        [label[row["recording"]], row["robot"], *line]
        for row in rows
        for line in summary_table({o: row["observers"][o] for o in observers if succeeded(row, o)})[1]
    ]
