"""Whether a payload that is carried has gone, or one that had gone is back: a sequential test of a change.

The torque tau of a block less friction is that of the load and of what touches the arm. The load Y pi that is taken to
be there, and another one, Y pi', explain it in two ways:

    the load has changed    tau ~ N(Y pi', S)
    something pushes        tau ~ N(Y pi, S + L)

S is the covariance of friction, loads and noise, L that of pushes. A push explains any torque, so none well. The load
has changed where the ratio of the likelihoods exceeds 1 / significance (Wald, Sequential Analysis, 1947) and tau lies
within the quantiles of S. It must do so in windows in a row, without a trend: a force that grows passes any load's.
The trend must be known well enough that one over :data:`_SLOWEST` would show.

A table, too, may carry the weight. Its force changes with the height, and the arm has gone down to it.
"""

from __future__ import annotations

import math

import numpy as np

from contact_estimation.filters.chi_square import chi_square_quantile
from contact_estimation.filters.gaussian import ZeroMeanGaussian

#: Blocks in a window; least number of windows, and number after which the noise settings judge the trend.
_BLOCKS, _LEAST, _MOST = 5, 4, 10
#: Variance of a window's mean by noise of a correlation time of two blocks, over that by white noise.
_COLOUR = 2.0
#: Least variance of a window, in that by the noise settings: keeps the trend of constant torque defined.
_LEAST_SHARE = 1e-3
#: [s] Slowest release of a load that is waited for.
_SLOWEST = 3.0
#: [m] What the height of an arm at rest changes by noise of the encoders.
_HEIGHT_NOISE = 2e-5


class PayloadChange:
    """Collects blocks of torque for two loads, with the friction of one time.

    Args:
        n: number of joints.
        significance: probability of a false alarm.

    Attributes:
        left: torque (n,) [Nm] of the last window that the other load leaves.
    """

    def __init__(self, n: int, significance: float) -> None:
        self._sums, self._squares, self.left = np.zeros((2, n)), np.zeros(n), np.zeros(n)
        self._least_evidence = -math.log(significance)
        self._largest, self._largest_beside = (chi_square_quantile(k, significance) for k in (1, max(n - 1, 1)))
        self.reset()

    def reset(self) -> None:
        """Forget the data."""
        self._sums[:], self._squares[:], self._blocks, self._time = 0.0, 0.0, 0, 0.0
        self._means: list[np.ndarray] = []
        self._variances: list[np.ndarray] = []
        self._height = self._first_height = 0.0

    def add(self, duration: float, height: float, torque: np.ndarray, present: np.ndarray, other: np.ndarray) -> bool:
        """Take a block; return whether it completes a window.

        Args:
            duration: time since the last one [s].
            height: of the flange [m].
            torque: measured less friction (n,) [Nm].
            present: torque of the load that is taken to be there (n,) [Nm].
            other: that of the other one (n,) [Nm].
        """
        left = torque - other
        self._sums += [torque - present, left]
        self._squares += left**2
        self._blocks, self._time, self._height = self._blocks + 1, self._time + duration, height
        return self._blocks >= _BLOCKS

    def has_changed(self, covariance: np.ndarray, noise: np.ndarray, push: np.ndarray) -> bool:
        """Return whether the windows show that the other load is there.

        Args:
            covariance: of friction and loads (n, n) [Nm^2], the same in all blocks.
            noise: variance (n,) [Nm^2] of a block.
            push: covariance (n, n) [Nm^2] of pushes.
        """
        (present, left), noise, interval = self._sums / self._blocks, noise / self._blocks, self._time
        variance = _COLOUR * (self._squares / self._blocks - left**2) / (self._blocks - 1)
        certain = covariance + np.diag(noise)
        changed, pushed = ZeroMeanGaussian(certain), ZeroMeanGaussian(certain + push)
        evidence = changed.log_density(left) - max(changed.log_density(present), pushed.log_density(present))
        along, beside, size = _split(changed, left, left - present)
        self._sums[:], self._squares[:], self._blocks, self._time, self.left = 0.0, 0.0, 0, 0.0, left
        self._uncertainty = math.sqrt(self._largest / size)
        if evidence < self._least_evidence or along > self._largest or beside > self._largest_beside:
            self._means, self._variances = [], []
            return False
        if not self._means:
            self._first_height = self._height
        self._means, self._variances = [*self._means, left][-_MOST:], [*self._variances, variance][-_MOST:]
        return self._is_steady(present - left, noise, interval)

    def is_no_table(self, before: float, weight: float, softest: float) -> bool:
        """Return whether the height excludes that a table carries the load.

        Args:
            before: height of the flange before anything touched the arm [m].
            weight: of the load [N].
            softest: stiffness of the softest contact [N/m].
        """
        change = softest * abs(self._height - self._first_height)
        return change > self._uncertainty * weight or self._height > before - _HEIGHT_NOISE

    def _is_steady(self, load: np.ndarray, noise: np.ndarray, interval: float) -> bool:
        """Return whether the windows show no trend along a load, and would show one.

        Args:
            load: (n,) [Nm].
            noise: variance (n,) [Nm^2] of a window's mean by the noise settings.
            interval: time between two windows [s].
        """
        for count in range(_LEAST, len(self._means) + 1):
            variance = np.mean(self._variances[-count:], axis=0)
            trend, release = self._trend(count, load, np.maximum(variance, _LEAST_SHARE * noise), interval)
            if release >= 4.0 * self._largest:
                return trend <= self._largest
        return len(self._means) == _MOST and self._trend(_MOST, load, noise, interval)[0] <= self._largest

    def _trend(self, count: int, load: np.ndarray, variance: np.ndarray, interval: float) -> tuple[float, float]:
        """Return the squared normalised trend along a load, and that of its release over :data:`_SLOWEST`.

        Args:
            count: of the last windows.
            load: (n,) [Nm].
            variance: (n,) [Nm^2] of the windows' means.
            interval: time between two windows [s].
        """
        times = interval * (np.arange(count) - 0.5 * (count - 1))
        weights = load / variance
        information = float(times @ times) * float(load @ weights)  # of the rate of change, in loads per second
        rate = float(times @ (np.array(self._means[-count:]) @ weights)) / information
        return rate**2 * information, information / _SLOWEST**2


def _split(gaussian: ZeroMeanGaussian, deviation: np.ndarray, direction: np.ndarray) -> tuple[float, float, float]:
    """Return the squares of a normalised deviation (n,) along a direction (n,), across it, and of the direction."""
    whitened, axis = gaussian.whiten(np.column_stack([deviation, direction])).T
    size = float(axis @ axis)
    along = float(whitened @ axis) ** 2 / size
    return along, float(whitened @ whitened) - along, size
