"""Run a recording through an observer, without ROS; the result equals that of a node with the same samples."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.recording import Recording, Samples, measured_parts

if TYPE_CHECKING:
    from contact_estimation.filters.observer import Estimate
    from contact_estimation.filters.stream import SampleStream


#: Takes stamp [ns], estimate and the time from the sample to it [s].
Sink: TypeAlias = Callable[[int, "Estimate", float], object]


def replay(recording: Samples, stream: SampleStream, progress: Callable[[int], object] | None = None) -> EstimateLog:
    """Push every sample through ``stream`` and keep every estimate.

    Args:
        recording: its joints must be the robot's, in the robot's order (see ``Recording.reordered``).
        stream: a fresh one; see :func:`~contact_estimation.filters.registry.open_stream`.
        progress: called with the number of samples done, after each block.

    Raises:
        RecordingError: the joints are not the robot's, or the observer needs a wrench that the recording has not.

    Warns:
        UserWarning: the recording names another sensor set than the stream's.
    """
    _warn_of_sensors(recording.head, stream)
    log = EstimateLog(stream.observer.name, len(recording))
    for block in fitting_blocks(recording, stream, progress, warn=False):
        for stamp_ns, estimate, seconds in estimates(block, stream):
            log.append(stamp_ns, estimate, seconds)
    return log


def fitting_blocks(
    recording: Samples, stream: SampleStream, progress: Callable[[int], object] | None = None, warn: bool = True
) -> Iterator[Recording]:
    """Give a recording block by block to a stream that it fits; arguments and errors of :func:`replay`.

    Args:
        recording: it.
        stream: it.
        progress: called with the number of samples done.
        warn: of a stream with another sensor set than the recording names.
    """
    if warn:
        _warn_of_sensors(recording.head, stream)
    head, observer = recording.head, stream.observer.name
    if head.joint_names != tuple(stream.arm.joint_names):
        raise RecordingError(
            f"{head.source}: its joints {', '.join(head.joint_names)} are not, in this "
            f"order, those of robot '{stream.arm.name}'; open it with joint_names=arm.joint_names."
        )
    if stream.needs_wrench and not measured_parts(recording).all():
        raise RecordingError(
            f"{head.source}: observer '{observer}' needs a measured force and torque, which the recording lacks; set "
            "wrench: torque in its settings."
        )
    done = 0
    for block in recording.blocks():
        yield block
        done += len(block)
        if progress is not None:
            progress(done)


def _warn_of_sensors(head: Recording, stream: SampleStream) -> None:
    """Warn where the recording names a sensor set that says something else than the stream's."""
    if not head.sensors or head.sensors == stream.sensor_set:
        return
    try:
        same = load_sensor_settings(head.sensors, stream.arm.settings.folder) == stream.sensors
    except ConfigError:  # a set that is not there
        same = False
    if not same:
        warnings.warn(
            f"{head.source} names the sensor set '{head.sensors}', the stream has '{stream.sensor_set or 'another'}': "
            "its effort may be read as something else; write open_stream(..., sensors=recording.sensors)",
            stacklevel=3,
        )


def estimates(
    block: Recording, stream: SampleStream, sinks: Iterable[Sink] = ()
) -> Iterator[tuple[int, Estimate, float]]:
    """Push the samples of a block through ``stream``, whose state goes on from the block before.

    Yields:
        Stamp [ns], estimate, and the time from the sample to it [s]; ``sinks`` get the same.
    """
    wrenches = block.wrench_tcp - block.wrench_zero if stream.needs_wrench and block.wrench_tcp is not None else None
    push, clock = stream.push, time.perf_counter_ns
    samples = zip(block.stamps_ns.tolist(), block.q, block.dq, block.tau)
    for row, (stamp_ns, q, dq, tau) in enumerate(samples):
        start = clock()
        if wrenches is not None:
            stream.push_wrench(wrenches[row])
        estimate = push(stamp_ns, q, dq, tau)
        seconds = (clock() - start) * 1e-9
        for sink in sinks:
            sink(stamp_ns, estimate, seconds)
        yield stamp_ns, estimate, seconds
