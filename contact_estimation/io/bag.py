"""rosbag2 recordings (MCAP and sqlite3) read without ROS."""

from __future__ import annotations

import difflib
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from contact_estimation.exceptions import ContactEstimationError, RecordingError
from contact_estimation.io.recording import Recording
from contact_estimation.io.topics import (JOINT_STATE, JOINT_STATES_TOPIC, SENSORS_TOPIC, TEXT, TRUTH_TOPICS, WRENCH,
                                          WRENCH_TOPIC, WRENCH_ZERO_TOPIC)
from contact_estimation.io.track import Track


def read_bag(path: Path | str, joint_names=None, joint_states: str | None = None, wrench: str | None = None,
             base_frame: str | None = None, rotation=None) -> Recording:
    """Read a rosbag2 directory, or one bare ``.mcap`` or ``.db3`` file of one.

    Args:
        path: the bag.
        joint_names: the robot's joints; None takes those of the first message.
        joint_states: topic of the JointState messages; None takes ``/joint_states``, or the only
            one outside ``/truth``.
        wrench: topic of the measured WrenchStamped; None takes ``WRENCH_TOPIC`` where the bag has it.
        base_frame, rotation: a measured wrench whose ``frame_id`` is ``base_frame`` (force at the TCP, base axes, as
            a UR controller gives it) is turned into TCP axes by ``rotation``: q (N, n) -> R (N, 3, 3) of the TCP axes
            in the base. Any other frame is taken to have the TCP's axes.

    Raises:
        RecordingError: the bag is empty, truncated or no bag; a topic is absent (those there are, are listed), of
            another type or empty; joints are missing.
    """
    path = Path(path)
    typestore = get_typestore(Stores.ROS2_JAZZY)
    try:
        with Reader(path) as reader:
            types = {connection.topic: connection.msgtype for connection in reader.connections}
            joint_states = _joint_states_topic(path, types, joint_states)
            wrench = wrench or (WRENCH_TOPIC if WRENCH_TOPIC in types else None)
            tracks = _tracks(path, types, typestore, joint_names, joint_states, wrench)
            wanted = [connection for connection in reader.connections if connection.topic in tracks]
            adders = {connection.topic: tracks[connection.topic].add for connection in wanted}
            for connection, _, raw in reader.messages(wanted) if reader.message_count else ():
                adders[connection.topic](raw)
            told = [c for c in reader.connections if c.topic == SENSORS_TOPIC and c.msgtype == TEXT]
            texts = reader.messages(told) if told else ()
            sensors = ["", *(typestore.deserialize_cdr(raw, TEXT).data for _, _, raw in texts)]
    except ContactEstimationError:
        raise
    except Exception as error:  # a damaged file makes rosbags raise nearly anything: its own, struct's, apsw's, zstd's
        raise RecordingError(_unreadable(path, error)) from error
    return _assemble(path, tracks, joint_states, wrench, base_frame, rotation, sensors[-1])


def _joint_states_topic(path, types, asked: str | None) -> str:
    if not types:
        raise RecordingError(f"{path}: the bag is empty, it has no topic; record {JOINT_STATES_TOPIC} "
                             "while the arm runs.")
    if asked is not None:
        return asked
    found = [topic for topic, kind in types.items() if kind == JOINT_STATE and not topic.startswith("/truth/")]
    if JOINT_STATES_TOPIC in found:
        return JOINT_STATES_TOPIC
    if len(found) == 1:
        return found[0]
    raise RecordingError(f"{path}: {'several topics carry' if found else 'no topic carries'} joint states"
                         f"{'; choose one with --joint-states' if found else ''}. The bag has {_listing(types)}.")


def _tracks(path, types, typestore, joint_names, joint_states, wrench) -> dict[str, Track]:
    """The tracks to fill, by topic."""
    kinds = {joint_states: JOINT_STATE} | ({wrench: WRENCH} if wrench else {})
    kinds |= {topic: kind for topic, kind in [(WRENCH_ZERO_TOPIC, WRENCH), *TRUTH_TOPICS.values()] if topic in types}
    for topic, kind in kinds.items():
        _require(path, types, topic, kind)
    return {topic: Track(typestore, topic, kind, str(path), joint_names,
                         ("position", "velocity", "effort") if topic == joint_states else ("effort",))
            for topic, kind in kinds.items()}


def _require(path, types, topic, kind) -> None:
    if topic not in types:
        near = difflib.get_close_matches(topic, types, n=1, cutoff=0.0)
        raise RecordingError(f"{path}: no topic '{topic}' (nearest there: '{near[0]}'). The bag has {_listing(types)}.")
    if types[topic] != kind:
        raise RecordingError(f"{path}: topic {topic} carries {types[topic]}, expected {kind}. "
                             f"The bag has {_listing(types)}.")


def _listing(types) -> str:
    return ", ".join(f"{topic} ({kind})" for topic, kind in sorted(types.items()))


def _unreadable(path, error) -> str:
    if not path.exists():
        return f"{path}: there is no such file or folder"
    if path.is_file() and path.stat().st_size == 0:
        return f"{path}: the file is empty (0 bytes)"
    if path.is_dir() and not (path / "metadata.yaml").exists():
        return (f"{path}: the folder has no metadata.yaml, so it is no rosbag2, or its recording was cut off; "
                f"'ros2 bag reindex {path}' writes it anew.")
    return (f"{path}: the bag cannot be read ({type(error).__name__}: {error}); it is truncated or damaged. "
            "'mcap recover' saves what a cut-off .mcap holds, 'sqlite3 FILE .recover' a .db3.")


def _assemble(path, tracks, joint_states, wrench, base_frame, rotation, sensors) -> Recording:
    states = tracks[joint_states]
    stamps, values = states.finish()
    q, dq, tau = np.split(values, 3, axis=1)
    if not stamps.any():
        raise RecordingError(f"{path}: every header.stamp on {states.topic} is zero; "
                             "have the driver set it to the sample's time.")
    measured = None
    if wrench:
        track = tracks[wrench]
        measured = _at_stamps(stamps, *track.finish())
        if base_frame is not None and track.frame_id == base_frame:
            if rotation is None:
                raise RecordingError(f"{path}: the wrench on {track.topic} has base axes ('{base_frame}'); "
                                     "name the robot to turn it.")
            in_base = measured.reshape(-1, 2, 3)
            measured = np.einsum("nij,nki->nkj", rotation(q), in_base).reshape(-1, 6)
    zero = tracks[WRENCH_ZERO_TOPIC].finish()[1][0] if WRENCH_ZERO_TOPIC in tracks else np.zeros(6)
    truth = {name: _at_stamps(stamps, *tracks[topic].finish())
             for name, (topic, _) in TRUTH_TOPICS.items() if topic in tracks}
    return Recording(stamps, states.joint_names, q, dq, tau, str(path), measured, zero, truth, sensors)


def _at_stamps(stamps: np.ndarray, stamps_there: np.ndarray, values: np.ndarray) -> np.ndarray:
    """``values`` at ``stamps``: as they are where the stamps agree, else interpolated, NaN outside their time."""
    if np.array_equal(stamps, stamps_there):
        return values
    order = np.argsort(stamps_there, kind="stable")
    origin = stamps_there[order[0]]  # float64 holds a difference of stamps to the nanosecond, an absolute stamp not
    t, t_there = (stamps - origin) * 1e-9, (stamps_there[order] - origin) * 1e-9
    return np.stack([np.interp(t, t_there, column, left=np.nan, right=np.nan) for column in values[order].T], axis=1)
