"""Noise of a filter from recordings, by maximum likelihood of its innovations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from contact_estimation.exceptions import RecordingError
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.fit.innovations import ConsistencyStatistics, Innovations, consistency, innovations_of
from contact_estimation.fit.noise import NoiseSettings
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm

#: How far a value may move from where it starts, its first change and the precision of the search, in powers of ten.
REACH, _FIRST, _PRECISION = 6.0, 0.5, 0.02
#: Log-likelihood of noise with which the filter diverges.
_DIVERGED = -1e6


class Likelihood:
    """Log-likelihood of recordings as a function of the logarithms of a filter's noise; no point is run twice.

    Args:
        arm: the robot.
        noise: the filter's, at the origin.
        sensors: how the torque is read.
        recordings: what the likelihood is of.
        names: the m noises that vary, of ``noise.keys``.
        progress: called with the number of runs done.
    """

    def __init__(
        self,
        arm: Arm,
        noise: NoiseSettings,
        sensors: SensorSettings,
        recordings: Sequence[Recording],
        names: Sequence[str],
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.arm, self.noise, self.sensors, self.recordings, self.names = arm, noise, sensors, recordings, list(names)
        self.runs = 0
        self._progress = progress
        self._known: dict[tuple[float, ...], np.ndarray] = {}

    def counted(self, progress: Callable[[int], None] | None) -> Likelihood:
        """Count runs anew, told to ``progress``; return itself."""
        self.runs, self._progress = 0, progress
        return self

    def scaled(self, x: np.ndarray) -> NoiseSettings:
        """Return the noise times ten to the power of ``x`` (m,)."""
        return self.noise.scaled(dict(zip(self.names, (10.0**x).tolist())))

    def halves(self, x: np.ndarray) -> np.ndarray:
        """Return the mean log-likelihood (2,) per update and channel, of the first and second halves of the recordings.

        Args:
            x: (m,) powers of ten.

        Raises:
            RecordingError: a recording cannot be used with the noise it was begun with.
        """
        key = tuple(np.round(x, 12).tolist())
        if key not in self._known:
            self._known[key] = self._run(x)
        return self._known[key]

    def mean(self, x: np.ndarray) -> float:
        """Return the mean of :meth:`halves`."""
        return float(np.mean(self.halves(x)))

    def _run(self, x: np.ndarray) -> np.ndarray:
        try:
            found = innovations(self.arm, self.scaled(x), self.sensors, self.recordings)
        except RecordingError:
            if not self._known:
                raise
            halves = np.full(2, _DIVERGED)
        else:
            parts = [np.array_split(run.log_likelihood, 2) for run in found]
            channels = found[0].normalised.shape[1]
            halves = np.array([np.mean(np.concatenate(half)) for half in zip(*parts)]) / channels
        self.runs += 1
        if self._progress is not None:
            self._progress(self.runs)
        return halves


@dataclass(frozen=True)
class Tuning:
    """Tuned noise.

    Attributes:
        noise: the tuned settings.
        channels: names of the filter's measurement channels.
        before: innovation statistics, one per recording.
        after: the same with the tuned noise.
        evaluations: runs over the recordings.
        x: (m,) powers of ten by which each noise changed.
        spread: (m,) powers of ten that the last noises of the search lie apart.
        likelihood: of the recordings.
    """

    noise: NoiseSettings
    channels: list[str]
    before: list[ConsistencyStatistics]
    after: list[ConsistencyStatistics]
    evaluations: int
    x: np.ndarray
    spread: np.ndarray
    likelihood: Likelihood


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
    likelihood = Likelihood(arm, noise, sensors, recordings, names, progress)
    start = np.zeros(len(names))
    x, spread = maximise(likelihood.mean, start, -_FIRST, evaluations)
    before, after = (statistics_of(arm, likelihood.scaled(at), sensors, recordings) for at in (start, x))
    channels = noise.observer(noise.values).channels
    return Tuning(likelihood.scaled(x), channels, before, after, likelihood.runs, x, spread, likelihood)


def maximise(
    function: Callable[[np.ndarray], float], start: np.ndarray, first: float, evaluations: int
) -> tuple[np.ndarray, np.ndarray]:
    """Maximise a function of powers of ten by Nelder and Mead's simplex.

    Args:
        function: of (m,).
        start: (m,) where the search begins.
        first: its first change, of each number.
        evaluations: of the function, at most.

    Returns:
        maximum (m,), and by how much the corners of the last simplex differ (m,).
    """
    simplex = np.vstack([start, start + first * np.eye(len(start))])
    options = {"maxfev": evaluations, "initial_simplex": simplex, "xatol": _PRECISION, "fatol": 1e-4}
    bounds = [(-REACH, REACH)] * len(start)
    found = minimize(lambda x: -function(x), start, method="Nelder-Mead", bounds=bounds, options=options)
    return found.x, np.ptp(found.final_simplex[0], axis=0)


def innovations(
    arm: Arm, noise: NoiseSettings, sensors: SensorSettings, recordings: Sequence[Recording]
) -> list[Innovations]:
    """Return the innovations of every recording; arguments and errors of :func:`statistics_of`."""
    observer = noise.observer(noise.values)
    stream = SampleStream(observer, arm, sensors)
    return [innovations_of(stream, observer, recording) for recording in recordings]


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
    return [consistency(found) for found in innovations(arm, noise, sensors, recordings)]
