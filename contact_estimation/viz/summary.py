"""Figures of an observer's error on a recording, against a simulation's truth or a measured wrench."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from contact_estimation.viz.reference import Reference
from contact_estimation.viz.scores import Scores

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
