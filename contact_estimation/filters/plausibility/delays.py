"""A torque that is late: which delay of the model explains it, on average over a motion.

One block of samples hardly tells a delay from friction. Over a motion with its reversals the running means

    S_d = mean of misfit(tau(t) - model(t - d)),   S_0 = mean of misfit(tau(t) - model(t)),

do: friction is no smaller under a delay. Blocks that neither explains as those of a free arm do not count.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.filters.plausibility.settings import TorqueReadingSettings


class DelayEvidence:
    """Running means of the misfits with and without each delay.

    Args:
        settings: the delays and how much better one must be.

    Attributes:
        found: index of the delay that the torque has, -1 for none.
    """

    def __init__(self, settings: TorqueReadingSettings) -> None:
        self._settings = settings
        self.forget()

    def forget(self) -> None:
        """Begin with a stream that nothing is known of."""
        self._mean = np.zeros((2, len(self._settings.delays)))  # of the misfit without and with each delay
        self._weight = np.zeros(len(self._settings.delays))
        self.found = -1

    def add(self, duration: float, own: float, late: np.ndarray) -> None:
        """Count a block of ``duration`` [s] in motion, with misfits ``own`` and ``late`` (delays,)."""
        s = self._settings
        counts = np.fmin(own, late) < s.free
        gain = min(duration / s.delay_time, 1.0) * counts
        # A rival that fails badly tells no more than one that fails.
        both = np.fmin(np.stack([np.full_like(late, own), late]), s.delay_cap)
        self._mean += gain * (both - self._mean)
        self._weight += gain * (1.0 - self._weight)
        without, delayed = self._mean
        if self.found >= 0:
            if without[self.found] < delayed[self.found]:
                self.found = -1
            return
        better = (without - delayed > s.delay_better) & (delayed < s.delay_share * without)
        better &= self._weight > s.delay_weight
        if better.any():
            self.found = int(np.argmin(np.where(better, delayed, np.inf)))
