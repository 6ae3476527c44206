"""Time that only runs forward, for durations and plots of a recording whose clock was set back."""

from __future__ import annotations

import numpy as np

#: [s] A stamp that is earlier by less is of a sample that came out of order; by more, the clock was set back.
OUT_OF_ORDER = 0.1


class ForwardTime:
    """Takes the steps back out of stamps, block by block: behind a step the time goes on from where it was."""

    def __init__(self) -> None:
        self._last, self._added = -np.inf, 0.0

    def stamps(self, t: np.ndarray) -> np.ndarray:
        """Return the next stamps (m,) [s] without their steps back; ``t`` itself where there was none."""
        back = -np.diff(t, prepend=self._last)
        back[back < OUT_OF_ORDER] = 0.0
        self._last = t[-1] if len(t) else self._last
        if not self._added and not back.any():
            return t
        forward: np.ndarray = t + (self._added + np.cumsum(back))
        self._added += float(back.sum())
        return forward
