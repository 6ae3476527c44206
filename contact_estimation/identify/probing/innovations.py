"""Tests of a filtered recording: the innovations of its wrenches against the stated noise.

An innovation is whitened with the covariance that the filter predicted from the sensor's settings before the wrench.
If its model is right, the whitened innovations are independent standard normal numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact_estimation.identify import verdict
from contact_estimation.identify.verdict import Finding

#: Bound on the squared innovation of one wrench in the intervals: it limits the effect of outliers.
_GATED_NIS = 25.0
#: Whitened innovations below this number are too few to judge.
_FEWEST = 20


class Innovations(NamedTuple):
    """Innovations of the wrenches that were used, or left out as beyond the gate.

    Attributes:
        t: stamps (n,) [s].
        whitened: (n, w), in standard deviations.
        stroke: (n,) number of the stroke each belongs to.
        gated: (n,) whether the wrench lay beyond the gate.
    """

    t: np.ndarray
    whitened: np.ndarray
    stroke: np.ndarray
    gated: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[tuple[float, np.ndarray, int, bool]], size: int) -> Innovations:
        """Collect rows (t, whitened, stroke, gated) of wrenches with ``size`` axes."""
        whitened = np.array([row[1] for row in rows]).reshape(-1, size)
        t, stroke = np.array([row[0] for row in rows]), np.array([row[2] for row in rows], dtype=int)
        return cls(t, whitened, stroke, np.array([row[3] for row in rows], dtype=bool))

    def after(self, t: float) -> Innovations:
        """Return those later than ``t`` [s]."""
        late = self.t > t
        return Innovations(*(part[late] for part in self))

    @property
    def power(self) -> float:
        """Reduced chi-square of all wrenches; one beyond the gate counts as at :data:`_GATED_NIS`."""
        nis = np.minimum(np.sum(np.square(self.whitened), axis=1), _GATED_NIS)
        return float(np.mean(nis)) / self.whitened.shape[1] if len(nis) else float("nan")

    @property
    def lag1(self) -> float:
        """Mean correlation of the wrenches that were used from sample to sample."""
        used = self.whitened[~self.gated]
        return float(np.mean(verdict.lag_correlation(used))) if len(used) > 1 else 0.0

    def findings(self, alarm: float) -> list[Finding]:
        """Test the innovations; each test has the probability ``alarm`` of a false alarm."""
        used = self.whitened[~self.gated]
        few = f"only {len(used)} wrenches could be used after the start; slide longer, or faster than slide_speed_min"
        found = [Finding("few_wrenches", float(_FEWEST - len(used)), 0.0, few)]
        if len(used) < _FEWEST:
            return found
        strokes = [used[self.stroke[~self.gated] == k] for k in np.unique(self.stroke)]
        return [
            *found,
            verdict.chi_square(used, 0, alarm, "wrench"),
            verdict.whiteness(used, alarm, "wrench"),
            verdict.segment_means([z for z in strokes if len(z) > 3], alarm, "wrench"),
            verdict.outliers(used, alarm, "wrench", limit=4.0),
        ]
