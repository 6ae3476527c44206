"""rosbag2 recordings (MCAP and sqlite3) read without ROS."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from contact_estimation.exceptions import ContactEstimationError, RecordingError
from contact_estimation.io.recording import Recording, TcpRotation
from contact_estimation.io.topic_buffer import TopicBuffer
from contact_estimation.io.topics import (
    JOINT_STATE,
    JOINT_STATES_TOPIC,
    JOINT_STATES_TOPICS,
    ROBOT_TOPIC,
    SENSORS_TOPIC,
    TEXT,
    TRUTH_TOPICS,
    WRENCH,
    WRENCH_TOPIC,
    WRENCH_ZERO_TOPIC,
)


class _Topics(NamedTuple):
    """The two topics of a bag that can be chosen."""

    joint_states: str
    wrench: str | None


def read_bag(
    path: Path | str,
    joint_names: Iterable[str] | None = None,
    joint_states: str | None = None,
    wrench: str | None = None,
    base_frame: str | None = None,
    rotation: TcpRotation | None = None,
) -> Recording:
    """Read a rosbag2 directory, or one bare ``.mcap`` or ``.db3`` file of one.

    Args:
        path: the bag.
        joint_names: the robot's joints; None takes those of the first message.
        joint_states: topic of the JointState messages; None takes the first of ``JOINT_STATES_TOPICS``, or the only
            one outside ``/truth``.
        wrench: topic of the measured WrenchStamped; None takes ``WRENCH_TOPIC`` where the bag has it.
        base_frame: a measured wrench with this ``frame_id`` has base axes (force at the TCP, as a UR controller gives
            it). Any other frame is taken to have the TCP's axes.
        rotation: turns such a wrench into TCP axes.

    Raises:
        RecordingError: the bag is empty, truncated or no bag; a topic is absent (those there are, are listed), of
            another type or empty; joints are missing.
    """
    path = Path(path)
    typestore = get_typestore(Stores.ROS2_JAZZY)
    try:
        with Reader(path) as reader:
            types = {connection.topic: connection.msgtype for connection in reader.connections}
            topics = _Topics(
                _joint_states_topic(path, types, joint_states),
                wrench or (WRENCH_TOPIC if WRENCH_TOPIC in types else None),
            )
            buffers = _buffers(path, types, typestore, joint_names, topics)
            wanted = [connection for connection in reader.connections if connection.topic in buffers]
            adders = {connection.topic: buffers[connection.topic].add for connection in wanted}
            for connection, _, raw in reader.messages(wanted) if reader.message_count else ():
                adders[connection.topic](raw)
            return _assemble(path, buffers, topics, base_frame, rotation, _texts(reader, typestore))
    except ContactEstimationError:
        raise
    except Exception as error:  # a damaged file makes rosbags raise nearly anything: its own, struct's, apsw's, zstd's
        raise RecordingError(_unreadable(path, error)) from error


def _assemble(
    path: Path,
    buffers: dict[str, TopicBuffer],
    topics: _Topics,
    base_frame: str | None,
    rotation: TcpRotation | None,
    told: dict[str, str],
) -> Recording:
    """Make the recording of what the buffers hold."""
    stamps, values = buffers[topics.joint_states].finish()
    q, dq, tau = (np.ascontiguousarray(part) for part in np.split(values, 3, axis=1))
    del values
    if not stamps.any():
        raise RecordingError(
            f"{path}: every header.stamp on {topics.joint_states} is zero; have the driver set it to the sample's time."
        )
    truth = {
        name: _at_stamps(stamps, *buffers[topic].finish())
        for name, (topic, _) in TRUTH_TOPICS.items()
        if topic in buffers
    }
    return Recording(
        stamps,
        buffers[topics.joint_states].joint_names,
        q,
        dq,
        tau,
        str(path),
        _measured(path, stamps, q, buffers[topics.wrench], base_frame, rotation) if topics.wrench else None,
        buffers[WRENCH_ZERO_TOPIC].finish()[1][0] if WRENCH_ZERO_TOPIC in buffers else np.zeros(6),
        truth,
        told.get(SENSORS_TOPIC, ""),
        told.get(ROBOT_TOPIC, ""),
    )


def robot_of_bag(path: Path | str) -> str:
    """Return the name of the robot a bag tells, "" where it does not or cannot be read."""
    try:
        with Reader(path) as reader:
            return _texts(reader, get_typestore(Stores.ROS2_JAZZY)).get(ROBOT_TOPIC, "")
    except Exception:  # a damaged file raises nearly anything; reading it tells what is wrong
        return ""


def _texts(reader: Reader, typestore: Typestore) -> dict[str, str]:
    """Return what the bag says of itself: topic -> its last word."""
    told = [c for c in reader.connections if c.topic in (SENSORS_TOPIC, ROBOT_TOPIC) and c.msgtype == TEXT]
    messages = reader.messages(told) if told and reader.message_count else ()
    return {c.topic: str(typestore.deserialize_cdr(raw, TEXT).data) for c, _, raw in messages}  # type: ignore[attr-defined]


def _joint_states_topic(path: Path, types: dict[str, str], asked: str | None) -> str:
    if not types:
        raise RecordingError(
            f"{path}: the bag is empty, it has no topic; record {JOINT_STATES_TOPIC} while the arm runs."
        )
    if asked is not None:
        return asked
    found = [topic for topic, kind in types.items() if kind == JOINT_STATE and not topic.startswith("/truth/")]
    known = [topic for topic in JOINT_STATES_TOPICS if topic in found]
    if known or len(found) == 1:
        return [*known, *found][0]
    raise RecordingError(
        f"{path}: {'several topics carry' if found else 'no topic carries'} joint states"
        f"{'; choose one with --joint-states' if found else ''}. The bag has {_listing(types)}."
    )


def _buffers(
    path: Path, types: dict[str, str], typestore: Typestore, joint_names: Iterable[str] | None, topics: _Topics
) -> dict[str, TopicBuffer]:
    """Make the buffers to fill, by topic."""
    kinds = {topics.joint_states: JOINT_STATE} | ({topics.wrench: WRENCH} if topics.wrench else {})
    kinds |= {topic: kind for topic, kind in [(WRENCH_ZERO_TOPIC, WRENCH), *TRUTH_TOPICS.values()] if topic in types}
    for topic, kind in kinds.items():
        _require(path, types, topic, kind)
    fields = {topics.joint_states: ("position", "velocity", "effort")}
    return {
        topic: TopicBuffer(typestore, topic, kind, str(path), joint_names, fields.get(topic, ("effort",)))
        for topic, kind in kinds.items()
    }


def _require(path: Path, types: dict[str, str], topic: str, kind: str) -> None:
    if topic not in types:
        near = difflib.get_close_matches(topic, types, n=1, cutoff=0.0)
        raise RecordingError(f"{path}: no topic '{topic}' (nearest there: '{near[0]}'). The bag has {_listing(types)}.")
    if types[topic] != kind:
        raise RecordingError(
            f"{path}: topic {topic} carries {types[topic]}, expected {kind}. The bag has {_listing(types)}."
        )


def _listing(types: dict[str, str]) -> str:
    return ", ".join(f"{topic} ({kind})" for topic, kind in sorted(types.items()))


def _unreadable(path: Path, error: Exception) -> str:
    if not path.exists():
        return f"{path}: there is no such file or folder"
    if path.is_file() and path.stat().st_size == 0:
        return f"{path}: the file is empty (0 bytes)"
    if path.is_dir() and not (path / "metadata.yaml").exists():
        return (
            f"{path}: the folder has no metadata.yaml, so it is no rosbag2, or its recording was cut off; "
            f"'contact-estimation convert {path} OUTPUT' recovers what it holds."
        )
    return (
        f"{path}: the bag cannot be read ({type(error).__name__}: {error}); it is truncated or damaged. "
        f"'contact-estimation convert {path} OUTPUT' recovers what a cut-off .mcap holds, "
        "'sqlite3 FILE .recover' a .db3."
    )


def _measured(
    path: Path,
    stamps: np.ndarray,
    q: np.ndarray,
    buffer: TopicBuffer,
    base_frame: str | None,
    rotation: TcpRotation | None,
) -> np.ndarray:
    """Measured wrench (N, 6) at ``stamps``, TCP axes."""
    measured = _at_stamps(stamps, *buffer.finish())
    if base_frame is None or buffer.frame_id != base_frame:
        return measured
    if rotation is None:
        raise RecordingError(
            f"{path}: the wrench on {buffer.topic} has base axes ('{base_frame}'); name the robot to turn it."
        )
    in_base = measured.reshape(-1, 2, 3)  # (N, force or torque, axis)
    turned: np.ndarray = np.einsum("nij,nki->nkj", rotation(q), in_base)
    return turned.reshape(-1, 6)


def _at_stamps(stamps: np.ndarray, stamps_there: np.ndarray, values: np.ndarray) -> np.ndarray:
    """``values`` at ``stamps``: as they are where the stamps agree, else interpolated, NaN outside their time."""
    if np.array_equal(stamps, stamps_there):
        return values
    order = np.argsort(stamps_there, kind="stable")
    origin = stamps_there[order[0]]  # float64 holds a difference of stamps to the nanosecond, an absolute stamp not
    t, t_there = (stamps - origin) * 1e-9, (stamps_there[order] - origin) * 1e-9
    return np.stack([np.interp(t, t_there, column, left=np.nan, right=np.nan) for column in values[order].T], axis=1)
