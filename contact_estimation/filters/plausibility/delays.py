"""A torque that is late: which delay of the model explains it, on average over a motion.

One block of samples hardly distinguishes a delay from friction. Over a motion with its reversals the running means

    S_d = mean of misfit(tau(t) - model(t - d)),   S_0 = mean of misfit(tau(t) - model(t)),

do: friction is no smaller under a delay. A delay is found where S_d is that of a free arm, a small share of S_0, and of
every

    E_d = mean of misfit(tau(t - d) - model(t)),

the same torque taken for early. Two things separate a delay from a contact, whose torque may follow the motion, too:

- A late torque of a free arm is explained all the time. A contact is so in some blocks only, by chance. So every block
  counts before a delay is found: one that nothing explains speaks against it.
- No torque is early. The torque of a compliant arm that is shaken leads its model by as much as its damping makes, and
  what is periodic is as late as it is early. What an early torque explains, too, is no delay.

A delay that was found is refuted by a free arm only. Then blocks that neither explains do not count: a contact does not
make the torque punctual.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.filters.plausibility.settings import TorqueReadingSettings


class DelayEvidence:
    """Running means of the misfits without a delay, with each of them, and with each of them negative.

    Args:
        settings: the delays and how much better one must be.

    Attributes:
        found: index of the delay that the torque has, -1 for none.
    """

    def __init__(self, settings: TorqueReadingSettings) -> None:
        self._settings = settings
        self.reset()

    def reset(self) -> None:
        """Begin with a stream that nothing is known of."""
        self._mean = np.zeros((3, len(self._settings.delays)))  # of the misfit without, with and against each delay
        self._weight = np.zeros(len(self._settings.delays))
        self.found = -1

    def add(self, duration: float, own: float, late: np.ndarray, early: np.ndarray) -> None:
        """Count a block in motion.

        Args:
            duration: length of the block [s].
            own: misfit of the torque as it is.
            late: (delays,) misfit if it is late.
            early: (delays,) misfit if it is early by as much.
        """
        s = self._settings
        counts = np.fmin(own, late) < s.free if self.found >= 0 else np.ones_like(self._weight)
        gain = min(duration / s.delay_time, 1.0) * counts
        # A rival that fails badly is no more evidence than one that fails.
        misfits = np.fmin(np.stack([np.full_like(late, own), late, early]), s.delay_cap)
        self._mean += gain * (misfits - self._mean)
        self._weight += gain * (1.0 - self._weight)
        without, delayed, advanced = self._mean
        if self.found >= 0:
            if without[self.found] < delayed[self.found]:
                self.found = -1
            return
        better = (without - delayed > s.delay_better) & (delayed < s.delay_share * np.fmin(without, advanced.min()))
        better &= (delayed < s.rival_free * self._weight) & (self._weight > s.delay_weight)
        if better.any():
            self.found = int(np.argmin(np.where(better, delayed, np.inf)))
