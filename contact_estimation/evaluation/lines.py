"""The table of all recordings: one line per recording and observer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from contact_estimation.evaluation.distribution import succeeded
from contact_estimation.evaluation.rows import Row
from contact_estimation.viz.summary import summary_table


def header() -> list[str]:
    """Header of the table."""
    return ["recording", "robot", *summary_table({})[0]]


def lines(rows: Sequence[Row], observers: Sequence[str]) -> list[list[object]]:
    """Return the lines of the table, for each recording and observer that has figures.

    Args:
        rows: one per recording.
        observers: names in the rows.
    """
    return [
        [Path(row["recording"]).name, row["robot"], *line]
        for row in rows
        for line in summary_table({o: row["observers"][o] for o in observers if succeeded(row, o)})[1]
    ]
