"""A recording written as rosbag2 (MCAP or sqlite3), so that the node graph can be fed with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.recording import Samples
from contact_estimation.io.topics import (
    JOINT_STATE,
    JOINT_STATES_TOPIC,
    POINT,
    ROBOT_TOPIC,
    SENSORS_TOPIC,
    TEXT,
    TOOL_TOPIC,
    TRUTH_TOPICS,
    VECTOR,
    WRENCH,
    WRENCH_TOPIC,
    WRENCH_ZERO_TOPIC,
)

STORAGE = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}


def write_bag(
    path: Path | str,
    recording: Samples,
    storage: str = "mcap",
    base_frame: str = "base_link",
    tcp_frame: str = "tool0",
    robot: str = "",
    tool: str = "",
) -> Path:
    """Write ``recording`` into the new folder ``path``; returns the path.

    Args:
        path: folder to be made.
        recording: what to write.
        storage: "mcap" or "sqlite3".
        base_frame: ``frame_id`` of joint states and of truth in the base.
        tcp_frame: ``frame_id`` of wrenches.
        robot: name for a recording that does not tell its robot.
        tool: the same of its tool.

    Raises:
        RecordingError: the folder exists, or a stamp is negative (no ROS time).
    """
    path = Path(path)
    if path.exists():
        raise RecordingError(f"{path} exists already; name a folder that does not, or delete it.")
    head, earliest = recording.head, min(int(block.stamps_ns.min()) for block in recording.blocks())
    if earliest < 0:
        raise RecordingError(f"{head.source}: a stamp is negative ({earliest} ns); ROS time starts at 0.")
    make, first = _Messages(get_typestore(Stores.ROS2_JAZZY), head.joint_names), int(head.stamps_ns[0])
    with Writer(path, version=9, storage_plugin=STORAGE[storage]) as writer:

        def topic(name: str, kind: str) -> Callable[[int, object], None]:
            connection = writer.add_connection(name, kind, typestore=make.typestore)
            return lambda stamp, message: writer.write(connection, stamp, make.typestore.serialize_cdr(message, kind))

        write_states, writers = topic(JOINT_STATES_TOPIC, JOINT_STATE), {}
        told = {SENSORS_TOPIC: head.sensors, ROBOT_TOPIC: head.robot or robot, TOOL_TOPIC: head.tool or tool}
        for name, text in told.items():
            if text:
                topic(name, TEXT)(first, make.typestore.types[TEXT](data=text))
        if head.wrench_tcp is not None:
            writers[WRENCH_TOPIC] = topic(WRENCH_TOPIC, WRENCH), WRENCH, tcp_frame
            if head.wrench_zero.any():
                topic(WRENCH_ZERO_TOPIC, WRENCH)(first, make.message(WRENCH, first, tcp_frame, head.wrench_zero))
        for name in head.truth:
            there, kind = TRUTH_TOPICS[name]
            writers[there] = topic(there, kind), kind, tcp_frame if name.endswith("_tcp") else base_frame
        for block in recording.blocks():
            columns = {TRUTH_TOPICS[name][0]: value for name, value in block.truth.items()}
            columns |= {} if block.wrench_tcp is None else {WRENCH_TOPIC: block.wrench_tcp}
            given = [(*writer, columns[there]) for there, writer in writers.items()]
            for row, stamp in enumerate(block.stamps_ns.tolist()):
                write_states(stamp, make.joint_state(stamp, base_frame, block.q[row], block.dq[row], block.tau[row]))
                for write, kind, frame, values in given:
                    write(stamp, make.message(kind, stamp, frame, values[row]))
    return path


class _Messages:
    """Makes the messages of a recording."""

    def __init__(self, typestore: Typestore, joint_names: tuple[str, ...]) -> None:
        self.typestore, self._names = typestore, list(joint_names)
        types = typestore.types
        self._header, self._time = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"]
        self._vector3, self._point = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Point"]
        self._wrench = types["geometry_msgs/msg/Wrench"]

    def _head(self, stamp: int, frame: str) -> Any:
        seconds, nanoseconds = divmod(stamp, 1_000_000_000)
        return self._header(stamp=self._time(sec=seconds, nanosec=nanoseconds), frame_id=frame)

    def joint_state(
        self, stamp: int, frame: str, position: np.ndarray, velocity: np.ndarray, effort: np.ndarray
    ) -> Any:
        return self.typestore.types[JOINT_STATE](
            header=self._head(stamp, frame), name=self._names, position=position, velocity=velocity, effort=effort
        )

    def message(self, kind: str, stamp: int, frame: str, row: np.ndarray) -> Any:
        """Message of type ``kind`` with the numbers of ``row``; those of a JointState are its effort."""
        if kind == JOINT_STATE:
            return self.joint_state(stamp, frame, np.zeros(0), np.zeros(0), row)
        numbers = row.tolist()
        body = {
            WRENCH: lambda: {"wrench": self._wrench(self._vector3(*numbers[:3]), self._vector3(*numbers[3:]))},
            VECTOR: lambda: {"vector": self._vector3(*numbers)},
            POINT: lambda: {"point": self._point(*numbers)},
        }[kind]()
        return self.typestore.types[kind](header=self._head(stamp, frame), **body)
