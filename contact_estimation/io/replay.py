"""Run a recording through an observer, without ROS; the result equals that of a node with the same samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from contact_estimation.exceptions import RecordingError
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
    """
    log = EstimateLog(stream.observer.name, len(recording))
    for block in fitting_blocks(recording, stream, progress):
        for stamp_ns, estimate, seconds in estimates(block, stream):
            log.append(stamp_ns, estimate, seconds)
    return log


def fitting_blocks(
    recording: Samples, stream: SampleStream, progress: Callable[[int], object] | None = None
) -> Iterator[Recording]:
    """Give a recording block by block to a stream that it fits; arguments and errors of :func:`replay`."""
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
