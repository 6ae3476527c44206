"""What one pass over a recording tells: its length, and what is wrong with its samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contact_estimation.filters.plausibility.stamps import slow_rate
from contact_estimation.io.elapsed import OUT_OF_ORDER

if TYPE_CHECKING:
    from contact_estimation.io.recording import Recording, Samples


class Survey(NamedTuple):
    """What a pass found.

    Attributes:
        duration: time from the first to the last stamp [s]; where the clock was set back, it goes on from there.
        problems: one sentence per kind of bad sample, with the place of the first one.
        force_missing: share of the samples without a measured force (NaN in it); 0 without a sensor.
    """

    duration: float
    problems: list[str]
    force_missing: float


def missing_words(share: float) -> str:
    """Say for which share of the time something is missing; never as 0 %, which would say that it is not.

    Args:
        share: above 0.
    """
    return f"missing (NaN) for {max(100.0 * share, 0.01):.3g} % of the time"


def survey(
    recording: Samples,
    max_gap: float = float("inf"),
    longest_period: float = float("inf"),
    limits: tuple[np.ndarray, np.ndarray] | None = None,
) -> Survey:
    """Look for bad numbers, stamps that stand or run back, gaps, a rate that is too low, and positions in degrees.

    Args:
        recording: in memory or in a file.
        max_gap: longest time between samples [s] that is no gap.
        longest_period: the time between samples [s] that most of them may have.
        limits: lower and upper limit (n,) [rad] of the robot's joints; infinite of a joint without one.

    Raises:
        RecordingError: the file is damaged.
    """
    found, row, longest, first, last, medians, missing = _Found(), 0, 0, 0, None, [], 0
    back = 0  # [ns] that the clock was set back
    for block in recording.blocks():
        for name in ("q", "dq", "tau"):
            bad = ~np.isfinite(getattr(block, name))
            rows = np.flatnonzero(bad.any(axis=1))
            of = block.joint_names[int(np.argmax(bad[rows[0]]))] if len(rows) else ""
            found.add(f"{{}} samples hold NaN or infinite {name}", rows, row, block, f", {of}")
        if limits is not None:
            beyond = (block.q < limits[0] - 2.0 * np.pi) | (block.q > limits[1] + 2.0 * np.pi)
            rows = np.flatnonzero(beyond.any(axis=1))
            joint = int(np.argmax(beyond[rows[0]])) if len(rows) else 0
            at = f", {block.joint_names[joint]} {block.q[rows[0], joint]:.4g} rad" if len(rows) else ""
            found.add("{} positions are more than a turn beyond the joint limits, in degrees?", rows, row, block, at)
        if block.wrench_tcp is not None:
            rows = np.flatnonzero(np.isinf(block.wrench_tcp).any(axis=1))
            found.add("{} measured wrenches are infinite", rows, row, block)
            missing += np.count_nonzero(np.isnan(block.wrench_tcp[:, :3]).any(axis=1))
        stamps = block.stamps_ns
        first, before = (int(stamps[0]), stamps[:1]) if last is None else (first, last)
        steps = np.diff(stamps, prepend=before)  # of the first sample of all: 0, and no step
        standing = np.flatnonzero(steps == 0)
        found.add("{} stamps repeat the one before", standing[1:] if last is None else standing, row, block)
        found.add("{} stamps are earlier than the one before", np.flatnonzero(steps < 0), row, block)
        back -= int(steps[steps <= -OUT_OF_ORDER * 1e9].sum())
        longest = max(longest, int(steps.max()))
        gaps = np.flatnonzero(steps > max_gap * 1e9)
        found.add(f"{{}} gaps are longer than {max_gap:g} s", gaps, row, block)
        if len(stamps) > 1:
            medians.append(float(np.median(np.diff(stamps))) / 1e9)
        row, last = row + len(block), stamps[-1:]
    end, step = first if last is None else int(last[0]), float(np.median(medians)) if medians else 0.0
    gaps_end = f", longest {longest / 1e9:.3g} s" + (_unit_question(step) if step > max_gap else "")
    seldom = [slow_rate(step, longest_period)] if longest_period < step <= max_gap else []
    return Survey(float(end - first + back) / 1e9, found.sentences(gaps_end) + seldom, missing / max(row, 1))


def _unit_question(step: float) -> str:
    """Ask for the unit of `t` in which the median step [s] would be one of an arm's controller."""
    units = {1e9: "nanoseconds", 1e6: "microseconds", 1e3: "milliseconds"}
    unit = next((name for factor, name in units.items() if step / factor > 1e-4), "")
    return f"; the median step is {step:.4g} s" + (f": is `t` in {unit}?" if unit else "")


class _Found:
    """Kinds of bad samples, in the order in which they are looked for."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._places: dict[str, str] = {}

    def add(self, kind: str, rows: np.ndarray, start: int, block: Recording, more: str = "") -> None:
        """Count ``rows`` of a block that begins at sample ``start``."""
        self._counts[kind] = self._counts.get(kind, 0) + len(rows)
        if len(rows) and kind not in self._places:
            stamp = block.stamps_ns[rows[0]] / 1e9
            self._places[kind] = f"sample {start + int(rows[0])}, t = {stamp:.4f} s{more}"

    def sentences(self, longest: str) -> list[str]:
        """One per kind that occurs; ``longest`` ends that on gaps."""
        return [
            f"{kind.format(count)} (first: {self._places[kind]}{longest if ' gaps ' in kind else ''})"
            for kind, count in self._counts.items()
            if count
        ]
