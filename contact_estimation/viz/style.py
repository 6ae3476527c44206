"""One look for every picture: colours, sizes, and figures made without a display."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contact_estimation.atomic_write import atomic_write

#: Colours that stay apart for colour-blind readers (Okabe and Ito), truth first.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
TRUTH = COLOURS[0]

RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "figure.dpi": 110,
    "legend.frameon": False,
    "axes.prop_cycle": cycler(color=COLOURS[1:]),
}


def figure(
    rows: int = 1, columns: int = 1, width: float = 9.0, height: float = 2.4, **options: Any
) -> tuple[Figure, np.ndarray]:
    """Make a figure in the package's style.

    Args:
        rows: of axes.
        columns: of axes.
        width: of the figure [inch].
        height: of each row [inch].
        **options: of ``matplotlib.pyplot.subplots``.

    Returns:
        The figure and its axes (rows, columns).
    """
    with plt.rc_context(RC):
        fig, axes = plt.subplots(
            rows, columns, figsize=(width, height * rows), squeeze=False, layout="constrained", **options
        )
    return fig, axes


def save_figure(fig: Figure, path: Path | str) -> None:
    """Write a figure, making its folder.

    Args:
        fig: the figure.
        path: of the picture; its ending is the format, PNG where it has none.

    Raises:
        OSError: it cannot be written; an earlier picture of this name is as before.
        ValueError: matplotlib does not write this format.
    """
    with atomic_write(path) as file:
        fig.savefig(file, format=Path(path).suffix[1:] or "png")


def band(axis: Axes, t: np.ndarray, mean: np.ndarray, std: np.ndarray, colour: str, label: str | None = None) -> None:
    """Draw a line with a shaded band of two standard deviations."""
    axis.plot(t, mean, color=colour, label=label)
    axis.fill_between(t, mean - 2.0 * std, mean + 2.0 * std, color=colour, alpha=0.18, linewidth=0)
