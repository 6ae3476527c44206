"""Innovation statistics per channel: outliers and the mean square, which tells whether the noise settings fit."""

from __future__ import annotations

import numpy as np

#: Blocks that are counted together: counting one by one would cost as much as a filter's update.
_BLOCKS_PER_COUNT = 64
#: Stops and shocks cause a few percent of outliers. A mean square of 2 is a noise setting too small by a factor of 1.4.
_MANY_OUTLIERS, _LARGE_MEAN = 0.05, 2.0


class InnovationStatistics:
    """Counts over all blocks since :meth:`clear`.

    Args:
        channels: their names.
        gate: standard deviations beyond which an innovation is an outlier.
        window: blocks of the running mean.

    Attributes:
        running: (channels,) mean square of the last blocks, from zero: a moment proves nothing.
    """

    def __init__(self, channels: list[str], gate: float, window: float = _BLOCKS_PER_COUNT) -> None:
        self.channels, self._gate, self._window = channels, gate, window
        self._recent, self._waiting = np.zeros((_BLOCKS_PER_COUNT, len(channels))), 0
        self.clear()

    def clear(self) -> None:
        """Start anew."""
        self._waiting, self._blocks = 0, 0
        self._outliers = np.zeros(len(self.channels), dtype=int)
        self._sum, self.running = np.zeros((2, len(self.channels)))

    def add(self, normalised: np.ndarray) -> bool:
        """Count a block's innovations over their standard deviations, one per channel; return whether means are new."""
        self._recent[self._waiting] = normalised
        self._waiting += 1
        complete = self._waiting == _BLOCKS_PER_COUNT
        if complete:
            self._count()
        return complete

    def _count(self) -> None:
        recent, limit = np.square(self._recent[: self._waiting]), self._gate**2
        bounded = np.minimum(recent, limit).sum(axis=0)
        self._outliers += np.count_nonzero(recent > limit, axis=0)
        self._sum += bounded
        self.running += (bounded - self._waiting * self.running) / max(self._window, self._waiting)
        self._blocks += self._waiting
        self._waiting = 0

    @property
    def outliers(self) -> np.ndarray:
        """Outliers per channel."""
        self._count()
        return self._outliers

    def facts(self) -> dict[str, str]:
        """Return a line for diagnostics per channel: how many outliers, how well the noise fits, what that means."""
        self._count()
        blocks = max(self._blocks, 1)
        lines = {}
        for name, count, mean in zip(self.channels, self._outliers.tolist(), (self._sum / blocks).tolist()):
            text = f"{count} of {self._blocks} blocks beyond {self._gate:g} standard deviations, mean square {mean:.2f}"
            lines[name] = text + _describe(count / blocks, mean)
        return lines


def _describe(share: float, mean: float) -> str:
    """Say what a channel's share of outliers and its mean square innovation (1 where the noise is right) mean."""
    if share > _MANY_OUTLIERS:
        return ": too many for stops and shocks; friction or load is not as configured, or the noise is set too small"
    if mean > _LARGE_MEAN:
        return ": the noise is set too small, or its colour is not allowed for"
    if share > 0:
        return ": rejected, as at stops and shocks"
    return ""
