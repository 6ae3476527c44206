"""rosbag2 recordings (MCAP and sqlite3) read without ROS."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from contact_estimation.exceptions import ContactEstimationError, RecordingError
from contact_estimation.io.recording import Recording, TcpRotation, given_names
from contact_estimation.io.recovery import journals
from contact_estimation.io.row_file import BLOCK
from contact_estimation.io.temporary import has_no_room, temporary_file_error
from contact_estimation.io.topic_buffer import TopicBuffer
from contact_estimation.io.topics import (
    JOINT_STATE,
    JOINT_STATES_TOPIC,
    JOINT_STATES_TOPICS,
    ROBOT_TOPIC,
    SENSORS_TOPIC,
    TEXT,
    TOOL_TOPIC,
    TRUTH_TOPICS,
    WRENCH,
    WRENCH_TOPIC,
    WRENCH_ZERO_TOPIC,
)


class _Topics(NamedTuple):
    """The topics of one arm.

    Attributes:
        joint_states: can be chosen.
        wrench: can be chosen.
        truth: name in ``Recording.truth`` -> topic, of those that a bag may have.
        wrench_zero: the sensor's reading in free space; "" where the bag has none.
    """

    joint_states: str
    wrench: str | None
    truth: dict[str, str]
    wrench_zero: str

    @classmethod
    def of(cls, types: dict[str, str], joint_states: str, wrench: str | None) -> _Topics:
        """Find the others beside the joint states, in the same namespace."""
        space = _namespace(joint_states)
        measured = wrench or next((topic for topic in (space + WRENCH_TOPIC, WRENCH_TOPIC) if topic in types), None)
        truth = {name: space + topic for name, (topic, _) in TRUTH_TOPICS.items() if space + topic in types}
        zero = space + WRENCH_ZERO_TOPIC
        return cls(joint_states, measured, truth, zero if zero in types else "")


class BagFile:
    """A rosbag2 directory, or one bare ``.mcap`` or ``.db3`` file of one, as a recording that is read block by block.

    Its topics are decoded once, into temporary files.

    Args:
        path: the bag.
        joint_names: the robot's joints; None takes those of the first message.
        joint_states: topic of the JointState messages; None takes the first of ``JOINT_STATES_TOPICS``, in the only
            namespace that has one, or the only one that is no truth. The other topics are taken from its namespace.
        wrench: topic of the measured WrenchStamped; None takes ``WRENCH_TOPIC`` where the bag has it.
        base_frame: a measured wrench with this ``frame_id``, also behind a namespace or the prefix of the joints, has
            base axes (force at the TCP, as a UR controller gives it). Any other frame is taken to have the TCP's axes,
            also that of a sensor's own base, such as ``ft300_base_link``.
        rotation: turns such a wrench into TCP axes.

    Raises:
        RecordingError: the bag is empty, truncated or no bag; a topic is absent (those there are, are listed), of
            another type or empty; joints are missing; the disk of temporary files takes no more.

    Topics without a message are taken for absent, as a recorder leaves them of publishers that said nothing.

    Attributes:
        head: the first sample.
        notes: what was left out, a sentence each.
    """

    def __init__(
        self,
        path: Path | str,
        joint_names: Iterable[str] | None = None,
        joint_states: str | None = None,
        wrench: str | None = None,
        base_frame: str | None = None,
        rotation: TcpRotation | None = None,
    ) -> None:
        self._path, typestore = Path(path), get_typestore(Stores.ROS2_JAZZY)
        joint_names = given_names(joint_names)
        for file in self._path.glob("*.db3") if self._path.is_dir() else (self._path,):
            if left := journals(file):
                raise RecordingError(
                    f"{file}: its recorder did not close it, {left[0].name} beside it holds a part; "
                    f"'contact-estimation convert {self._path} OUTPUT' puts the two together"
                )
        try:
            with Reader(self._path) as reader:
                types = {connection.topic: connection.msgtype for connection in reader.connections}
                topics = _topics(self._path, reader, types, joint_states, wrench)
                buffers = _buffers(self._path, types, typestore, joint_names, topics)
                wanted = [connection for connection in reader.connections if connection.topic in buffers]
                adders = {connection.topic: buffers[connection.topic].add for connection in wanted}
                for connection, _, raw in reader.messages(wanted) if reader.message_count else ():
                    adders[connection.topic](raw)
                self._told = _texts(reader, typestore)
                self._rows = {topic: buffer.finish() for topic, buffer in buffers.items()}
        except ContactEstimationError:
            raise
        except (
            Exception
        ) as error:  # a damaged file makes rosbags raise nearly anything: its own, struct's, apsw's, zstd's
            if has_no_room(error):
                raise temporary_file_error(error) from error
            raise RecordingError(_unreadable(self._path, error)) from error
        self.notes = tuple(buffer.left_out for buffer in buffers.values() if buffer.left_out)
        self._topics, self._joint_names = topics, buffers[topics.joint_states].joint_names
        self._rotation = self._turns(buffers, base_frame, rotation)
        if not any(stamps.any() for stamps in self._rows[topics.joint_states].stamps.blocks()):
            raise RecordingError(
                f"{path}: every header.stamp on {topics.joint_states} is zero; have the driver set it to the sample's "
                "time."
            )
        self.head = next(self.blocks(1))

    def _turns(
        self, buffers: dict[str, TopicBuffer], base_frame: str | None, rotation: TcpRotation | None
    ) -> TcpRotation | None:
        """Return what turns the measured wrench into TCP axes, None where it has them."""
        wrench = self._topics.wrench
        if wrench is None or base_frame is None:
            return None
        frame = buffers[wrench].frame_id.rpartition("/")[2]  # a namespace may stand in front
        if frame not in (base_frame, buffers[self._topics.joint_states].prefix + base_frame):
            return None
        if rotation is None:
            raise RecordingError(
                f"{self._path}: the wrench on {wrench} has base axes ('{base_frame}'); name the robot to turn it."
            )
        return rotation

    def __len__(self) -> int:
        return len(self._rows[self._topics.joint_states])

    def read(self) -> Recording:
        """Return all samples."""
        return next(self.blocks(len(self)))

    def blocks(self, rows: int = BLOCK) -> Iterator[Recording]:
        """Give the samples in order, in blocks of at most ``rows``; each call begins anew."""
        states = self._rows[self._topics.joint_states]
        for begin in range(0, len(self), rows):
            part = slice(begin, begin + rows)
            q, dq, tau = np.split(states.values[part], 3, axis=1)
            yield self._recording(begin, states.stamps[part], q, dq, tau)

    def _recording(self, begin: int, stamps: np.ndarray, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> Recording:
        """Return the samples from ``begin`` on, with what other topics have at their stamps."""
        wrench = None if self._topics.wrench is None else self._rows[self._topics.wrench].at(stamps, begin)
        if wrench is not None and self._rotation is not None:
            in_base = wrench.reshape(-1, 2, 3)  # (N, force or torque, axis)
            wrench = np.einsum("nij,nki->nkj", self._rotation(q), in_base).reshape(-1, 6)
        return Recording(
            stamps,
            self._joint_names,
            q,
            dq,
            tau,
            str(self._path),
            wrench,
            self._rows[zero].values[:1][0] if (zero := self._topics.wrench_zero) in self._rows else np.zeros(6),
            {name: self._rows[topic].at(stamps, begin) for name, topic in self._topics.truth.items()},
            self._told.get(SENSORS_TOPIC, ""),
            self._told.get(ROBOT_TOPIC, ""),
            self._told.get(TOOL_TOPIC, ""),
        )


def read_bag(path: Path | str, joint_names: Iterable[str] | None = None, **choices: Any) -> Recording:
    """Read a bag; arguments and errors of :class:`BagFile`."""
    return BagFile(path, joint_names, **choices).read()


def words_of_bag(path: Path | str, *topics: str) -> tuple[str, ...]:
    """Return names a bag tells, "" where it does not or cannot be read.

    Args:
        path: of the bag.
        topics: that carry them, such as :data:`~contact_estimation.io.topics.ROBOT_TOPIC`.
    """
    try:
        with Reader(path) as reader:
            told = _texts(reader, get_typestore(Stores.ROS2_JAZZY))
    except Exception:  # a damaged file raises nearly anything; reading it tells what is wrong
        told = {}
    return tuple(told.get(topic, "") for topic in topics)


def _texts(reader: Reader, typestore: Typestore) -> dict[str, str]:
    """Return what the bag says of itself: topic -> its last word."""
    told = [c for c in reader.connections if c.topic in (SENSORS_TOPIC, ROBOT_TOPIC, TOOL_TOPIC) and c.msgtype == TEXT]
    messages = reader.messages(told) if told and reader.message_count else ()
    return {c.topic: str(typestore.deserialize_cdr(raw, TEXT).data) for c, _, raw in messages}  # type: ignore[attr-defined]


def _topics(path: Path, reader: Reader, types: dict[str, str], joint_states: str | None, wrench: str | None) -> _Topics:
    """Choose the topics among those with messages; among all, where none of them carries joint states."""
    spoken = {c.topic for c in reader.connections if c.msgcount}
    said = {topic: kind for topic, kind in types.items() if topic in spoken}
    said = said if JOINT_STATE in said.values() else types
    return _Topics.of(said, _joint_states_topic(path, said, joint_states), wrench)


def _joint_states_topic(path: Path, types: dict[str, str], asked: str | None) -> str:
    if not types:
        raise RecordingError(
            f"{path}: the bag is empty, it has no topic; record {JOINT_STATES_TOPIC} while the arm runs."
        )
    if asked is not None:
        return asked
    found = [topic for topic, kind in types.items() if kind == JOINT_STATE and "/truth/" not in topic]
    spaces = list(dict.fromkeys(_namespace(topic) for topic in found if topic.endswith(JOINT_STATES_TOPIC)))
    space = "" if "" in spaces or len(spaces) != 1 else spaces[0]
    known = [space + topic for topic in JOINT_STATES_TOPICS if space + topic in found]
    if known or len(found) == 1:
        return [*known, *found][0]
    raise RecordingError(
        f"{path}: {'several topics carry' if found else 'no topic carries'} joint states"
        f"{'; choose one with --joint-states' if found else ''}. The bag has {_listing(types)}."
    )


def _namespace(joint_states: str) -> str:
    """Return the namespace of a topic of joint states: "/left" of /left/franka/joint_states."""
    ends = (end for end in JOINT_STATES_TOPICS if joint_states.endswith(end))
    return joint_states.removesuffix(next(ends, joint_states))


def _buffers(
    path: Path, types: dict[str, str], typestore: Typestore, joint_names: Iterable[str] | None, topics: _Topics
) -> dict[str, TopicBuffer]:
    """Make the buffers to fill, by topic."""
    kinds = {topics.joint_states: JOINT_STATE} | ({topics.wrench: WRENCH} if topics.wrench else {})
    kinds |= {topic: TRUTH_TOPICS[name][1] for name, topic in topics.truth.items()}
    kinds |= {topics.wrench_zero: WRENCH} if topics.wrench_zero else {}
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
        f"'contact-estimation convert {path} OUTPUT' recovers what a cut-off file holds, "
        "'sqlite3 FILE .recover' a damaged .db3."
    )
