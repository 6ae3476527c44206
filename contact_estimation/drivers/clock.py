"""Offset between a controller's clock and this computer's: a minimum-delay filter with drift.

A sample stamped s by the controller arrives at m on the host's monotonic clock,

    m = s + o + r s + d,    d >= 0,

with offset o, drift r and delay d (network, scheduling). The smallest m - s of each interval has hardly any delay. A
line through these minima gives o and r (Paxson, "On calibrating measurements of packet transit times", 1998). The
host's wall clock enters only by its difference to the monotonic clock. A step of it (NTP) moves the stamps at once;
drift and delay are not estimated from it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from contact_estimation.settings import key, positive


@dataclass(frozen=True, kw_only=True)
class ClockSettings:
    """Settings of the estimated offset between two clocks."""

    interval: float = key(1.0, doc="time over which the smallest delay is taken", unit="s", check=positive)
    intervals: int = key(20, doc="number of intervals for the line fit of the drift", check=positive)
    max_drift: float = key(200e-6, doc="largest accepted drift, and slew of the stamps", check=positive)
    jump: float = key(
        0.02,
        doc="change of offset that is a jump (a clock that paused or was set), not a delay",
        unit="s",
        check=positive,
    )
    jump_samples: int = key(
        25, doc="samples in a row that must arrive that late, all alike, before a jump is accepted", check=positive
    )


class ClockOffset:
    """Turns a controller's stamps into the host's time.

    Args:
        settings: of the filter.

    Attributes:
        jumps: how often the controller's clock paused or was set, or the host's wall clock was.
        drift: of the host's clock against the controller's, 1e-6 is 1 ppm.
    """

    def __init__(self, settings: ClockSettings | None = None) -> None:
        self._settings = settings or ClockSettings()
        self.jumps, self.drift = 0, 0.0
        self.restart()

    def restart(self) -> None:
        """Restart, as after a new connection: the next sample sets the offset."""
        self._minima: deque[tuple[int, int]] = deque(maxlen=self._settings.intervals)
        self._late: deque[int] = deque(maxlen=self._settings.jump_samples)
        self._anchor: tuple[int, int] | None = None  # (stamp, offset) of the line [ns]
        self._applied, self._wall, self._last = 0, 0, 0

    def stamp(self, controller_ns: int, monotonic_ns: int, wall_ns: int) -> int:
        """Return the stamp [ns, wall clock] of a sample.

        Args:
            controller_ns: the controller's stamp [ns].
            monotonic_ns: when the sample arrived, on the host's monotonic clock [ns].
            wall_ns: the same moment on the host's wall clock [ns].
        """
        delay, wall = monotonic_ns - controller_ns, wall_ns - monotonic_ns
        jump_ns = round(1e9 * self._settings.jump)
        if self._anchor is None:
            self._begin(controller_ns, delay, wall)
        expected = self._line(controller_ns)
        if delay > expected + jump_ns:
            self._late.append(delay)
        else:
            self._late.clear()
        # After a stall of the network or of this process, samples come in a burst: each less late than the one before.
        alike = len(self._late) == self._late.maxlen and max(self._late) - min(self._late) < jump_ns
        if delay < expected - jump_ns or alike:
            self.jumps += 1
            self._begin(controller_ns, min([delay, *self._late]), wall)
        if abs(wall - self._wall) > jump_ns:
            self.jumps += 1
            self._applied += wall - self._wall
            self._wall = wall
        self._collect(controller_ns, delay)
        self._slew(controller_ns, wall)
        self._last = controller_ns
        return controller_ns + self._applied

    def _begin(self, controller_ns: int, delay: int, wall: int) -> None:
        self._minima.clear()
        self._late.clear()
        self._opened, self._best = controller_ns, (controller_ns, delay)
        self._anchor, self.drift = (controller_ns, delay), 0.0
        self._wall, self._applied, self._last = wall, delay + wall, controller_ns

    def _line(self, controller_ns: int) -> int:
        """Offset [ns] of the monotonic clock that the line predicts."""
        assert self._anchor is not None
        start, offset = self._anchor
        return offset + round(self.drift * (controller_ns - start))

    def _collect(self, controller_ns: int, delay: int) -> None:
        """Keep the smallest delay of every interval, and fit the line through them."""
        if delay < self._best[1]:
            self._best = (controller_ns, delay)
        if delay < self._line(controller_ns):  # a delay is never negative
            self._anchor = (controller_ns, delay)
        if controller_ns - self._opened < 1e9 * self._settings.interval:
            return
        self._minima.append(self._best)
        self._opened, self._best = controller_ns, (controller_ns, delay)
        times, offsets = (np.array(column, float) for column in zip(*self._minima))
        times, low = times - controller_ns, offsets.min()
        if len(times) > 2:
            slope = np.polyfit(times, offsets - low, 1)[0]
            self.drift = float(np.clip(slope, -self._settings.max_drift, self._settings.max_drift))
        # The lowest line of that slope: no minimum lies below it.
        self._anchor = (controller_ns, round(float(np.min(offsets - low - self.drift * times)) + low))

    def _slew(self, controller_ns: int, wall: int) -> None:
        """Follow the line, and the wall clock's own slewing, at a rate that preserves the spacing of the stamps."""
        missing = self._line(controller_ns) + wall - self._applied
        most = round(self._settings.max_drift * (controller_ns - self._last)) + 1
        self._applied += min(max(missing, -most), most)
        self._wall = wall
