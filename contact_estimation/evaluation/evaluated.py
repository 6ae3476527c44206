"""One recording through observers: opened with an arm, replayed, scored against its reference, reported."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contact_estimation.evaluation.columns import replay_columns
from contact_estimation.exceptions import RecordingError
from contact_estimation.filters.registry import open_stream
from contact_estimation.filters.stream import SampleStream
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.open import open_recording
from contact_estimation.io.recording import Recording
from contact_estimation.io.replay import Sink, replay
from contact_estimation.robot import Arm
from contact_estimation.viz.summary import Reference, reference_of, summarise


class Evaluated(NamedTuple):
    """A recording with what its observers made of it."""

    arm: Arm
    recording: Recording
    logs: dict[str, EstimateLog]  # observer -> its estimates; empty where only the figures were asked for
    columns: dict[str, dict[str, np.ndarray]]  # observer -> columns of its log, or those that the figures need
    reference: Reference | None  # None: the recording has none
    figures: dict[str, dict[str, Any]]  # observer -> what :func:`~contact_estimation.viz.summary.summarise` gives


def open_for_arm(
    arm: Arm | None, path: Path, joint_states: str | None = None, wrench: str | None = None, rate: float | None = None
) -> Recording:
    """Open a recording with the joints, in the order, of an arm.

    Args:
        arm: the robot it was made with; None takes the joints as recorded.
        path: the recording.
        joint_states: topic of a bag's joint states; None finds it.
        wrench: topic of a bag's measured wrench; None finds it.
        rate: [Hz] of an archive without stamps.

    Raises:
        RecordingError: it cannot be read, or does not fit the arm.
    """
    if rate is not None and not rate > 0:
        raise RecordingError(f"--rate must be greater than 0 Hz, found {rate:g}")
    topics: dict[str, Any] = {"joint_states": joint_states, "wrench": wrench}
    if arm is None:
        return open_recording(path, rate=rate, **topics)
    fitted: dict[str, Any] = {"base_frame": arm.base_frame, "rotation": lambda q: arm.tcp_poses(q)[1]}
    return open_recording(path, arm.joint_names, rate=rate, **topics, **fitted)


def open_streams(arm: Arm, observers: Iterable[str], sensors: str = "") -> dict[str, SampleStream]:
    """Open the streams of observers.

    Args:
        arm: the robot.
        observers: names or files.
        sensors: sensor set; "" takes the observer's, else the robot's.

    Returns:
        Name of each observer -> its stream.

    Raises:
        RecordingError: two observers have one name.
        ConfigError: an observer or the sensor set cannot be loaded.
    """
    streams: dict[str, SampleStream] = {}
    for observer in observers:
        stream = open_stream(arm, observer, sensors or None)
        if stream.observer.name in streams:
            raise RecordingError(f"two observers are named '{stream.observer.name}'; rename one of the files")
        streams[stream.observer.name] = stream
    return streams


def evaluate_recording(
    arm: Arm,
    recording: Recording,
    streams: Mapping[str, SampleStream],
    progress: Callable[[str, int], object] | None = None,
    seconds: dict[str, float] | None = None,
    logs: bool = True,
    sinks: Mapping[str, Sink] | None = None,
) -> Evaluated:
    """Replay a recording through every stream and score what they give.

    Args:
        arm: the robot.
        recording: its joints are the robot's, in the robot's order.
        streams: observer -> its stream, at the start.
        progress: called with the observer and the number of samples done, about a hundred times for each.
        seconds: the time [s] each observer takes is added to it.
        logs: whether to keep every estimate, for reports.
        sinks: observer -> what gets every estimate of it, too.

    Raises:
        RecordingError: the joints do not fit, or an observer lacks something in the recording.
    """
    kept, columns, seconds = {}, {}, {} if seconds is None else seconds
    for name, stream in streams.items():
        update = functools.partial(progress, name) if progress is not None else None
        sink = (sinks or {}).get(name)
        with timed(seconds, name):
            if logs:
                kept[name] = replay(recording, stream, update, sink)
                columns[name] = kept[name].columns()
            else:
                columns[name] = replay_columns(recording, stream, update, sink)
    reference = find_reference(arm, recording)
    figures = {name: summarise(found, reference) for name, found in columns.items()}
    return Evaluated(arm, recording, kept, columns, reference, figures)


def find_reference(arm: Arm, recording: Recording) -> Reference | None:
    """Take the reference of a recording that was made with ``arm``; None where it has neither truth nor a wrench."""
    has_force = recording.wrench_tcp is not None or "wrench_tcp" in recording.truth
    return reference_of(recording, *(arm.tcp_poses(recording.q) if has_force else ()))


def write_report(path: Path, evaluated: Evaluated, title: str, command: str) -> Path:
    """Write the report on one recording.

    Args:
        path: the HTML file.
        evaluated: what it shows.
        title: of the page.
        command: that makes it again.

    Raises:
        RecordingError: it cannot be written.
    """
    from contact_estimation.viz.report import replay_report  # matplotlib

    arm, recording, logs, _, reference, _ = evaluated
    try:
        return replay_report(path, arm, recording, logs, reference, title, command=command)
    except OSError as error:
        raise RecordingError(f"{path} cannot be written ({error.strerror}); name another") from error


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Add the time its block takes [s] to ``seconds[name]``."""
    start = time.perf_counter()
    yield
    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start
