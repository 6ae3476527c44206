"""A line on stderr while something is compiled for longer than a second."""

from __future__ import annotations

import sys
import threading
from types import TracebackType

_DELAY = 1.0  # [s] what takes less needs no explanation
_asked = False


def show_progress(shown: bool = True) -> None:
    """Show the progress of compilations even where stderr is no terminal, for commands that a person waits for."""
    global _asked
    _asked = shown


class Progress:
    """Count of functions compiled, printed on stderr from the first second on.

    Args:
        total: functions to be compiled.
    """

    def __init__(self, total: int) -> None:
        self._total, self._done, self._shown = total, 0, False
        self._lock, self._timer = threading.Lock(), threading.Timer(_DELAY, self._tell)
        self._timer.daemon = True

    def __enter__(self) -> Progress:
        if _asked or sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            if self._shown and sys.stderr.isatty():
                print(file=sys.stderr)

    def advance(self) -> None:
        """Count one more."""
        with self._lock:
            self._done += 1
        if self._shown:
            self._tell()

    def _tell(self) -> None:
        with self._lock:
            self._shown = True
            start, end = ("\r", "") if sys.stderr.isatty() else ("", "\n")
            text = f"{start}codegen: {self._done} of {self._total} functions compiled"
            print(text, end=end, file=sys.stderr, flush=True)
