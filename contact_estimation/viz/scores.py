"""Figures of one observer's error on a recording, gathered block by block."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from contact_estimation.io.elapsed import ForwardTime
from contact_estimation.viz.reference import Reference

#: A stiffness has settled when it stays this close (relative) for this long [s].
_WITHIN, _HOLD = 0.2, 0.5


class Scores:
    """Sums over an observer's estimates, and what they make.

    Args:
        reference: what the estimates are compared with.

    Attributes:
        reasons: how often estimates were invalid for each reason.
    """

    def __init__(self, reference: Reference | None) -> None:
        self._reference, self._samples, self._valid = reference, 0, 0
        self.reasons, self._mismatch = KindCounter(), KindCounter()
        self._steps: list[np.ndarray] = []
        self._periods: list[float] = []
        self._first, self._last = 0.0, np.zeros(0)  # [s] stamps of the first and the last row
        self._time = ForwardTime()
        self._modes, self._mode_changes, self._mode = False, 0, ""
        self._errors = {"contact": np.zeros(4), "free": np.zeros(4)}
        self._stiffnesses: list[np.ndarray] = []
        stiffness = 0.0 if reference is None else reference.stiffness
        self._settling = _Settling(stiffness) if 0.0 < stiffness < np.inf else None

    @classmethod
    def of(cls, columns: Mapping[str, np.ndarray], reference: Reference | None) -> Scores:
        """Score all rows of a log; arguments as of :meth:`add` and the class."""
        scores = cls(reference)
        scores.add(columns)
        return scores

    @property
    def duration(self) -> float:
        """Time [s] from the first row to the last."""
        return float(self._last[0] - self._first) if len(self._last) else 0.0

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Take the next rows.

        Args:
            columns: of :class:`~contact_estimation.io.export.EstimateLog`: ``t``, ``valid``, ``reason``, ``step_time``,
                ``force``, ``mode``, ``mode_probability``, and ``mismatch`` and ``stiffness`` where there are some.
        """
        valid, t = columns["valid"], self._time.stamps(columns["t"])
        rows = slice(self._samples, self._samples + len(valid))
        if self._samples == 0 and len(t):
            self._first = float(t[0])
        self._samples += len(valid)
        self._valid += int(np.count_nonzero(valid))
        self._steps.append(columns["step_time"][np.isfinite(columns["step_time"])])
        periods = np.diff(t, prepend=self._last)
        self._periods += [float(np.median(periods))] if len(periods) else []
        self._last = t[-1:]
        self.reasons.add(columns["reason"][~valid].tolist() if "reason" in columns else [])
        self._mismatch.add(columns["mismatch"].tolist() if "mismatch" in columns else [])
        self._add_modes(columns, valid)
        if self._reference is not None:
            self._compare({**columns, "t": t}, valid, self._reference, rows)

    def _add_modes(self, columns: Mapping[str, np.ndarray], valid: np.ndarray) -> None:
        if not columns["mode_probability"].shape[1] or not valid.any():
            return
        modes = columns["mode"][valid]
        self._mode_changes += int(np.count_nonzero(modes[1:] != modes[:-1]) + (self._modes and modes[0] != self._mode))
        self._modes, self._mode = True, modes[-1]

    def _compare(self, columns: Mapping[str, np.ndarray], valid: np.ndarray, reference: Reference, rows: slice) -> None:
        error, contact = columns["force"] - reference.force[rows], reference.contact[rows]
        for name, mask in (("contact", contact), ("free", reference.free[rows])):
            x, y, z = error[mask & valid].T
            self._errors[name] += len(z), z @ z, x @ x + y @ y, z.sum()
        if "stiffness" in columns:
            self._stiffnesses.append(columns["stiffness"][reference.stiff[rows] & valid])
        if self._settling is not None:
            stiffness = columns.get("stiffness", np.full(len(valid), np.nan))
            self._settling.add(columns["t"], stiffness, reference.stiff[rows])

    def figures(self) -> dict[str, Any]:
        """Say in figures how well the observer did.

        Returns:
            samples, valid; ``mismatch``: lines of :meth:`mismatches`; ``step_us`` (p50, p99); ``mode_changes``, how
            often the committed mode of valid estimates changed, where there are modes; with a reference ``force`` (RMSE
            and bias [N] of the TCP's z and xy, in contact and free; ``missing``: share of the samples without a
            reference, which are left out) and ``stiffness`` [N/m]: median in contact,
            relative error of the median, seconds from the first contact until the estimate stays within 20 % for half a
            second (None: never). Parts that cannot be told are None.
        """
        steps = 1e6 * np.concatenate(self._steps) if self._steps else np.zeros(0)
        found: dict[str, Any] = {"samples": self._samples, "valid": self._valid, "mismatch": self.mismatches()}
        found |= dict.fromkeys(("force", "stiffness", "step_us"))
        found["mode_changes"] = self._mode_changes if self._modes else None
        if len(steps):
            found["step_us"] = {"p50": float(np.median(steps)), "p99": float(np.percentile(steps, 99))}
        if self._reference is not None:
            found["force"] = {"reference": self._reference.label, "missing": self._reference.missing}
            found["force"] |= {name: _force_figures(*sums) for name, sums in self._errors.items()}
            found["stiffness"] = self._stiffness_figures(self._reference.stiffness)
        return found

    def mismatches(self) -> list[str]:
        """Say how model and data disagreed, and for how long, the longest first."""
        seconds = float(np.median(self._periods)) if self._periods else 0.0
        return [f"{words} ({count * seconds:.2f} s)" for words, count in self._mismatch.counts().most_common() if words]

    def _stiffness_figures(self, reference: float) -> dict[str, Any] | None:
        stiffnesses = np.concatenate(self._stiffnesses) if self._stiffnesses else np.zeros(0)
        if not len(stiffnesses):
            return None
        median = float(np.median(stiffnesses))
        if self._settling is None:
            return {"median": median, "reference": None, "error": None, "settled_s": None}
        error, seconds = median / reference - 1.0, self._settling.seconds
        return {"median": median, "reference": reference, "error": error, "settled_s": seconds}


