"""One explanation of a recording, and the passes of the filter over the recording under it.

Wald's test of the estimate b of a disturbance, b^T C^-1 b ~ chi-square, decides whether it acts. The evidence decides
which one: the log-likelihood of every wrench, each predicted from those before it. The difference between two passes
is the log Bayes factor of their models. The chosen explanation gets a second pass, linearised where the first ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from contact_estimation.identify.probing.disturbances import Candidate, Disturbance, Samples
from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.innovations import Innovations
from contact_estimation.identify.probing.model import ContactModel, Start
from contact_estimation.identify.probing.relinearised import RelinearisedFilter, RelinearisedStickingFilter
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.sticking import StickingFilter
from contact_estimation.identify.verdict import Finding


class Fit(NamedTuple):
    """What a filter knows after the last sample.

    Attributes:
        estimate: parameters.
        local: the same in free coordinates (n_s,), offsets relative to the first touch, with covariance (n_s, n_s).
        freed: what the trial frees (n,).
        freed_covariance: its covariance (n, n).
    """

    estimate: ProbingEstimate
    local: tuple[np.ndarray, np.ndarray]
    freed: np.ndarray
    freed_covariance: np.ndarray


class Trial(NamedTuple):
    """What a recording is filtered with.

    Attributes:
        model: measurement model.
        start: its rough start.
        settings: priors and noise.
        name: what it frees, for machines; empty for nothing.
        describe: sentence for the user, from the estimate (n,) of what is freed.
        freed: disturbance whose states are added; None for none.
    """

    model: ContactModel
    start: Start
    settings: ProbingSettings
    name: str = ""
    describe: Callable[[np.ndarray], str] = lambda freed: ""
    freed: Candidate | None = None

    def first(self, data: Samples) -> Pass:
        """Filter a recording."""
        kind = StickingFilter if self._sticking else ProbingFilter
        estimator = kind(self.model, self.settings, self._disturbance)
        evidence, rows, stroke, sliding = np.full(len(data.t), np.nan), [], 0, False
        for k in self._steps(data, estimator):
            looked_at = estimator.log_evidence != 0.0
            if looked_at:
                stroke += not sliding
                evidence[k] = estimator.log_evidence
                rows.append((data.t[k], estimator.innovation, stroke, estimator.gated))
            sliding = looked_at
        innovations = Innovations.of(rows, self.model.wrench_size)
        return Pass(self, self._fit(estimator), evidence, innovations, estimator.changes)

    def again(self, data: Samples, fit: Fit, since: float) -> Fit:
        """Filter a recording again, linearised at a ``fit`` of it that holds after a stamp [s]."""
        kind = RelinearisedStickingFilter if self._sticking else RelinearisedFilter
        estimator = kind(self.model, self.settings, self._disturbance, fit.local, since)
        for _ in self._steps(data, estimator):
            pass
        return self._fit(estimator)

    @property
    def _sticking(self) -> bool:
        return self.freed is not None and self.freed.sticking

    @property
    def _disturbance(self) -> Disturbance | None:
        return None if self.freed is None else self.freed.disturbance

    def _steps(self, data: Samples, estimator: ProbingFilter) -> Iterator[int]:
        """Give a filter one sample after the other; yields their numbers."""
        estimator.start(data.t[0], data.pose[0], *self.start)
        for k in range(1, len(data.t)):
            bias_map = None if self.freed is None else self.freed.maps[k]
            estimator.step(data.t[k] - data.t[k - 1], data.pose[k], data.twist[k], data.wrench[k], bias_map=bias_map)
            yield k

    def _fit(self, estimator: ProbingFilter) -> Fit:
        estimate, freed = estimator.estimate(), (estimator.bias, estimator.bias_covariance)
        if self.model.tested:
            last = slice(-self.model.tested, None)
            freed = estimate.mean[last], np.diag(np.square(estimate.std[last]))
        return Fit(estimate, estimator.local(), *freed)


class Pass(NamedTuple):
    """A recording filtered once.

    Attributes:
        trial: what it was filtered with.
        fit: what is known after the last sample.
        evidence: log-likelihood (T,) of every wrench; NaN where it was not looked at.
        innovations: of the wrenches.
        changes: stamps [s] at which stiffness and friction changed at once.
    """

    trial: Trial
    fit: Fit
    evidence: np.ndarray
    innovations: Innovations
    changes: tuple[float, ...]

    @property
    def message(self) -> str:
        """Sentence that names what is freed, with its estimate."""
        return self.trial.describe(self.fit.freed)

    def gain(self, other: Pass, counted: np.ndarray) -> float:
        """Mean log Bayes factor per wrench against ``other``, over the samples ``counted`` (T,) that both used."""
        difference = (self.evidence - other.evidence)[counted]
        return float(np.nanmean(difference)) if np.any(np.isfinite(difference)) else -np.inf

    def finding(self, alarm: float) -> Finding:
        """Test the disturbance against none; ``alarm`` is the probability of a false alarm."""
        freed = self.fit.freed
        statistic = float(freed @ np.linalg.solve(self.fit.freed_covariance, freed))
        return Finding(self.trial.name, statistic, float(chi2.isf(alarm, len(freed))), self.message)

    def refined(self, data: Samples) -> Pass:
        """Return the pass with the fit of a second one; innovations stay, those of a second pass are no predictions."""
        fit = self.trial.again(data, self.fit, max(self.changes, default=-np.inf))
        return self._replace(fit=fit) if np.all(np.isfinite(fit.estimate.std)) else self
