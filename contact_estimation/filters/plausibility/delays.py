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

from contact_estimation.filters.plausibility.explanation import FREE, RIVAL_FREE

#: [s] Delays that are looked for.
DELAYS = (0.04, 0.08, 0.14)
#: [s] Memory of the running means.
_MEMORY = 1.0
#: A larger misfit counts as this: a rival that fails badly is no more evidence than one that fails.
_MOST = 3.0
#: A delay must leave a misfit that is smaller by this than that of the torque as it is ...
_BETTER = 0.06
#: ... and at most this share of the misfit of a punctual and of an early torque.
_SHARE = 0.5
#: The running means count from this weight on: 0.3 s of motion.
_WEIGHT = 0.25


class DelayEvidence:
    """Running means of the misfits without a delay, with each of :data:`DELAYS`, and with each of them negative.

    Attributes:
        found: index of the delay that the torque has, -1 for none.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin with a stream that nothing is known of."""
        self._mean = np.zeros((3, len(DELAYS)))  # of the misfit without, with and against each delay
        self._weight = np.zeros(len(DELAYS))
        self.found = -1

    def add(self, duration: float, own: float, late: np.ndarray, early: np.ndarray) -> None:
        """Count a block in motion.

        Args:
            duration: length of the block [s].
            own: misfit of the torque as it is.
            late: (delays,) misfit if it is late.
            early: (delays,) misfit if it is early by as much.
        """
        counts = np.fmin(own, late) < FREE if self.found >= 0 else np.ones_like(self._weight)
        gain = min(duration / _MEMORY, 1.0) * counts
        misfits = np.fmin(np.stack([np.full_like(late, own), late, early]), _MOST)
        self._mean += gain * (misfits - self._mean)
        self._weight += gain * (1.0 - self._weight)
        without, delayed, advanced = self._mean
        if self.found >= 0:
            if without[self.found] < delayed[self.found]:
                self.found = -1
            return
        better = (without - delayed > _BETTER) & (delayed < _SHARE * np.fmin(without, advanced.min()))
        better &= (delayed < RIVAL_FREE * self._weight) & (self._weight > _WEIGHT)
        if better.any():
            self.found = int(np.argmin(np.where(better, delayed, np.inf)))