def _force_figures(count: float, square_z: float, square_xy: float, sum_z: float) -> dict[str, float] | None:
    """Return RMSE and bias [N] from the sums of the errors."""
    if not count:
        return None
    rmse_z, rmse_xy = np.sqrt([square_z / count, square_xy / (2.0 * count)]).tolist()
    return {"rmse_z": rmse_z, "rmse_xy": rmse_xy, "bias_z": float(sum_z / count)}


class _Settling:
    """The time from the first contact until a stiffness stays near the ``reference`` [N/m]."""

    def __init__(self, reference: float) -> None:
        self._reference = reference
        self.seconds: float | None = None
        self._contact: float | None = None  # [s] stamp of the first contact
        self._begin: float | None = None  # [s] since when the stiffness is close

    def add(self, t: np.ndarray, stiffness: np.ndarray, contact: np.ndarray) -> None:
        """Take stamps [s], stiffness [N/m] and contact of the next rows."""
        first = 0
        if self._contact is None and contact.any():
            first = int(np.argmax(contact))
            self._contact = float(t[first])
        if self._contact is None or self.seconds is not None:
            return
        t, close = t[first:], np.abs(stiffness[first:] / self._reference - 1.0) < _WITHIN
        # Each run of close samples lasts until the sample that ends it; the first may have begun in an earlier block.
        ends = np.flatnonzero(~close)
        begins = np.concatenate([[0], ends + 1])
        stamps = t[np.minimum(begins, len(t) - 1)]
        stamps[0] = stamps[0] if self._begin is None else self._begin
        held = t[np.append(ends, len(t) - 1)] - stamps >= _HOLD
        if held.any():
            self.seconds = float(stamps[np.argmax(held)] - self._contact)
        self._begin = None if begins[-1] == len(t) else float(stamps[-1])


class KindCounter:
    """Counts sentences; those that differ in their numbers only are one kind, named by the last of them."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._last: dict[str, str] = {}

    def add(self, sentences: list[str]) -> None:
        """Count more of them."""
        for text in sentences:
            kind = _kind(text)
            self._counts[kind] += 1
            self._last[kind] = text

    def counts(self) -> Counter[str]:
        """Return how often each kind came."""
        return Counter({self._last[kind]: count for kind, count in self._counts.items()})


@functools.lru_cache(maxsize=1024)
def _kind(text: str) -> str:
    return re.sub(r"[-+.\d]+", "#", text)
