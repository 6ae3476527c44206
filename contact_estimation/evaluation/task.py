"""The unit of work of ``evaluate``: one recording through some observers, in whatever process picks it up."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from contact_estimation.evaluation.scoring import find_reference, make_curves, open_for_arm, score
from contact_estimation.exceptions import ContactEstimationError, RecordingError
from contact_estimation.filters.registry import open_stream
from contact_estimation.filters.stream import SampleStream
from contact_estimation.io.open import recorded_arm
from contact_estimation.io.recording import Samples
from contact_estimation.io.replay import estimates, fitting_blocks
from contact_estimation.io.survey import Survey, survey
from contact_estimation.jobs.results import content_hash, key_of
from contact_estimation.jobs.version import code_version
from contact_estimation.robot import Arm, load_arm
from contact_estimation.viz.reference import Reference

if TYPE_CHECKING:
    from contact_estimation.viz.curves import Curves

T = TypeVar("T")

#: What this thread has opened: arms and streams. A stream takes a second to open, a short recording less to replay.
_opened = threading.local()
#: How much of it is kept; more observers and robots than this are opened for every recording.
_KEPT = 32


@dataclass(frozen=True)
class Options:
    """How recordings are read and replayed.

    Attributes:
        robot: name or profile; None takes the one each recording names.
        tool: behind the flange; "" takes what the robot's profile has.
        sensors: sensor set; None takes the recording's, else the observer's, else the robot's.
        joint_states: topic of bags; None finds it.
        wrench: topic of bags; None finds it.
        rate: [Hz] of archives without stamps.
        keep_going: whether recordings with bad samples are replayed, too.
    """

    robot: str | None = None
    tool: str = ""
    sensors: str | None = None
    joint_states: str | None = None
    wrench: str | None = None
    rate: float | None = None
    keep_going: bool = False


@dataclass(frozen=True)
class Task:
    """One recording through some observers.

    Attributes:
        path: absolute path of the recording.
        observers: names or files.
        options: how.
        files: hash of the user's own files that observers and options name; who has opened others opens these anew.
    """

    path: Path
    observers: tuple[str, ...]
    options: Options
    files: str = ""


def hash_of_files(observers: tuple[str, ...], options: Options) -> str:
    """Hash the user's own files among observers, robot and sensors; what is shipped belongs to the code's version.

    Args:
        observers: names or YAML files.
        options: with robot, tool and sensors.
    """
    places = [
        Path(word.partition(":")[0]) for word in (*observers, options.robot, options.tool, options.sensors) if word
    ]
    return key_of(*(content_hash(place) for place in places if place.exists()))


def keys_of(task: Task) -> dict[str, str]:
    """Return observer -> key of its result: a hash of recording, configuration and code.

    Args:
        task: of a recording.

    Raises:
        RecordingError: the recording cannot be read.
    """
    try:
        content = content_hash(task.path)
    except OSError as error:
        raise RecordingError(f"{task.path} cannot be read ({error.strerror})") from error
    return {name: key_of(content, name, task.options, task.files, code_version()) for name in task.observers}


def evaluate(task: Task) -> dict[str, Any]:
    """Do a task.

    Returns:
        ``about`` (robot, samples, duration [s], label of the reference, share of samples without it) and ``observers``,
        name -> figures of :meth:`~contact_estimation.viz.scores.Scores.figures` and the stream's counters. A recording
        that failed has ``error`` instead, an observer that failed has figures ``error``.
    """
    try:
        arm, recording = _open(task)
        surveyed = _surveyor(arm, recording)
        reference, duration = find_reference(arm, recording), surveyed(math.inf, math.inf).duration
    except ContactEstimationError as error:
        return {"error": str(error)}
    about = {"robot": arm.name, "samples": len(recording), "duration_s": duration}
    observers: dict[str, dict[str, Any]] = {}
    for observer in task.observers:
        try:
            stream = _stream(task, arm, observer, recording, surveyed)
            observers[observer] = score(recording, stream, reference).figures() | {"counters": dict(stream.counters)}
        except ContactEstimationError as error:
            observers[observer] = {"error": str(error)}
    compared = {"reference": reference.label, "reference_missing": reference.missing} if reference else {}
    return {"about": about | {"reference": None} | compared, "observers": observers}


def replay_again(task: Task) -> tuple[dict[str, Curves], Reference | None]:
    """Do a task for the estimates themselves; returns the curves of each observer, and what they are compared with.

    Raises:
        ContactEstimationError: recording or observers cannot be used.
    """
    arm, recording = _open(task)
    surveyed = _surveyor(arm, recording)
    found = make_curves(task.observers)
    for name, curves in found.items():
        stream = _stream(task, arm, name, recording, surveyed)
        for block in fitting_blocks(recording, stream):
            for estimate in estimates(block, stream):
                curves.append(*estimate)
    return found, find_reference(arm, recording)


def _open(task: Task) -> tuple[Arm, Samples]:
    """Open the recording with its robot."""
    options = task.options
    robot, tool = options.robot, options.tool
    if not robot:
        robot, tool = recorded_arm([task.path], tool, rate=options.rate)
    arm = _keep((robot, tool, task.files), lambda: load_arm(robot, tool))
    return arm, open_for_arm(arm, task.path, options.joint_states, options.wrench, options.rate)


def _surveyor(arm: Arm, recording: Samples) -> Callable[[float, float], Survey]:
    """Return the survey by longest gap and period [s]; observers that allow the same share one pass over the file."""
    return functools.cache(functools.partial(survey, recording, limits=(arm.lower, arm.upper)))


def _stream(
    task: Task, arm: Arm, observer: str, recording: Samples, surveyed: Callable[[float, float], Survey]
) -> SampleStream:
    """Give an observer's stream at its start, for a recording that it may be fed with."""
    sensors = task.options.sensors or recording.head.sensors or None
    key = (arm.name, arm.settings.folder, arm.settings.tool, observer, sensors, task.files)
    stream = _keep(key, lambda: open_stream(arm, observer, sensors))
    problems = surveyed(stream.sensors.max_gap, stream.sensors.longest_period).problems
    if problems and not task.options.keep_going:
        raise RecordingError(f"{task.path}: {'; '.join(problems)}. --keep-going evaluates it all the same.")
    stream.forget()
    return stream


def _keep(key: Hashable, make: Callable[[], T]) -> T:
    """Return what was made for ``key`` in this thread, or make it."""
    if not hasattr(_opened, "kept"):
        _opened.kept = {}
    kept: dict[Hashable, T] = _opened.kept
    if key not in kept:
        while len(kept) >= _KEPT:
            del kept[next(iter(kept))]
        kept[key] = make()
    return kept[key]
