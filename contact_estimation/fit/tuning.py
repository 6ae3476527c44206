"""Noise of a filter from recordings, by maximum likelihood of its innovations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from contact_estimation.exceptions import RecordingError
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.fit.innovations import ConsistencyStatistics, innovation_statistics
from contact_estimation.fit.noise import NoiseSettings
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm

#: How far a value may move from where it starts, and its first change, in powers of ten.
_REACH, _FIRST = 6.0, 0.5


@dataclass(frozen=True)
class Tuning:
    """Tuned noise.

    Attributes:
        noise: the tuned settings.
        channels: names of the filter's measurement channels.
        before: innovation statistics, one per recording.
        after: the same with the tuned noise.
        evaluations: runs over the recordings.
    """

    noise: NoiseSettings
    channels: list[str]
    before: list[ConsistencyStatistics]
    after: list[ConsistencyStatistics]
    evaluations: int


def tune(
    arm: Arm,
    noise: NoiseSettings,
    sensors: SensorSettings,
    recordings: Sequence[Recording],
    names: Sequence[str],
    evaluations: int = 60,
    progress: Callable[[int], None] | None = None,
) -> Tuning:
    """Maximise the likelihood of all recordings together over the logarithms of noise parameters (Nelder-Mead).

    Args:
        arm: the robot.
        noise: the filter's; it is the start.
        sensors: how the torque is read.
        recordings: what the likelihood is of.
        names: what is tuned, of ``noise.keys``.
        evaluations: runs over the recordings, at most.
        progress: called with the number of runs done.

    Raises:
        ConfigError: unknown name, or a parameter that starts at zero.
        RecordingError: a recording cannot be used.
    """
    done = 0

    def scaled(x: np.ndarray) -> NoiseSettings:
        return noise.scaled(dict(zip(names, (10.0**x).tolist())))

    def cost(x: np.ndarray) -> float:
        nonlocal done
        try:
            value = -_total(statistics_of(arm, scaled(x), sensors, recordings))
        except RecordingError:
            if done == 0:
                raise
            value = 1e6  # this noise lets the filter diverge
        done += 1
        if progress is not None:
            progress(done)
        return value

    start = np.zeros(len(names))
    simplex = np.vstack([start, -_FIRST * np.eye(len(names))])
    options = {"maxfev": evaluations, "initial_simplex": simplex, "xatol": 0.02, "fatol": 1e-4}
    bounds = [(-_REACH, _REACH)] * len(names)
    found = minimize(cost, start, method="Nelder-Mead", bounds=bounds, options=options)
    before, after = (statistics_of(arm, scaled(x), sensors, recordings) for x in (start, found.x))
    return Tuning(scaled(found.x), noise.observer(noise.values).channels, before, after, done)


def statistics_of(
    arm: Arm, noise: NoiseSettings, sensors: SensorSettings, recordings: Sequence[Recording]
) -> list[ConsistencyStatistics]:
    """Return the innovation statistics of every recording.

    Args:
        arm: the robot.
        noise: the filter's.
        sensors: how the torque is read.
        recordings: their samples.

    Raises:
        RecordingError: a recording cannot be used.
    """
    observer = noise.observer(noise.values)
    stream = SampleStream(observer, arm, sensors)
    return [innovation_statistics(stream, observer, recording) for recording in recordings]


def _total(statistics: list[ConsistencyStatistics]) -> float:
    """Mean log-likelihood per update and channel over all recordings."""
    count = np.array([s.updates for s in statistics])
    return float(np.sum(count * [s.log_likelihood for s in statistics]) / count.sum())
