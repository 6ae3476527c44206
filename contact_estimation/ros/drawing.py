"""What people look at is drawn on a thread of its own: a sample never waits for a marker."""

from __future__ import annotations

import threading
from collections.abc import Callable


class DrawingThread:
    """Calls a function at a rate, beside the thread that takes samples.

    The two share the interpreter. :func:`~contact_estimation.ros.executor.run` makes Python change threads often
    enough that a sample waits for a tenth of a millisecond at most.

    Args:
        draw: what is called.
        rate: how often [Hz].
        failed: called with what ``draw`` raised; the thread goes on.
    """

    def __init__(self, draw: Callable[[], None], rate: float, failed: Callable[[Exception], None]) -> None:
        self._rate, self._draw, self._failed = rate, draw, failed
        self._wake, self._closed = threading.Event(), False
        self._thread = threading.Thread(target=self._work, name="drawing", daemon=True)
        self._thread.start()

    def set_rate(self, rate: float) -> None:
        """Draw at ``rate`` [Hz] from now on."""
        self._rate = rate
        self._wake.set()

    def close(self) -> None:
        """Stop, and wait until nothing is drawn any more."""
        self._closed = True
        self._wake.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _work(self) -> None:
        while not self._closed:
            if self._wake.wait(1.0 / self._rate):
                self._wake.clear()
                continue
            try:
                self._draw()
            except Exception as error:  # a defect shall cost a picture, not all later ones
                self._failed(error)
