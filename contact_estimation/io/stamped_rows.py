"""Stamped rows on disk, taken at other stamps: what joins the topics of a bag."""

from __future__ import annotations

import bisect

import numpy as np

from contact_estimation.io.row_file import RowFile

#: [s] Values are interpolated over at most this time: one period of the 5 Hz at which a reference is low-passed.
LONGEST_BRIDGE = 0.2


class StampedRows:
    """Stamps (m,) int64 [ns] and values (m, columns), kept in temporary files.

    Args:
        columns: number of values per stamp.

    Attributes:
        stamps: the file of the stamps.
        values: the file of the rows.
    """

    def __init__(self, columns: int) -> None:
        self.stamps, self.values = RowFile(np.int64), RowFile(tail=(columns,))
        self._begins: list[tuple[int, int]] = []  # of each block: first stamp and row
        self._last: int | None = None
        self._sorted: StampedRows | None = self

    def __len__(self) -> int:
        return len(self.stamps)

    def append(self, stamps: np.ndarray, values: np.ndarray) -> None:
        """Add a block of rows.

        Args:
            stamps: (m,) [ns].
            values: (m, ...) rows.
        """
        if (self._last is not None and stamps[0] < self._last) or (np.diff(stamps) < 0).any():
            self._sorted = None
        self._begins.append((int(stamps[0]), len(self)))
        self._last = int(stamps[-1])
        self.stamps.append(stamps)
        self.values.append(values)

    def at(self, stamps: np.ndarray, begin: int) -> np.ndarray:
        """Return the values at ``stamps`` (k,), which are the rows from ``begin`` on of what they belong to.

        Returns:
            (k, columns): the own rows there where the stamps agree, else interpolated; NaN outside their time and in
            gaps longer than :data:`LONGEST_BRIDGE`.
        """
        rows = slice(begin, begin + len(stamps))
        if np.array_equal(self.stamps[rows], stamps):
            return self.values[rows]
        self._sorted = self._sorted or self._sort()
        return self._sorted._interpolate(stamps)

    def _sort(self) -> StampedRows:
        """Return the rows in the order of their stamps."""
        order, values = np.argsort(self.stamps[:], kind="stable"), StampedRows(self.values.tail[0])
        values.append(self.stamps[:][order], self.values[:][order])
        return values

    def _interpolate(self, stamps: np.ndarray) -> np.ndarray:
        first = max(bisect.bisect_left(self._begins, (int(stamps.min()), 0)) - 1, 0)
        last = bisect.bisect_right(self._begins, (int(stamps.max()), len(self)))
        rows = slice(self._begins[first][1], self._begins[last][1] + 1 if last < len(self._begins) else len(self))
        origin = self._begins[0][0]  # float64 holds a difference of stamps to the nanosecond, an absolute stamp not
        t, t_there = (stamps - origin) * 1e-9, (self.stamps[rows] - origin) * 1e-9
        found = np.stack([np.interp(t, t_there, c, left=np.nan, right=np.nan) for c in self.values[rows].T], axis=1)
        after = np.clip(np.searchsorted(t_there, t), 1, len(t_there) - 1)
        begin, end = t_there[after - 1], t_there[after]
        unknown = (begin < t) & (t < end) & (end - begin > LONGEST_BRIDGE)  # but no own stamp
        found[unknown] = np.nan
        return found
