"""Innovations of a Kalman filter over a recording: likelihood, consistency, whiteness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from contact_estimation.exceptions import RecordingError
from contact_estimation.filters.observer import KalmanObserver
from contact_estimation.filters.stream import SampleStream
from contact_estimation.io.recording import Recording

#: [s] in which the filter settles.
_SETTLING = 0.2
#: Fewer updates are no statistics.
_FEWEST = 50


@dataclass(frozen=True)
class ConsistencyStatistics:
    """Likelihood, consistency and whiteness of a filter's innovations.

    Attributes:
        log_likelihood: per update and channel, natural logarithm; only differences mean something.
        nis_mean: mean normalised innovation squared over its degrees of freedom, 1 where the noise is right.
        inside: share of updates below the 95 % quantile of chi-square.
        mean_square: (channels,) of the normalised innovations, 1 where the noise is right.
        correlation: (channels,) of successive innovations, 0 where the model is right.
        updates: how many.
        refused: samples that were not used.
    """

    log_likelihood: float
    nis_mean: float
    inside: float
    mean_square: np.ndarray
    correlation: np.ndarray
    updates: int
    refused: int


def innovation_statistics(
    stream: SampleStream, observer: KalmanObserver, recording: Recording
) -> ConsistencyStatistics:
    """Run a filter over a recording; the first :data:`_SETTLING` seconds do not count.

    Args:
        stream: of the filter; it starts anew.
        observer: the filter.
        recording: its samples.

    Raises:
        RecordingError: too few samples can be used.
    """
    stream.forget()
    start, updated = recording.stamps_ns[0] + int(_SETTLING * 1e9), -np.inf
    innovations, log_likelihood, refused = [], 0.0, 0
    for stamp, q, dq, tau in zip(recording.stamps_ns.tolist(), recording.q, recording.dq, recording.tau):
        if not stream.push_fast(stamp, q, dq, tau):
            refused += 1
            continue
        if stamp <= start or observer.updated == updated:
            continue
        updated = observer.updated
        innovation = observer.innovation()
        innovations.append(innovation.normalised)
        log_likelihood += innovation.log_likelihood
    normalised = np.array(innovations)  # (updates, channels)
    count = len(normalised)
    if count < _FEWEST or not np.isfinite(normalised).all():
        raise RecordingError(
            f"{recording.source}: {count} innovations are too few, or the filter diverged; {refused} samples were "
            f"refused{f', the last because {stream.reason}' if refused and stream.reason else ''}"
        )
    squares = normalised**2
    nis, channels = squares.sum(axis=1), normalised.shape[1]
    products = np.sum(normalised[1:] * normalised[:-1], axis=0)
    return ConsistencyStatistics(
        log_likelihood / (count * channels),
        float(np.mean(nis) / channels),
        float(np.mean(nis < chi2.ppf(0.95, channels))),
        squares.mean(axis=0),
        products / np.maximum(squares.sum(axis=0), 1e-300),
        count,
        refused,
    )
