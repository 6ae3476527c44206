"""Several tips: a Gaussian sum of filters, each with another hypothesis of which tip is lower.

Two situations give the same wrench until the tool leans: two tips pressed alike, and one tip pressed alone with the
tool mounted half their distance to the side. The density then has several peaks. A single Gaussian that follows the
wrong one does not recover, because the deformation of a tip in the air has no information. The start is therefore split
into a Gaussian sum along the height difference of the tips. Every part has a filter, and their likelihoods decide. The
filters are not merged like the signs of sliding (GPB1), because the hypothesis is constant over time.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.identify.probing import gpb1
from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.filter import MakeFilter, ProbingFilter
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel

#: Weights, means and standard deviation of five Gaussians whose sum is nearly the standard normal density; the
#: deviation makes the sum's variance exactly one.
_WEIGHTS = np.array([0.0763, 0.2475, 0.3524, 0.2475, 0.0763])
_MEANS = np.array([-1.746, -0.828, 0.0, 0.828, 1.746])
_DEVIATION = float(np.sqrt(1.0 - _WEIGHTS @ _MEANS**2))
#: Evidence is forgotten by this factor per wrench: that of the first samples rests on rough linearisations.
_MEMORY = 0.98
#: A hypothesis whose log-evidence is this far behind the best one's is dropped.
_DROP = 300.0
#: Hypotheses whose squared distance, in standard deviations and per parameter, is less than this are one.
_SAME = 0.1


class HypothesisFilter:
    """``start``, ``step`` and ``estimate`` of :class:`ProbingFilter` for a tool with two tips on one surface.

    Args:
        model: measurement model.
        settings: priors, noise, events, rule.
        make: makes the filter of one hypothesis.
    """

    def __init__(self, model: SpatialModel, settings: ProbingSettings, make: MakeFilter = ProbingFilter) -> None:
        self.model = model
        self._settings, self._make = settings, make
        self._filters: list[ProbingFilter] = []
        self._score = np.zeros(0)

    def start(self, t: float, pose: np.ndarray, s: np.ndarray, covariance: np.ndarray, origin: ArrayLike) -> None:
        """Begin at contact; arguments and errors of :meth:`ProbingFilter.start`."""
        gradient = self._height_gradient(pose, s)
        reach = covariance @ gradient
        variance = float(gradient @ reach)
        shrunk = covariance - np.outer(reach, reach) * (1.0 - _DEVIATION**2) / variance
        self._filters, self._score = [], np.log(_WEIGHTS / _WEIGHTS.sum())
        for mean in _MEANS:
            one = self._make(self.model, self._settings)
            one.start(t, pose, s + reach * mean / np.sqrt(variance), shrunk, origin)
            self._filters.append(one)

    def _height_gradient(self, pose: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Gradient (n_s,) of the difference in height of the first two tips over the surface."""

        def height(s: np.ndarray) -> float:
            return float(self.model.normal(s) @ pose[:3, :3] @ (self.model.tip(s, 1) - self.model.tip(s, 0)))

        step = 1e-6
        return np.array([(height(s + step * e) - height(s - step * e)) / (2.0 * step) for e in np.eye(len(s))])

    def step(
        self,
        dt: float,
        pose: np.ndarray,
        twist: np.ndarray,
        wrench: ArrayLike,
        wrench_noise: np.ndarray | None = None,
        bias_map: np.ndarray | None = None,
    ) -> None:
        """Take one sample; arguments and errors of :meth:`ProbingFilter.step`."""
        for one in self._filters:
            one.step(dt, pose, twist, wrench, wrench_noise, bias_map)
        if all(one.used for one in self._filters):  # likelihoods of different data cannot be compared
            self._score = _MEMORY * self._score + [one.log_evidence for one in self._filters]
        keep = self._score > self._score.max() - _DROP
        if len(keep) > 1 and self._filters[0].used:
            keep &= ~self._agree_with_the_best()
        self._filters = [one for one, kept in zip(self._filters, keep) if kept]
        self._score = self._score[keep]

    def _agree_with_the_best(self) -> np.ndarray:
        """Mark every hypothesis that has come to the same parameters as the most probable one."""
        best = int(np.argmax(self._score))
        mean, covariance = self._filters[best].local()
        apart = np.array([one.local()[0] - mean for one in self._filters])
        distance = np.sum(apart.T * np.linalg.solve(covariance, apart.T), axis=0)
        same: np.ndarray = distance < _SAME * len(mean)
        same[best] = False
        return same

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities (k,) of the hypotheses that are left."""
        return gpb1.posterior(np.ones(len(self._score)), self._score)

    def estimate(self) -> ProbingEstimate:
        """Return mean and covariance of the sum of hypotheses; slip, modes and NIS are the most probable one's."""
        estimates, weights = [one.estimate() for one in self._filters], self.probabilities
        best = estimates[int(np.argmax(weights))]
        if len(estimates) == 1:
            return best
        free, covariance = gpb1.merge(
            weights, np.array([e.free for e in estimates]), np.array([e.free_covariance for e in estimates])
        )
        means, variances = np.array([e.mean for e in estimates]), np.array([e.std**2 for e in estimates])
        mean = weights @ means
        std = np.sqrt(weights @ (variances + (means - mean) ** 2))
        return dataclasses.replace(best, mean=mean, std=std, free=free, free_covariance=covariance)
