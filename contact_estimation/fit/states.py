"""The expectation step: a filter over a recording gives the states that a fit uses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.stream import SampleStream
from contact_estimation.io.recording import Recording


@dataclass(frozen=True)
class FilteredStates:
    """Filtered means of a recording.

    Attributes:
        q: (N, n) [rad].
        dq: (N, n) [rad/s].
        tau: (N, n) [Nm] in the observers' convention.
        h: median interval [s].
    """

    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    h: float


def filtered_states(stream: SampleStream, recording: Recording) -> FilteredStates:
    """Run the EKF of ``stream`` over ``recording`` and keep its mean after every used sample.

    Raises:
        RecordingError: the recording has bad samples or fewer than ten good ones, its time goes back, or its times
            are in another unit.
    """
    observer, n = stream.observer, stream.arm.n
    if not isinstance(observer, Ekf):
        raise RecordingError(f"a fit needs an observer of kind ekf to estimate the states, found '{observer.name}'")
    if len(recording) > 1 and recording.period > stream.sensors.max_gap:  # every step is a gap
        recording.check(stream.sensors.max_gap)
    rows = []
    for stamp, q, dq, tau in zip(recording.stamps_ns.tolist(), recording.q, recording.dq, recording.tau):
        if not stream.push_fast(stamp, q, dq, tau):
            raise RecordingError(
                f"{recording.source}: the sample at {stamp * 1e-9:.3f} s cannot be used: {stream.reason}"
            )
        rows.append(np.concatenate([observer.state[: 2 * n], stream.torque]))
    if back := stream.counters["backward"]:
        raise RecordingError(
            f"{recording.source}: {back} stamps are earlier than the one before; cut the recording there, or sort it"
        )
    if len(rows) < 10:
        raise RecordingError(f"{recording.source}: {len(rows)} samples are too few for a fit")
    table = np.array(rows)
    return FilteredStates(
        table[:, :n], table[:, n : 2 * n], table[:, 2 * n :], float(np.median(np.diff(recording.stamps_ns))) * 1e-9
    )
