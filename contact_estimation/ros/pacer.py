"""Reads a backend in its own thread and hands every sample over when it is due."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from contact_estimation.drivers.backend import Backend, Sample

#: Pause [s] where the source's time jumps back (a recording that loops), so that consumers see a gap and start anew.
_LAP_PAUSE = 0.5

#: Pause [s] between being ready and the first sample: discovery is mutual, but not simultaneous, and slow on a busy
#: machine.
_SETTLE = 2.0


class Pacer:
    """Delivers samples at the source's own spacing, ``rate`` times as fast.

    ``deliver(sample, stamp_ns)`` gets the stamp to publish: the source's own with ``keep_stamps``; else the time of
    the start plus the elapsed time of the source, so that stamps keep the exact spacing of the samples at any rate and
    jitter. ``ready()`` is polled before the start; ``done(error)`` is called at the end, with what went
    wrong or None. If the delivery is more than ``max_late`` [s] late, the source's clock pauses: the stamps continue in
    the present after a gap. A source that is too slow then appears as slow, and never as old.
    """

    def __init__(
        self,
        backend: Backend,
        deliver: Callable[[Sample, int], None],
        ready: Callable[[], bool],
        done: Callable[[Exception | None], None],
        rate: float = 1.0,
        keep_stamps: bool = False,
        max_late: float = math.inf,
    ) -> None:
        self._backend, self._deliver, self._ready, self._done = backend, deliver, ready, done
        self._rate, self._keep, self._max_late = rate, keep_stamps, max_late
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pacer", daemon=True)
        self.delivered = 0
        self.late, self.paused = 0, 0

    def start(self) -> None:
        """Begin when ``ready()`` is true."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)

    def _run(self) -> None:
        error = None
        try:
            while not self._ready() and not self._stop.wait(0.05):
                pass
            self._stop.wait(_SETTLE)
            self._play()
        except Exception as problem:  # reported by the node, which ends with it
            error = problem
        if not self._stop.is_set():
            self._done(error)

    def _play(self) -> None:
        first, started, epoch = 0, 0.0, 0
        last: int | None = None
        while not self._stop.is_set() and (sample := self._backend.read()) is not None:
            if last is None or sample.stamp_ns < last:
                if last is not None:
                    self._stop.wait(_LAP_PAUSE)
                first, started, epoch = sample.stamp_ns, time.perf_counter(), time.time_ns()
            last = sample.stamp_ns
            elapsed = last - first
            wait = started + elapsed * 1e-9 / self._rate - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            elif wait < -1e-3:
                self.late += 1
            if wait < -self._max_late:
                self.paused += 1
                started -= wait
                epoch -= round(1e9 * wait)
            self._deliver(sample, last if self._keep else epoch + elapsed)
            self.delivered += 1
