"""Innovation statistics per channel: outliers and the mean square, which tells whether the noise settings fit."""

from __future__ import annotations

import numpy as np

#: Blocks that are counted together: counting one by one would cost as much as a filter's update.
_BLOCKS_PER_COUNT = 64
#: Stops and shocks cause a few percent of outliers. A mean square of 2 is a noise setting too small by a factor of 1.4.
_MANY_OUTLIERS, _LARGE_MEAN = 0.05, 2.0
#: [s] Memory of the variance factors, and the time over which innovations are averaged: about that of a filter.
_FACTOR_MEMORY, _AVERAGED = 0.2, 0.05
#: Blocks that the noise settings count for beside the innovations.
_PRIOR_BLOCKS = 1.0


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


class VarianceFactors:
    """A posteriori variance factors: by how much less a covariance is than the noise settings say.

    The settings hold for an arm in motion; at rest there is less noise. With all noise less by a factor the estimates
    are the same and their covariance is less by it (variance of unit weight: Koch, Parameter Estimation and Hypothesis
    Testing in Linear Models, 1999, section 3.2). A filter of small gain owes half of its variance to the noise of the
    measurements and half to its lag. The squares of innovations tell the noise, those of their averages the lag:
    innovations of an optimal filter are white (Mehra, On the identification of variances and adaptive Kalman filtering,
    1970). The factor is the mean of both, and at most one: what exceeds the settings is an outlier or a mismatch.

    Args:
        channels: number of them.
        gate: standard deviations beyond which an innovation is an outlier.

    Attributes:
        factors: (channels,) (one buffer).
    """

    def __init__(self, channels: int, gate: float) -> None:
        self.factors, self._average, self._squares = np.ones((3, channels))
        self._gate = gate
        self.clear()

    def clear(self) -> None:
        """Start anew, from the settings."""
        self.factors[:], self._average[:], self._squares[:], self._blocks = 1.0, 0.0, 0.0, 0.0

    def add(self, normalised: np.ndarray, duration: float) -> None:
        """Take a block's innovations (channels,) over their standard deviations; the block lasts ``duration`` [s]."""
        kept, memory = float(np.exp(-duration / _AVERAGED)), float(np.exp(-duration / _FACTOR_MEMORY))
        within = np.minimum(np.maximum(normalised, -self._gate), self._gate)
        self._average += (1 - kept) * (within - self._average)
        white = (1 - kept) / (1 + kept)  # variance of the average of white innovations
        self._squares *= memory
        self._squares += 0.5 * (within**2 + self._average**2 / white)
        self._blocks = memory * self._blocks + 1.0
        np.minimum((_PRIOR_BLOCKS + self._squares) / (_PRIOR_BLOCKS + self._blocks), 1.0, out=self.factors)


def _describe(share: float, mean: float) -> str:
    """Say what a channel's share of outliers and its mean square innovation (1 where the noise is right) mean."""
    if share > _MANY_OUTLIERS:
        return ": too many for stops and shocks; friction or load is not as configured, or the noise is set too small"
    if mean > _LARGE_MEAN:
        return ": the noise is set too small, or its colour is not allowed for"
    if share > 0:
        return ": rejected, as at stops and shocks"
    return ""
