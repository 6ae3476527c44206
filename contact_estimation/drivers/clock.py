"""Offset between a controller's clock and this computer's: a minimum-delay filter with drift.

A sample stamped s by the controller arrives at m on the host's monotonic clock,

    m = s + o + r s + d,    d >= 0,

with offset o, drift r and delay d (network, scheduling). The smallest m - s of each interval has hardly any delay. A
line through these minima gives o and r (Paxson, "On calibrating measurements of packet transit times", 1998). The
host's wall clock enters only by its difference to the monotonic clock. A step of it (NTP) moves the stamps at once;
drift and delay are not estimated from it.

The stamps follow a delay that lasts, because a clock that paused looks the same. Whoever commands the arm must not
follow it. The lateness is therefore counted from the smallest delay b of the whole connection,

    b_k = min(m_k - s_k, b_{k-1} + r_max (s_k - s_{k-1})),

which rises by no more than the largest accepted drift r_max, and falls at once.
"""

from __future__ import annotations

from collections import deque

import numpy as np

#: [s] The smallest delay is taken over so long; the drift is that of a line through so many of these.
_INTERVAL, _INTERVALS = 1.0, 20
#: Largest accepted drift, and slew of the stamps.
_MAX_DRIFT = 200e-6
#: [s] A larger change of the offset is a jump (a clock that paused or was set), not a delay ...
_JUMP = 0.02
#: ... once so many samples in a row have arrived that late, all alike.
_JUMP_SAMPLES = 25
#: [s] A delay that lasts so long is no stall: the samples of a stall arrive together, or the connection is given up.
_LASTING = 0.5


class ClockOffset:
    """Turns a controller's stamps into the host's time.

    Attributes:
        jumps: how often the controller's clock paused or was set, or the host's wall clock was.
        drift: of the host's clock against the controller's, 1e-6 is 1 ppm.
        delay: by how much the last sample came later than the smallest delay since :meth:`begin` [s].
        lateness: the smallest ``delay`` of the last half second or more [s]; a burst after a stall does not raise it.
    """

    def __init__(self) -> None:
        self.jumps, self.drift = 0, 0.0
        self.begin()

    def begin(self) -> None:
        """Begin a connection: the next sample sets the offset and the smallest delay."""
        self._smallest: tuple[int, int] | None = None  # (stamp, offset with the smallest delay) [ns]
        self._lately, self._before, self._until = 0.0, 0.0, 0  # [s] smallest delays of two intervals; [ns] the end
        self.delay = self.lateness = 0.0
        self.restart()

    def restart(self) -> None:
        """Let the next sample set the offset of the stamps, as after a lost connection; the smallest delay stays."""
        self._minima: deque[tuple[int, int]] = deque(maxlen=_INTERVALS)
        self._late: deque[int] = deque(maxlen=_JUMP_SAMPLES)
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
        jump_ns = round(1e9 * _JUMP)
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
        self._judge(controller_ns, monotonic_ns)
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

    def _judge(self, controller_ns: int, monotonic_ns: int) -> None:
        """Find how late a sample is, and how late all samples of the last interval or two are."""
        low = monotonic_ns - controller_ns
        if self._smallest is not None:
            stamp, offset = self._smallest
            low = min(low, offset + round(_MAX_DRIFT * max(controller_ns - stamp, 0)))
        self._smallest = (controller_ns, low)
        self.delay = 1e-9 * (monotonic_ns - controller_ns - low)
        if monotonic_ns >= self._until:
            self._before, self._lately = self._lately, self.delay
            self._until = monotonic_ns + round(1e9 * _LASTING)
        self._lately = min(self._lately, self.delay)
        self.lateness = min(self._before, self._lately)

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
        if controller_ns - self._opened < 1e9 * _INTERVAL:
            return
        self._minima.append(self._best)
        self._opened, self._best = controller_ns, (controller_ns, delay)
        times, offsets = (np.array(column, float) for column in zip(*self._minima))
        times, low = times - controller_ns, offsets.min()
        if len(times) > 2:
            slope = np.polyfit(times, offsets - low, 1)[0]
            self.drift = float(np.clip(slope, -_MAX_DRIFT, _MAX_DRIFT))
        # The lowest line of that slope: no minimum lies below it.
        self._anchor = (controller_ns, round(float(np.min(offsets - low - self.drift * times)) + low))

    def _slew(self, controller_ns: int, wall: int) -> None:
        """Follow the line, and the wall clock's own slewing, at a rate that preserves the spacing of the stamps."""
        missing = self._line(controller_ns) + wall - self._applied
        most = round(_MAX_DRIFT * (controller_ns - self._last)) + 1
        self._applied += min(max(missing, -most), most)
        self._wall = wall
