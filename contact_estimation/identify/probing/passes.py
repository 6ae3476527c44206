"""Several passes of the filter over a recording: one as it is, and one with each disturbance freed.

Wald's test of the estimate b, b^T C^-1 b ~ chi-square, decides whether a disturbance acts. The evidence decides which
one: the log-likelihood of every wrench, each predicted from those before it. The difference between two passes is the
log Bayes factor of their models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from contact_estimation.identify.probing.disturbances import Candidate, Samples, candidates
from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.innovations import Innovations
from contact_estimation.identify.probing.model import ContactModel, Start
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.sticking import StickingFilter
from contact_estimation.identify.verdict import Finding


class Pass(NamedTuple):
    """A recording filtered once.

    Attributes:
        name: the disturbance that was freed; empty for none.
        message: sentence that names it, with its estimate.
        units: of the parameters.
        estimate: parameters after the last sample.
        local: the same in free coordinates, offsets relative to the first touch.
        bias: estimated disturbance (n,).
        bias_covariance: its covariance (n, n).
        evidence: log-likelihood (T,) of every wrench; NaN where it was not looked at.
        innovations: of the wrenches.
        changes: stamps [s] at which stiffness and friction changed at once.
    """

    name: str
    message: str
    units: tuple[str, ...]
    estimate: ProbingEstimate
    local: np.ndarray
    bias: np.ndarray
    bias_covariance: np.ndarray
    evidence: np.ndarray
    innovations: Innovations
    changes: tuple[float, ...]

    def gain(self, other: Pass, counted: np.ndarray) -> float:
        """Mean log Bayes factor per wrench against ``other``, over the samples ``counted`` (T,) that both used."""
        difference = (self.evidence - other.evidence)[counted]
        return float(np.nanmean(difference)) if np.any(np.isfinite(difference)) else -np.inf

    def finding(self, alarm: float) -> Finding:
        """Test the disturbance against none; ``alarm`` is the probability of a false alarm."""
        statistic = float(self.bias @ np.linalg.solve(self.bias_covariance, self.bias))
        return Finding(self.name, statistic, float(chi2.isf(alarm, len(self.bias))), self.message)


#: Trials of a larger noise, and the least factor worth one.
_NOISE_TRIALS, _NOISE_LEAST = 4, 1.1
#: Factor on ``slide_distance_min`` with which a recording is tried that the model does not explain.
_LONGER = 3.0
#: Makes a model and its rough start.
MakeStart = Callable[[], tuple[ContactModel, Start]]


def plain_pass(data: Samples, make: MakeStart, settings: ProbingSettings) -> Pass:
    """Filter a recording as it is.

    Args:
        data: the recording.
        make: makes the model and its start.
        settings: priors and noise.
    """
    return _filter(data, *make(), settings)


def disturbed_passes(data: Samples, make: MakeStart, curved: MakeStart | None, settings: ProbingSettings) -> list[Pass]:
    """Filter a recording with each disturbance freed.

    Args:
        data: the recording.
        make: makes the model and its start.
        curved: makes them for a curved surface; None where there is no such model.
        settings: priors and noise.
    """
    passes = [_filter(data, *make(), settings, candidate) for candidate in candidates(data)]
    if curved:
        done = _filter(data, *curved(), settings)
        value, std = done.estimate.mean[-1:], done.estimate.std[-1:]
        message = _curvature(float(value[0]))
        passes.append(
            done._replace(name="curvature", message=message, bias=value, bias_covariance=np.diag(np.square(std)))
        )
    return passes


def loosened_passes(data: Samples, make: MakeStart, settings: ProbingSettings, plain: Pass) -> list[Pass]:
    """Filter a recording that the model does not explain with a longer presliding distance, and with more noise.

    Args:
        data: the recording.
        make: makes the model and its start.
        settings: priors and noise.
        plain: the pass that does not explain it; its median innovation tells how much more noise.
    """
    distance = _LONGER * settings.slide_distance_min
    lag = (
        "after a reversal friction follows later than configured; slide_distance_min was taken as "
        f"{1e3 * distance:.0f} mm, "
        "set it in --settings"
    )
    late = _filter(data, *make(), replace(settings, slide_distance_min=distance))
    passes, factor, noisy = [late._replace(name="presliding", message=lag)], 1.0, plain
    for _ in range(_NOISE_TRIALS):  # the median is diluted by what else is uncertain, so one trial falls short
        more = _scatter(noisy.innovations)
        if more < _NOISE_LEAST:
            break
        factor *= more
        told = replace(settings, force_noise=factor * settings.force_noise, torque_noise=factor * settings.torque_noise)
        noisy = _filter(data, *make(), told)
    if factor > 1.0:
        noise = (
            f"the wrench scatters {factor:.1f} times as much as configured; set force_noise and torque_noise in "
            "--settings"
        )
        passes.append(noisy._replace(name="noise", message=noise))
    return passes


def _scatter(innovations: Innovations) -> float:
    """Return how far the median innovation exceeds that of the noise that was told."""
    size = innovations.whitened.shape[1]
    nis = np.sum(np.square(innovations.whitened), axis=1)
    return float(np.sqrt(np.median(nis) / chi2.median(size))) if len(nis) else 1.0


def _filter(
    data: Samples, model: ContactModel, start: Start, settings: ProbingSettings, freed: Candidate | None = None
) -> Pass:
    """Filter a recording once."""
    kind = StickingFilter if freed and freed.sticking else ProbingFilter
    estimator = kind(model, settings, disturbance=freed.disturbance if freed else None)
    estimator.start(data.t[0], data.pose[0], *start)
    evidence, rows, stroke, sliding = np.full(len(data.t), np.nan), [], 0, False
    for k in range(1, len(data.t)):
        bias_map = freed.maps[k] if freed else None
        estimator.step(data.t[k] - data.t[k - 1], data.pose[k], data.twist[k], data.wrench[k], bias_map=bias_map)
        looked_at = estimator.log_evidence != 0.0
        if looked_at:
            stroke += not sliding
            evidence[k] = estimator.log_evidence
            rows.append((data.t[k], estimator.innovation, stroke, estimator.gated))
        sliding = looked_at
    innovations = Innovations.of(rows, model.wrench_size)
    name, message = (freed.name, freed.describe(estimator.bias)) if freed else ("", "")
    estimate, local = estimator.estimate(), estimator.local()[0]
    bias = estimator.bias, estimator.bias_covariance
    return Pass(name, message, model.units, estimate, local, *bias, evidence, innovations, estimator.changes)


def _curvature(value: float) -> str:
    """Name the curvature [1/m] for the user."""
    word = "convex" if value > 0.0 else "concave"
    return (
        f"the surface is curved ({word}, radius {1.0 / max(abs(value), 1e-9):.2f} m), which was estimated; "
        "angle and offset are those of the first touch"
    )
