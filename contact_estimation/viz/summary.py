"""Figures of an observer's error on a recording, against a simulation's truth or a measured wrench."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contact_estimation.viz.reference import Reference
from contact_estimation.viz.scores import Scores

#: [s] A link that is told for a shorter time is passed while a contact begins or ends.
_BRIEF = 0.1
#: Columns of the summary table: heading -> factor and where :func:`summarise` has it.
_FIGURES: dict[str, tuple[float, tuple[str, ...]]] = {
    "z in contact [N]": (1, ("force", "contact", "rmse_z")),
    "xy in contact [N]": (1, ("force", "contact", "rmse_xy")),
    "z free [N]": (1, ("force", "free", "rmse_z")),
    "stiffness [kN/m]": (1e-3, ("stiffness", "median")),
    "error [%]": (100, ("stiffness", "error")),
    "settled [s]": (1, ("stiffness", "settled_s")),
    "mode changes": (1, ("mode_changes",)),
    "step median [µs]": (1, ("step_us", "p50")),
    "step 99 % [µs]": (1, ("step_us", "p99")),
}


def summarise(columns: Mapping[str, np.ndarray], reference: Reference | None) -> dict[str, Any]:
    """Say in figures how well one observer did; see :meth:`~contact_estimation.viz.scores.Scores.figures`.

    Args:
        columns: of its log.
        reference: what to compare with.
    """
    return Scores.of(columns, reference).figures()


def summary_table(figures: Mapping[str, dict[str, Any]]) -> tuple[list[str], list[list[object]]]:
    """Make header and rows of the table of ``figures``: observer -> what ``summarise`` gave."""
    rows: list[list[object]] = [
        [name, f"{values['valid']}/{values['samples']}", *figure_columns(values).values()]
        for name, values in figures.items()
    ]
    return ["observer", "valid", *_FIGURES], rows


def figure_columns(figures: Mapping[str, Any]) -> dict[str, float | None]:
    """Take what the summary table shows from the ``figures`` of one observer: heading -> value."""
    found = {}
    for heading, (factor, where) in _FIGURES.items():
        value: Any = figures
        for key in where:
            value = None if value is None else value.get(key)
        found[heading] = None if value is None else factor * value
    return found


def touched_links(columns: Mapping[str, np.ndarray], names: Sequence[str]) -> list[str]:
    """Say which links each contact touched, for how long, and where that was told as a point.

    Args:
        columns: of an observer's log.
        names: of its contacts, the second axis of the columns.

    Returns:
        A line per link and contact, the longest touch of each contact first; touches shorter than :data:`_BRIEF` are
        left out.
    """
    links, seconds = columns["contact_link"], float(np.median(np.diff(columns["t"]))) if len(columns["t"]) > 1 else 0.0
    lines = []
    for i, name in enumerate(names):
        for link, samples in Counter(links[:, i].tolist()).most_common():
            if not link or samples * seconds < _BRIEF:
                continue
            points = columns["contact_point_base"][links[:, i] == link, i]
            points = points[np.isfinite(points).all(axis=1)]
            place = ", ".join(f"{value:.3f}" for value in np.median(points, axis=0)) if len(points) else ""
            where = f"median point ({place}) m in the base frame" if place else "too uncertain for a point"
            lines.append(f"{link} by {name} for {samples * seconds:.2f} s, {where}")
    return lines
