"""Noise of an EKF from recordings, by maximum likelihood of its innovations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.settings import EkfSettings, SensorSettings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.fit.innovations import InnovationStatistics, innovation_statistics
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm

#: What can be tuned: name -> (group of the settings, key).
TUNABLE = {
    "torque": ("process_noise", "unknown_torque"),
    "torque_share": ("process_noise", "unknown_torque_share"),
    "velocity": ("process_noise", "velocity"),
    "stiffness": ("process_noise", "stiffness"),
    "rest": ("process_noise", "rest"),
    "point": ("process_noise", "point"),
    "position": ("measurement_noise", "position"),
}
#: How far a value may move from where it starts, in powers of ten.
_REACH = 6.0


@dataclass(frozen=True)
class Tuning:
    """Tuned noise.

    Attributes:
        settings: with the tuned noise.
        before: innovation statistics, one per recording.
        after: the same with the tuned noise.
        evaluations: runs over the recordings.
    """

    settings: EkfSettings
    before: list[InnovationStatistics]
    after: list[InnovationStatistics]
    evaluations: int


def tune(
    arm: Arm,
    settings: EkfSettings,
    sensors: SensorSettings,
    recordings: Sequence[Recording],
    names: Sequence[str] = ("torque", "torque_share"),
    evaluations: int = 60,
    progress: Callable[[int], None] | None = None,
) -> Tuning:
    """Maximise the likelihood of all recordings together over the logarithms of noise parameters (Nelder-Mead).

    Args:
        arm: the robot.
        settings: the EKF; its noise is the start.
        sensors: how the torque is read.
        recordings: what the likelihood is of.
        names: of :data:`TUNABLE`.
        evaluations: runs over the recordings, at most.
        progress: called with the number of runs done.

    Raises:
        ConfigError: unknown name, or a parameter that starts at zero.
        RecordingError: a recording cannot be used.
    """
    values = []
    for name in names:
        if name not in TUNABLE:
            raise ConfigError(f"cannot tune '{name}'; known: {', '.join(TUNABLE)}")
        group, field = TUNABLE[name]
        value = getattr(getattr(settings, group), field)
        if not value > 0:
            raise ConfigError(f"{group}.{field} is 0, where its logarithm cannot start; give it a small positive value")
        values.append(np.log10(value))
    start, done = np.array(values), 0
    observer = Ekf(arm, settings)
    stream = SampleStream(observer, arm, sensors)

    def statistics(recording: Recording) -> InnovationStatistics:
        stream.forget()
        return innovation_statistics(stream, recording)

    def run(x: np.ndarray) -> list[InnovationStatistics]:
        observer.set_noise(with_noise(settings, dict(zip(names, 10.0**x))))
        return [statistics(recording) for recording in recordings]

    def cost(x: np.ndarray) -> float:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done)
        try:
            return -_total(run(x))
        except RecordingError:
            if done == 1:
                raise
            return 1e6  # this noise lets the filter diverge

    bounds = [(v - _REACH, v + _REACH) for v in start]
    simplex = np.vstack([start, *(start + row for row in np.diag(np.where(start > -8, -1.0, 1.0)))])
    found = minimize(
        cost,
        start,
        method="Nelder-Mead",
        bounds=bounds,
        options={"maxfev": evaluations, "initial_simplex": simplex, "xatol": 0.02, "fatol": 1e-4},
    )
    return Tuning(with_noise(settings, dict(zip(names, 10.0**found.x))), run(start), run(found.x), done)


def with_noise(settings: EkfSettings, values: dict[str, float]) -> EkfSettings:
    """Return settings with the named noise parameters replaced."""
    for name, value in values.items():
        group, field = TUNABLE[name]
        settings = dataclasses.replace(
            settings, **{group: dataclasses.replace(getattr(settings, group), **{field: float(value)})}
        )
    return settings


def _total(statistics: list[InnovationStatistics]) -> float:
    """Mean log-likelihood per sample and joint over all recordings."""
    count = np.array([s.samples for s in statistics])
    return float(np.sum(count * [s.log_likelihood for s in statistics]) / count.sum())
