"""Stamps that tell another time than passed: the clock stepped, or samples queued and were stamped late."""

from __future__ import annotations

import math

import numpy as np

#: Why the estimate of the sample behind a step is not valid.
STEPPED = "stamps stepped, the arm did not: the clock was set, or samples were stamped late; one period counts"


class ClockSteps:
    """Compares the way of the joints with their velocity over the time by the stamps, and over one period.

    A driver whose process was kept waiting stamps the samples of the queue close together afterwards. They are expected
    only until they have made up for the wait: stamps in another unit are no such queue. Where the wait was integrated
    as time, as of an arm that hardly moves, so are the short times between them; where it was not, each of them counts
    as a period. The signals are not judged across a step: where one follows the other, nothing of them is known.

    Args:
        period: between samples [s].
        longest: time between stamps [s] that is not doubted: stamps jitter.
        apart: least time between two steps [s].
        least_way: difference [rad] that is no noise.

    Attributes:
        queued: the last sample came from the queue.
        problem: why no estimate may be used now: steps that follow each other; an empty string while there are none.
    """

    def __init__(self, period: float, longest: float, apart: float, least_way: float) -> None:
        self._period, self._longest, self._apart, self._least_way = period, longest, apart, least_way
        self.reset()

    def reset(self) -> None:
        """Begin anew, with other samples."""
        self._ahead = 0.0  # time [s] by which the stamps ran ahead of samples that may follow from the queue
        self._since_step = math.inf  # [s]
        self._time_lost = False  # the last wait was not integrated as time
        self.queued = False
        self.problem = ""

    def skip(self) -> None:
        """Take the last wait as a gap that is not integrated as time."""
        self._time_lost = True

    def stepped(self, dt: float, q: np.ndarray, last_q: np.ndarray, dq: np.ndarray) -> bool:
        """Return whether one period passed between two samples, and not the time ``dt`` [s] of their stamps.

        Args:
            dt: time between the stamps [s].
            q: (n,) positions of the later one [rad].
            last_q: (n,) positions of the earlier one [rad].
            dq: (n,) velocities of the later one [rad/s].
        """
        self._since_step += dt
        if self._since_step > self._apart:
            self.problem = ""
        self.queued = dt < 0.5 * self._period < self._ahead
        if self.queued:
            self._ahead += dt - self._period
            return self._time_lost
        self._time_lost, self._ahead = False, 0.0
        if dt <= self._longest:
            return False
        self._ahead = dt - self._period
        way = q - last_q
        by_stamps, by_period = (float(np.abs(way - time * dq).max()) for time in (dt, self._period))
        if max(2.0 * by_period, self._least_way) >= by_stamps:
            return False
        self._time_lost = True
        if self._since_step <= self._apart:
            self.problem = "stamps step again and again; have the driver stamp each sample when it is taken"
        self._since_step = 0.0
        return True
