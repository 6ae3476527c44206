"""Choose the samples of a recording that a screen can show: minima, maxima and changes of every period, not all.

Min/max decimation: of each period every curve keeps its smallest and its largest value, so that no peak is lost however
short it is. A recording of any length gets at most :data:`MAX_PERIODS` periods, which bounds what is kept of it.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

#: Periods per second of a recording, and at most this many in all: a longer recording has fewer per second.
FRAME_RATE, MAX_PERIODS = 30.0, 3000
#: Changes that are kept of one period, half of them from its begin and half from its end.
MAX_CHANGES = 16


def frame_period(duration: float) -> float:
    """Return the length [s] of a period of a recording of ``duration`` [s]."""
    return max(1.0 / FRAME_RATE, duration / MAX_PERIODS)


def extremes(curve: np.ndarray, first: int, end: int) -> list[int]:
    """Return the rows of the smallest and the largest finite value from ``first`` to before ``end``; none of none.

    Args:
        curve: (m,).
        first: row.
        end: row behind the last one.
    """
    known = first + np.flatnonzero(np.isfinite(curve[first:end]))
    if not len(known):
        return []
    return [int(known[pick(curve[known])]) for pick in (np.argmin, np.argmax)]


class Chosen(NamedTuple):
    """Samples of a block.

    Attributes:
        rows: (k,) the chosen ones, in order.
        drawn: (k,) bool, those that the 3-D view shows: of each period the first, the last change and the one with the
            largest size.
    """

    rows: np.ndarray
    drawn: np.ndarray


class Thinning:
    """Thin a recording block by block.

    Args:
        begin: stamp of its first sample [s].
        period: of :func:`frame_period` [s].

    Attributes:
        left_out: changes so far that are not kept, because their period has more than :data:`MAX_CHANGES`.
    """

    def __init__(self, begin: float, period: float) -> None:
        self.left_out = 0
        self._begin, self._period = begin, period
        self._number, self._kind = -1.0, None

    def choose(self, t: np.ndarray, curves: np.ndarray, size: np.ndarray, kinds: np.ndarray) -> Chosen:
        """Choose from the next block of m samples.

        Args:
            t: (m,) stamps [s].
            curves: (m, k) values; NaN where there is none.
            size: (m,) by which the drawn one is chosen; NaN where there is none.
            kinds: (m,) objects; where one differs from the one before, both samples are kept.
        """
        numbers = np.floor((t - self._begin) / self._period + 1e-6)
        begins = np.flatnonzero(np.diff(numbers, prepend=self._number) != 0)
        changed = np.append(self._kind is not None and kinds[0] != self._kind, kinds[1:] != kinds[:-1])
        self._number, self._kind = numbers[-1], kinds[-1]
        drawn = set(begins.tolist())
        chosen = drawn | {len(t) - 1}  # the next block may begin with a change
        edges = sorted({0, *begins.tolist(), len(t)})
        for first, end in itertools.pairwise(edges):
            for curve in curves.T:
                chosen |= set(extremes(curve, first, end))
            sizes = np.nan_to_num(size[first:end])
            if sizes.any():
                drawn.add(first + int(np.argmax(sizes)))
            changes = first + np.flatnonzero(changed[first:end])
            if len(changes) > MAX_CHANGES:
                self.left_out += len(changes) - MAX_CHANGES
                changes = np.concatenate([changes[: MAX_CHANGES // 2], changes[-MAX_CHANGES // 2 :]])
            drawn |= set(changes[-1:].tolist())
            chosen |= {*changes.tolist(), *np.maximum(changes - 1, 0).tolist()}
        rows = np.array(sorted(chosen | drawn))
        return Chosen(rows, np.isin(rows, list(drawn)))
