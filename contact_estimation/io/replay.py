"""Run a recording through an observer, without ROS; the result equals that of a node with the same samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.recording import Recording

if TYPE_CHECKING:
    from contact_estimation.filters.observer import Estimate
    from contact_estimation.filters.stream import SampleStream


#: Takes stamp [ns], estimate and the time from the sample to it [s].
Sink: TypeAlias = Callable[[int, "Estimate", float], object]


def replay(
    recording: Recording,
    stream: SampleStream,
    progress: Callable[[int], object] | None = None,
    sink: Sink | None = None,
) -> EstimateLog:
    """Push every sample through ``stream`` and keep every estimate.

    Args:
        recording: its joints must be the robot's, in the robot's order (see ``Recording.reordered``).
        stream: a fresh one; see :func:`~contact_estimation.filters.registry.open_stream`.
        progress: called with the number of samples done, about a hundred times.
        sink: gets every estimate, too.

    Raises:
        RecordingError: the joints are not the robot's, or the observer needs a wrench that the recording has not.
    """
    log = EstimateLog(stream.observer.name, len(recording))
    for stamp_ns, estimate, seconds in estimates(recording, stream, progress, sink):
        log.append(stamp_ns, estimate, seconds)
    return log


def estimates(
    recording: Recording,
    stream: SampleStream,
    progress: Callable[[int], object] | None = None,
    sink: Sink | None = None,
) -> Iterator[tuple[int, Estimate, float]]:
    """Push every sample through ``stream``; arguments and errors of :func:`replay`.

    Yields:
        Stamp [ns], estimate, and the time from the sample to it [s].
    """
    if recording.joint_names != tuple(stream.arm.joint_names):
        raise RecordingError(
            f"{recording.source}: its joints {', '.join(recording.joint_names)} are not, in this "
            f"order, those of robot '{stream.arm.name}'; open it with joint_names=arm.joint_names."
        )
    wrenches = _wrenches(recording, stream)
    push, clock = stream.push, time.perf_counter_ns
    every = max(len(recording) // 100, 1)
    samples = zip(recording.stamps_ns.tolist(), recording.q, recording.dq, recording.tau)
    for row, (stamp_ns, q, dq, tau) in enumerate(samples):
        start = clock()
        if wrenches is not None:
            stream.push_wrench(wrenches[row])
        estimate = push(stamp_ns, q, dq, tau)
        seconds = (clock() - start) * 1e-9
        if sink is not None:
            sink(stamp_ns, estimate, seconds)
        yield stamp_ns, estimate, seconds
        if progress is not None and row % every == 0:
            progress(row)
    if progress is not None:
        progress(len(recording))


def _wrenches(recording: Recording, stream: SampleStream) -> np.ndarray | None:
    """Return the measured wrenches (N, 6) without their zero where the observer needs them."""
    if not stream.needs_wrench:
        return None
    if recording.wrench_tcp is None or np.isnan(recording.wrench_tcp).all(axis=0).any():
        raise RecordingError(
            f"{recording.source}: observer '{stream.observer.name}' needs a measured force and torque, which the "
            "recording lacks; set wrench: torque in its settings."
        )
    return np.asarray(recording.wrench_tcp - recording.wrench_zero)
