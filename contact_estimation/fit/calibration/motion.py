"""Prepare a recording for regression: even sampling, zero-phase low-pass, differentiation, decimation.

Torque and every regressor pass the same filter, so that the filter cancels from a model that is linear in its
parameters (parallel filtering); velocity and acceleration are exact derivatives of the filtered position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.recording import Recording
from contact_estimation.robot.friction import apply_deadband, presliding_states

#: [rad] Encoder noise left after the low-pass; less than the estimator's deadband, which sees raw positions.
DEADBAND = 5e-6
#: Samples kept per period of the cut-off frequency.
_KEPT = 4
#: [periods of the cut-off frequency] So long the filter lacks what was before or comes after a recording. Half a period
#: from its ends the torque of the accelerations is wrong by several Nm, two periods from them by a hundredth of one.
_EDGE = 2.0
#: [s] Least of a recording that is left between its ends.
_LEAST = 1.0


@dataclass(frozen=True)
class Motion:
    """T samples of free motion.

    Attributes:
        source: name of the recording.
        t: (T,) [s].
        q: (T, n) positions [rad], filtered.
        dq: (T, n) velocities [rad/s], filtered.
        ddq: (T, n) accelerations [rad/s^2], filtered.
        tau: (T, n) torques [Nm], filtered.
        rate: [Hz] of these samples.
    """

    source: str
    t: np.ndarray
    q: np.ndarray
    dq: np.ndarray
    ddq: np.ndarray
    tau: np.ndarray
    rate: float
    _seen: np.ndarray
    _low_pass: Callable[[np.ndarray], np.ndarray]
    _rows: slice

    def sliding(self, length: np.ndarray) -> np.ndarray:
        """Presliding states (T, n) for breakaway lengths ``length`` (n,) [rad], filtered like the torque."""
        return self._thin(presliding_states(self._seen, np.asarray(length)))

    def slidings(self, lengths: np.ndarray) -> np.ndarray:
        """Return the presliding states (T, n, L) of L candidates of the breakaway length.

        Args:
            lengths: (L,) [rad], the same for every joint.
        """
        return self._thin(presliding_states(self._seen[:, :, None], lengths))

    def _thin(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(self._low_pass(values)[self._rows])


def prepare(recording: Recording, cutoff: float) -> Motion:
    """Filter a recording whose effort is the total joint torque, with a zero-phase low-pass at ``cutoff`` [Hz].

    Raises:
        RecordingError: bad samples, shorter than 2 s, too short or sampled too slowly for the cut-off.
    """
    from scipy.signal import butter, sosfiltfilt  # 0.6 s that `--help` and a node do not need

    recording.check(max_gap=0.5)
    period = recording.period
    if recording.duration < 2.0 or len(recording) < 50:
        raise RecordingError(
            f"{recording.source}: {recording.duration:.2g} s are too short to calibrate from; record "
            "at least some ten seconds of motion of every joint"
        )
    if 1 / period < 2 * _KEPT * cutoff:
        raise RecordingError(
            f"{recording.source}: sampled at {1 / period:.0f} Hz, a cut-off of {cutoff:g} Hz needs "
            f"{2 * _KEPT * cutoff:.0f} Hz; lower --cutoff to {1 / period / (2 * _KEPT):.1f}"
        )
    if recording.duration < _LEAST + 2 * _EDGE / cutoff:
        raise RecordingError(
            f"{recording.source}: of {recording.duration:.3g} s a cut-off of {cutoff:g} Hz leaves too little beside "
            f"the ends; raise --cutoff to {2 * _EDGE / (recording.duration - _LEAST):.2g}, or record longer"
        )
    t = np.arange(recording.t[0], recording.t[-1], period)
    q, tau = (
        np.column_stack([np.interp(t, recording.t, column) for column in values.T])
        for values in (recording.q, recording.tau)
    )
    # Three derivatives of a fourth-order filter stay smooth.
    low_pass = partial(sosfiltfilt, butter(4, cutoff, fs=1 / period, output="sos"), axis=0)
    smooth = low_pass(q)
    dq = np.gradient(smooth, period, axis=0)
    ddq = np.gradient(dq, period, axis=0)
    step = max(1, int(1 / period / (_KEPT * cutoff)))
    edge = int(_EDGE / cutoff / period)
    rows = slice(edge, len(t) - edge, step)
    return Motion(
        recording.source,
        t[rows],
        smooth[rows],
        dq[rows],
        ddq[rows],
        low_pass(tau)[rows],
        1 / period / step,
        apply_deadband(smooth, DEADBAND),
        low_pass,
        rows,
    )
