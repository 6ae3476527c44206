"""Innovations of a Kalman filter over a recording: likelihood, consistency, whiteness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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


class Innovations(NamedTuple):
    """Innovations of a filter over a recording, one row per update.

    Attributes:
        normalised: (updates, channels) over their standard deviations.
        log_likelihood: (updates,) natural logarithm of the density of each measurement.
        refused: samples that were not used.
    """

    normalised: np.ndarray
    log_likelihood: np.ndarray
    refused: int


def innovations_of(stream: SampleStream, observer: KalmanObserver, recording: Recording) -> Innovations:
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
    normalised, log_likelihood, refused = [], [], 0
    for stamp, q, dq, tau in zip(recording.stamps_ns.tolist(), recording.q, recording.dq, recording.tau):
        if not stream.push_fast(stamp, q, dq, tau):
            refused += 1
            continue
        if stamp <= start or observer.updated == updated:
            continue
        updated = observer.updated
        innovation = observer.innovation()
        normalised.append(innovation.normalised)
        log_likelihood.append(innovation.log_likelihood)
    found = Innovations(np.array(normalised), np.array(log_likelihood), refused)
    if len(normalised) < _FEWEST or not np.isfinite(found.normalised).all():
        raise RecordingError(
            f"{recording.source}: {len(normalised)} innovations are too few, or the filter diverged; {refused} samples "
            f"were refused{f', the last because {stream.reason}' if refused and stream.reason else ''}"
        )
    return found


def consistency(found: Innovations) -> ConsistencyStatistics:
    """Return the statistics of innovations."""
    squares = found.normalised**2
    nis, (count, channels) = squares.sum(axis=1), squares.shape
    products = np.sum(found.normalised[1:] * found.normalised[:-1], axis=0)
    return ConsistencyStatistics(
        float(np.mean(found.log_likelihood)) / channels,
        float(np.mean(nis) / channels),
        float(np.mean(nis < chi2.ppf(0.95, channels))),
        squares.mean(axis=0),
        products / np.maximum(squares.sum(axis=0), 1e-300),
        count,
        found.refused,
    )
