"""Tables of what the runs said, against the truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from benchmark.adversary.case import CLEAN, Interval, World

NAMED = ("doubtful", "failed")
#: Standard deviations off the truth from which an unflagged run counts as silently wrong.
WRONG = 3.0


def named(row: dict) -> bool:
    """Whether the run said that something is wrong; a traceback says nothing."""
    return row["verdict"] in NAMED


def intervals(row: dict) -> dict[str, Interval]:
    """Intervals of the parameters whose truth is known."""
    return {name: Interval(*found) for name, found in row["found"].items() if name in row["truth"]}


def deviations(row: dict) -> dict[str, float]:
    """Error over standard deviation, by parameter."""
    found = intervals(row)
    return {name: abs(i.value - row["truth"][name]) / max(i.std, 1e-12) for name, i in found.items()}


def silently_wrong(row: dict) -> bool:
    """Whether a run that was not flagged has a parameter more than three standard deviations off."""
    return row["verdict"] == "good" and max(deviations(row).values(), default=0.0) > WRONG


def covered(rows: Iterable[dict]) -> tuple[int, int]:
    """Count intervals that hold the truth, and all intervals, over the runs that were not flagged."""
    inside = [
        i.lower <= row["truth"][name] <= i.upper
        for row in rows
        if row["verdict"] == "good"
        for name, i in intervals(row).items()
    ]
    return sum(inside), len(inside)


def wilson(hits: int, of: int) -> tuple[float, float]:
    """95 % interval of a share, Wilson 1927."""
    if not of:
        return float("nan"), float("nan")
    z, p = 1.96, hits / of
    middle, half = p + z * z / (2 * of), z * np.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return max(middle - half, 0.0) / (1 + z * z / of), (middle + half) / (1 + z * z / of)


def share(hits: int, of: int) -> str:
    """Write a share with its 95 % interval [%]."""
    if not of:
        return "-"
    low, high = wilson(hits, of)
    return f"{100 * hits / of:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def table(system: str, world: World, rows: list[dict]) -> list[str]:
    """One system's table in Markdown, a row per fault."""
    main = world.MAIN
    head = ["fault", "what", "runs", "named", "crashed", "silently wrong", f"error of {main} [%]: median, worst"]
    head += ["CPU s", *world.COLUMNS]
    lines = [f"## {system}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for fault, what in {CLEAN: "nothing", **world.FAULTS}.items():
        mine = [row for row in rows if row["system"] == system and row["fault"] == fault]
        if not mine:
            continue
        errors = [100 * abs(row["found"][main][0] / row["truth"][main] - 1) for row in mine if main in row["found"]]
        worst = f"{np.median(errors):.1f}, {max(errors):.1f}" if errors else "-"
        flags = sum(map(named, mine)), sum(row["verdict"] == "crashed" for row in mine), sum(map(silently_wrong, mine))
        cpu = np.median([row["cpu"] for row in mine])
        cells = [fault, what, len(mine), *flags, worst, f"{cpu:.1f}", *(f(mine) for f in world.COLUMNS.values())]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return [*lines, ""]


def summary(worlds: Mapping[str, World], rows: list[dict]) -> list[str]:
    """Shares per system: faults named, without accepted conditions; false alarms, coverage of what was not flagged."""
    lines = [
        "## Summary",
        "",
        "| system | faults named | faults named or right | false alarms, clean | clean silently wrong "
        "| coverage, clean | coverage, faulty |",
        "|---|---|---|---|---|---|---|",
    ]
    for system, world in worlds.items():
        mine = [row for row in rows if row["system"] == system]
        clean, faulty = ([row for row in mine if (row["fault"] == CLEAN) == flag] for flag in (True, False))
        good = sum(named(row) or (row["verdict"] == "good" and not silently_wrong(row)) for row in faulty)
        faults = [row for row in faulty if row["fault"] not in world.CONDITIONS]
        cells = [(sum(map(named, faults)), len(faults)), (good, len(faulty)), (sum(map(named, clean)), len(clean))]
        cells += [(sum(map(silently_wrong, clean)), len(clean)), covered(clean), covered(faulty)]
        lines.append(f"| {system} | {' | '.join(share(*cell) for cell in cells)} |")
    return [*lines, ""]
