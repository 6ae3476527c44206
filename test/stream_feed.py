"""A stream of samples over an observer that writes down what it is given, shared by the tests of streams."""

import numpy as np

from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.filters.stream import SampleStream

Q = np.array([0.2, -1.6, 1.9, -1.8, -1.5, 0.3])
PERIOD = 2_000_000
T0 = 1_700_000_000_000_000_000


class Notes:
    """An observer that writes down what it is given."""

    name, backend = "notes", "c"

    def __init__(self):
        self.resets, self.steps, self.value = [], [], 1.0

    def reset(self, t, q):
        self.resets.append((t, q.copy()))

    def step(self, dt, q, dq, tau):
        self.steps.append((dt, q.copy(), dq.copy(), tau.copy()))

    def estimate(self):
        three = np.full(3, self.value)
        return Estimate(0.0, Q, Q, Q, three, three, three, np.eye(3))


class Feed:
    """A stream over :class:`Notes` with ten good samples behind it."""

    def __init__(self, arm, good=10, **sensors):
        self.arm, self.observer = arm, Notes()
        self.stream = SampleStream(self.observer, arm, SensorSettings(**sensors))
        self.stamp, self.q, self.dq, self.tau = T0, Q.copy(), np.zeros(6), arm.gravity(Q)
        for _ in range(good):
            self()

    def __call__(self, periods=1, **changes):
        sample = {"q": self.q, "dq": self.dq, "tau": self.tau} | changes
        self.stamp += round(periods * PERIOD)
        return self.stream.push(self.stamp, **sample)
