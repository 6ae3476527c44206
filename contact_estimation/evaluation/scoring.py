"""One recording through observers: opened with an arm, replayed, scored against its reference, reported."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.registry import open_stream
from contact_estimation.filters.stream import SampleStream
from contact_estimation.io.export import WordColumn
from contact_estimation.io.npz import NpzFile
from contact_estimation.io.open import open_file
from contact_estimation.io.recording import Recording, Samples
from contact_estimation.io.replay import Sink, estimates, fitting_blocks
from contact_estimation.io.survey import Survey, survey
from contact_estimation.robot import Arm
from contact_estimation.viz.curves import Curves
from contact_estimation.viz.reference import Reference, reference_of
from contact_estimation.viz.scores import Scores

if TYPE_CHECKING:
    from contact_estimation.io.bag import BagFile


class Evaluated(NamedTuple):
    """A recording with what its observers made of it."""

    arm: Arm
    recording: Samples
    reference: Reference | None  # None: the recording has none
    scores: dict[str, Scores]  # by observer


def open_for_arm(
    arm: Arm | None, path: Path, joint_states: str | None = None, wrench: str | None = None, rate: float | None = None
) -> NpzFile | BagFile:
    """Open a recording, to be read block by block, with the joints, in the order, of an arm.

    Args:
        arm: the robot it was made with; None takes the joints as recorded.
        path: the recording.
        joint_states: topic of a bag's joint states; None finds it.
        wrench: topic of a bag's measured wrench; None finds it.
        rate: [Hz] of an archive without stamps.

    Raises:
        RecordingError: it cannot be read, or does not fit the arm.
    """
    if rate is not None and not 0 < rate < math.inf:
        raise RecordingError(f"--rate must be greater than 0 Hz and finite, found {rate:g}")
    topics: dict[str, Any] = {"joint_states": joint_states, "wrench": wrench}
    if arm is None:
        return open_file(path, rate=rate, **topics)
    fitted: dict[str, Any] = {"base_frame": arm.base_frame, "rotation": lambda q: arm.tcp_poses(q)[1]}
    return open_file(path, arm.joint_names, rate=rate, **topics, **fitted)


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


def survey_for(recording: Samples, streams: Iterable[SampleStream]) -> Survey:
    """Look through a recording for bad samples, and for times or positions that one of the streams does not take.

    Args:
        recording: in memory or in a file.
        streams: that it is replayed through, of one robot; one at least.

    Raises:
        RecordingError: the file is damaged.
    """
    streams = list(streams)
    sensors, arm = [stream.sensors for stream in streams], streams[0].arm
    shortest = min(s.max_gap for s in sensors), min(s.longest_period for s in sensors)
    return survey(recording, *shortest, (arm.lower, arm.upper))


def evaluate_recording(
    arm: Arm,
    recording: Samples,
    streams: Mapping[str, SampleStream],
    progress: Callable[[str, int], object] | None = None,
    seconds: dict[str, float] | None = None,
    sinks: Mapping[str, Iterable[Sink]] | None = None,
) -> Evaluated:
    """Replay a recording through every stream and score what they give; a block of it is in memory.

    Args:
        arm: the robot.
        recording: its joints are the robot's, in the robot's order.
        streams: observer -> its stream, at the start.
        progress: called with the observer and the number of samples done, after each block.
        seconds: the time [s] each observer takes is added to it.
        sinks: observer -> what get every estimate of it, for example a log's ``append``.

    Raises:
        RecordingError: the joints do not fit, or an observer lacks something in the recording.
    """
    seconds = {} if seconds is None else seconds
    reference = find_reference(arm, recording)
    scores = {}
    for name, stream in streams.items():
        update = functools.partial(progress, name) if progress is not None else None
        with timed(seconds, name):
            scores[name] = score(recording, stream, reference, update, (sinks or {}).get(name, ()))
    return Evaluated(arm, recording, reference, scores)


def score(
    recording: Samples,
    stream: SampleStream,
    reference: Reference | None,
    progress: Callable[[int], object] | None = None,
    sinks: Iterable[Sink] = (),
) -> Scores:
    """Replay a recording through one stream and compare it with a reference; arguments as of ``evaluate_recording``."""
    scores = Scores(reference)
    for block in fitting_blocks(recording, stream, progress, warn=False):  # the user chose the sensor set
        scores.add(replay_columns(block, stream, sinks))
    return scores


def replay_columns(block: Recording, stream: SampleStream, sinks: Iterable[Sink] = ()) -> dict[str, np.ndarray]:
    """Replay a block of a recording for :class:`~contact_estimation.viz.scores.Scores`.

    Args:
        block: N samples of :func:`~contact_estimation.io.replay.fitting_blocks`.
        stream: as the block before left it.
        sinks: get every estimate, too.

    Returns:
        Columns of :class:`~contact_estimation.io.export.EstimateLog`: ``t``, ``valid``, ``reason``, ``step_time``,
        ``force``, ``mode``, ``mismatch``, and ``stiffness`` where there is a contact; ``mode_probability`` is empty.
    """
    count = len(block)
    valid, step_time = np.zeros(count, bool), np.empty(count)
    force, stiffness = np.full((count, 3), np.nan), np.full((count, 3), np.nan)  # of the first contact: K
    words = {name: WordColumn(count) for name in ("mode", "reason", "mismatch")}
    last: Estimate | None = None
    for row, (_, estimate, step_time[row]) in enumerate(estimates(block, stream, sinks)):
        for name, column in words.items():
            column.put(row, getattr(estimate, name))
        if estimate.valid:
            valid[row], force[row], last = True, estimate.force_tcp, estimate
            if estimate.contacts:
                stiffness[row] = estimate.contacts[0].stiffness
    columns = {"t": block.t, "valid": valid, "step_time": step_time, "force": force}
    columns |= {name: column.column(count) for name, column in words.items()}
    columns["mode_probability"] = np.broadcast_to(np.nan, (count, 0 if last is None else len(last.modes)))
    if last is not None and last.contacts:
        columns["stiffness"] = np.linalg.norm(stiffness, axis=1)
    return columns


def find_reference(arm: Arm, recording: Samples) -> Reference | None:
    """Take the reference of a recording that was made with ``arm``; None where it has neither truth nor a wrench."""
    return reference_of(recording, arm.tcp_poses)


def make_curves(observers: Iterable[str]) -> dict[str, Curves]:
    """Return, for the names of observers, what collects their estimates for :func:`write_report`."""
    return {name: Curves(name) for name in observers}


def write_report(path: Path, evaluated: Evaluated, curves: Mapping[str, Curves], title: str, command: str) -> Path:
    """Write the report on one recording.

    Args:
        path: the HTML file.
        evaluated: what it shows.
        curves: observer -> curves of its estimates.
        title: of the page.
        command: that makes it again.

    Raises:
        RecordingError: it cannot be written.
    """
    from contact_estimation.viz.report import ReplayedRun, ReportExtras, replay_report  # matplotlib

    arm, recording, reference, scores = evaluated
    try:
        run = ReplayedRun(arm, recording, curves, reference, scores)
        return replay_report(path, run, title, ReportExtras(command=command))
    except OSError as error:
        raise RecordingError(f"{path} cannot be written ({error.strerror}); name another") from error


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Add the time its block takes [s] to ``seconds[name]``."""
    start = time.perf_counter()
    yield
    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start
