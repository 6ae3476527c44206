"""A second pass over a recording, linearised where the first one ended: the iterated posterior linearisation filter.

The first pass regresses each wrench over what it knows until then. Early regressions leave a large residual, which
repeats from sample to sample and makes the filter give early wrenches little weight. The second pass starts from the
same rough start, but regresses over the parameters' density at the end of the first (Garcia-Fernandez, Svensson,
Morelande, Sarkka, *Posterior linearization filter*, IEEE TSP 63, 2015). Before a change of stiffness or friction the
parameters of the end do not hold: until then the second pass is the first.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.probing.disturbances import Disturbance
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.model import ContactModel, Mean
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.sticking import StickingFilter


class RelinearisedFilter(ProbingFilter):
    """:class:`ProbingFilter` that regresses the wrenches over one density of the parameters.

    Args:
        model: measurement model.
        settings: priors, noise, events, rule.
        disturbance: slow error of the wrench.
        local: mean (n_s,) and covariance (n_s, n_s) of the parameters, of ``ProbingFilter.local``.
        since: stamp [s] after which they hold.
    """

    def __init__(
        self,
        model: ContactModel,
        settings: ProbingSettings,
        disturbance: Disturbance | None,
        local: tuple[np.ndarray, np.ndarray],
        since: float,
    ) -> None:
        super().__init__(model, settings, disturbance)
        (self._around, self._density), self._since = local, since

    def _make_steps(self, wrench: np.ndarray, kept: np.ndarray) -> None:
        if self._t > self._since:
            self._now = self._now._replace(s=self._around)
        super()._make_steps(wrench, kept)

    def _linearise(self, mean: Mean, kept: np.ndarray) -> None:
        """Regress over the density, and move the lines' centre to the state: z = mean + slope (s - around)."""
        if self._t <= self._since:
            super()._linearise(mean, kept)
            return
        count = len(self._around)
        self._c.covariance[:count], self._c.covariance[:, :count] = 0.0, 0.0
        self._c.covariance[:count, :count] = self._density
        super()._linearise(mean, kept)
        away = self._x[self._param] - self._around
        for mode in kept:
            self._lines.mean[mode] += self._lines.slope[mode, :, :count] @ away


class RelinearisedStickingFilter(RelinearisedFilter, StickingFilter):
    """The same with normal forces without sliding."""
