"""Innovations of an EKF over a recording: likelihood, consistency, whiteness.

The filter publishes its posterior; the innovation nu and its covariance S follow from it, as the measurement of all
positions with diagonal noise R leaves R S^-1 R = R - P+ and R S^-1 nu = y - x+.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.stream import SampleStream
from contact_estimation.io.recording import Recording

#: Log-determinants change slowly: one in so many samples is computed.
_EVERY = 10
#: [s] in which the filter settles.
_SETTLING = 0.2


@dataclass(frozen=True)
class InnovationStatistics:
    """Likelihood, consistency and whiteness of an EKF's innovations.

    Attributes:
        log_likelihood: per sample and joint, natural logarithm; only differences mean something.
        nis_mean: mean normalised innovation squared over its degrees of freedom, 1 where the noise is right.
        inside: share of samples below the 95 % quantile of chi-square.
        correlation: (n,) of successive innovations per joint, 0 where the model is right.
        samples: how many.
    """

    log_likelihood: float
    nis_mean: float
    inside: float
    correlation: np.ndarray
    samples: int


def innovation_statistics(stream: SampleStream, recording: Recording) -> InnovationStatistics:
    """Run the EKF of ``stream`` over ``recording``; the first :data:`_SETTLING` seconds do not count.

    Raises:
        ConfigError: the observer is no EKF that measures positions. RecordingError: a sample cannot be used, or too few
            are left.
    """
    observer = stream.observer
    if not isinstance(observer, Ekf) or observer.settings.measure != "position":
        raise ConfigError("innovations need an observer of kind 'ekf' with 'measure: position'")
    n, variance = stream.arm.n, observer.settings.measurement_noise.position
    start, scaled, nis, log_det = recording.stamps_ns[0] + int(_SETTLING * 1e9), [], [], []
    for k, (stamp, q, dq, tau) in enumerate(
        zip(recording.stamps_ns.tolist(), recording.q, recording.dq, recording.tau)
    ):
        if not stream.push_fast(stamp, q, dq, tau):
            raise RecordingError(
                f"{recording.source}: the sample at {stamp * 1e-9:.3f} s cannot be used: {stream.reason}"
            )
        if stamp <= start:
            continue
        nis.append(observer.estimate().nis)
        scaled.append(q - observer.state[:n])
        if k % _EVERY == 0:
            # R S^-1 R over R: its eigenvalues are in (0, 1), rounding may push the smallest below.
            values = np.linalg.eigvalsh(np.eye(n) - observer.covariance[:n, :n] / variance)
            log_det.append(n * np.log(variance) - np.sum(np.log(np.maximum(values, 1e-12))))
    if len(nis) < 50 or not np.isfinite(nis).all():
        raise RecordingError(f"{recording.source}: {len(nis)} innovations are too few, or the filter diverged")
    squares, residual = np.array(nis), np.array(scaled)
    correlation = np.sum(residual[1:] * residual[:-1], axis=0) / np.maximum(np.sum(residual**2, axis=0), 1e-300)
    likelihood = -0.5 * (np.mean(squares) + np.mean(log_det) + n * np.log(2 * np.pi)) / n
    return InnovationStatistics(
        float(likelihood),
        float(np.mean(squares) / n),
        float(np.mean(squares < chi2.ppf(0.95, n))),
        correlation,
        len(nis),
    )
