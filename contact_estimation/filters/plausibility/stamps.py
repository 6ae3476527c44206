"""Times between samples: a rate far below the configured one, or stamps in another unit than nanoseconds."""

from __future__ import annotations

#: [s] Memory of the share of time that lies in long intervals, and the most of it that interpolation can fill.
_MEMORY, _MOST = 0.5, 0.8
#: [s] No arm's controller samples at 10 kHz; so many intervals in a row below that are no jitter.
_SHORTEST, _SEVERAL = 1e-4, 10


class SampleIntervals:
    """Judges the times between successive samples.

    Args:
        longest: the time between samples [s] that most of them may have.

    Attributes:
        problem: what is wrong with them now; an empty string while nothing is.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self.reset()

    def reset(self) -> None:
        """Begin with a stream that nothing is known of."""
        self._long, self._short = 0.0, 0
        self.problem = ""

    def add(self, dt: float, queued: bool = False) -> None:
        """Judge the time ``dt`` [s] between two samples, the later of which may have ``queued`` behind a wait."""
        self._long += min(dt / _MEMORY, 1.0) * ((dt > self._longest) - self._long)
        self._short = self._short + 1 if dt < _SHORTEST and not queued else 0
        if self._long > _MOST or self._short >= _SEVERAL:
            self.problem = self.problem or self._describe(dt)  # the same words for as long as it lasts
        elif self.problem:
            self.problem = ""

    def _describe(self, dt: float) -> str:
        if self._short:
            return f"stamps are {1e9 * dt:g} ns apart: stamp_ns is in nanoseconds"
        return slow_rate(dt, self._longest)


def slow_rate(interval: float, longest: float) -> str:
    """Say that samples come too seldom.

    Args:
        interval: usual time between samples [s].
        longest: what most of them may have [s].
    """
    return (
        f"samples come every {1e3 * interval:.3g} ms, the sensor set takes at most {1e3 * longest:.3g} ms: friction "
        "and contact change between them; take them at the controller's rate (max_periods of the sensor set allows "
        "more)"
    )
