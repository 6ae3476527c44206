"""Innovation statistics per channel: outliers and the mean square, which shows whether the noise settings fit."""

from __future__ import annotations

import math

import numpy as np

#: Blocks that are counted together: counting one by one would cost as much as a filter's update.
_BLOCKS_PER_COUNT = 64
#: Stops and shocks cause a few percent of outliers. A mean square of 2 is a noise setting too small by a factor of 1.4.
_MANY_OUTLIERS, _LARGE_MEAN = 0.05, 2.0
#: [s] Memory of the variance factors, and the time over which innovations are averaged: about that of a filter.
_FACTOR_MEMORY, _AVERAGED = 0.2, 0.05
#: Standard deviations that an average of innovations counts for at most: more is a push that sets in, no lag.
_LARGE_AVERAGE = 2.0
#: [s] Memory of what counts as evidence: an arm that sets off has the noise of its last motion.
_EVIDENCE_MEMORY = 10.0
#: Blocks that the noise settings count for beside the innovations, in the factors and as evidence.
_PRIOR_BLOCKS, _PRIOR_EVIDENCE = 1.0, 10.0


class InnovationStatistics:
    """Counts over all blocks since :meth:`reset`.

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
        self.reset()

    def reset(self) -> None:
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
        outliers, bounded = self._counted()
        self._outliers += outliers
        self._sum += bounded
        self.running += (bounded - self._waiting * self.running) / max(self._window, self._waiting)
        self._blocks += self._waiting
        self._waiting = 0

    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return outliers and bounded squares (channels,) of the blocks that wait."""
        recent, limit = np.square(self._recent[: self._waiting]), self._gate**2
        return np.count_nonzero(recent > limit, axis=0), np.minimum(recent, limit).sum(axis=0)

    def facts(self) -> dict[str, str]:
        """Return a line for diagnostics per channel: how many outliers, how well the noise fits, what that means."""
        counted, blocks = self._counted(), self._blocks + self._waiting
        outliers, means = self._outliers + counted[0], (self._sum + counted[1]) / max(blocks, 1)
        lines = {}
        for name, count, mean in zip(self.channels, outliers.tolist(), means.tolist()):
            text = f"{count} of {blocks} blocks beyond {self._gate:g} standard deviations, mean square {mean:.2f}"
            lines[name] = text + _describe(count / max(blocks, 1), mean)
        return lines


class VarianceFactors:
    """A posteriori variance factors: by how much less a covariance is than the noise settings say.

    The settings hold for an arm in motion; at rest there is less noise. With all noise less by a factor the estimates
    are the same and their covariance is less by it (variance of unit weight: Koch, Parameter Estimation and Hypothesis
    Testing in Linear Models, 1999, section 3.2). A filter of small gain owes half of its variance to the noise of the
    measurements and half to its lag. The squares of innovations show the noise, those of their averages the lag:
    innovations of an optimal filter are white (Mehra, On the identification of variances and adaptive Kalman filtering,
    1970). The factor is the mean of both, and at most one: what exceeds the settings is an outlier or a mismatch.

    The same noise decides between modes. There the factor is that of the last ``_EVIDENCE_MEMORY``, or the present one
    if that is larger, and not less than ``least``: what sets off now must not look like a contact.

    Args:
        channels: number of them.
        gate: standard deviations beyond which an innovation is an outlier.
        least: smallest share of its variance by which an innovation counts as evidence.

    Attributes:
        factors: (channels,) of the covariance (one buffer).
        evidence: (channels,) of the likelihood (one buffer).
    """

    def __init__(self, channels: int, gate: float, least: float) -> None:
        self.factors, self.evidence, self._average = np.ones((3, channels))
        self._recent = _FadingShare(channels, _FACTOR_MEMORY, _PRIOR_BLOCKS)
        self._lasting = _FadingShare(channels, _EVIDENCE_MEMORY, _PRIOR_EVIDENCE)
        self._gate, self._least = gate, least
        self.reset()

    def reset(self) -> None:
        """Start anew, from the settings."""
        self.factors[:] = self.evidence[:] = 1.0
        self._average[:] = 0.0
        self._recent.reset()
        self._lasting.reset()

    def add(self, normalised: np.ndarray, duration: float) -> None:
        """Take a block's innovations (channels,) over their standard deviations; the block lasts ``duration`` [s]."""
        kept = math.exp(-duration / _AVERAGED)
        within = np.minimum(np.maximum(normalised, -self._gate), self._gate)
        self._average += (1 - kept) * (within - self._average)
        white = (1 - kept) / (1 + kept)  # variance of the average of white innovations
        squares = within**2
        lag = np.minimum(self._average**2 / white, _LARGE_AVERAGE**2)
        recent = self._recent.add(0.5 * (squares + lag), duration)
        np.minimum(recent, 1.0, out=self.factors)
        if self._least < 1:
            lasting = self._lasting.add(squares, duration)
            np.clip(np.maximum(lasting, self.factors), self._least, 1.0, out=self.evidence)


class _FadingShare:
    """Mean square of normalised innovations that fades, from one: the settings count as ``prior`` blocks.

    Args:
        channels: number of them.
        memory: [s].
        prior: [blocks].
    """

    def __init__(self, channels: int, memory: float, prior: float) -> None:
        self._sum, self._blocks, self._memory, self._prior = np.zeros(channels), 0.0, memory, prior

    def reset(self) -> None:
        """Start anew."""
        self._sum[:], self._blocks = 0.0, 0.0

    def add(self, squares: np.ndarray, duration: float) -> np.ndarray:
        """Take those (channels,) of a block of ``duration`` [s]; return the mean (channels,)."""
        kept = math.exp(-duration / self._memory)
        self._sum *= kept
        self._sum += squares
        self._blocks = kept * self._blocks + 1.0
        return np.asarray((self._prior + self._sum) / (self._prior + self._blocks))


def _describe(share: float, mean: float) -> str:
    """Say what a channel's share of outliers and its mean square innovation (1 where the noise is right) mean."""
    if share > _MANY_OUTLIERS:
        return ": too many for stops and shocks; friction or load is not as configured, or the noise is set too small"
    if mean > _LARGE_MEAN:
        return ": the noise is set too small, or its colour is not allowed for"
    if share > 0:
        return ": rejected, as at stops and shocks"
    return ""
