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
from contact_estimation.io.recording import Recording
from contact_estimation.io.topics import (
    JOINT_STATE,
    JOINT_STATES_TOPIC,
    POINT,
    ROBOT_TOPIC,
    SENSORS_TOPIC,
    TEXT,
    TRUTH_TOPICS,
    VECTOR,
    WRENCH,
    WRENCH_TOPIC,
    WRENCH_ZERO_TOPIC,
)

STORAGE = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}


def write_bag(
    path: Path | str,
    recording: Recording,
    storage: str = "mcap",
    base_frame: str = "base_link",
    tcp_frame: str = "tool0",
) -> Path:
    """Write ``recording`` into the new folder ``path``; returns the path.

    Args:
        path: folder to be made.
        recording: what to write.
        storage: "mcap" or "sqlite3".
        base_frame: ``frame_id`` of joint states and of truth in the base.
        tcp_frame: ``frame_id`` of wrenches.

    Raises:
        RecordingError: the folder exists, or a stamp is negative (no ROS time).
    """
    path = Path(path)
    if path.exists():
        raise RecordingError(f"{path} exists already; name a folder that does not, or delete it.")
    if recording.stamps_ns.min() < 0:
        raise RecordingError(
            f"{recording.source}: a stamp is negative ({recording.stamps_ns.min()} ns); ROS time starts at 0."
        )
    make = _Messages(get_typestore(Stores.ROS2_JAZZY), recording.joint_names)
    stamps = recording.stamps_ns.tolist()
    with Writer(path, version=9, storage_plugin=STORAGE[storage]) as writer:

        def topic(name: str, kind: str) -> Callable[[int, object], None]:
            connection = writer.add_connection(name, kind, typestore=make.typestore)
            return lambda stamp, message: writer.write(connection, stamp, make.typestore.serialize_cdr(message, kind))

        write_states, columns = topic(JOINT_STATES_TOPIC, JOINT_STATE), []
        for name, text in ((SENSORS_TOPIC, recording.sensors), (ROBOT_TOPIC, recording.robot)):
            if text:
                topic(name, TEXT)(stamps[0], make.typestore.types[TEXT](data=text))
        if recording.wrench_tcp is not None:
            columns.append((topic(WRENCH_TOPIC, WRENCH), WRENCH, recording.wrench_tcp, tcp_frame))
            if recording.wrench_zero.any():
                zero = make.message(WRENCH, stamps[0], tcp_frame, recording.wrench_zero)
                topic(WRENCH_ZERO_TOPIC, WRENCH)(stamps[0], zero)
        for name, value in recording.truth.items():
            there, kind = TRUTH_TOPICS[name]
            columns.append((topic(there, kind), kind, value, tcp_frame if name.endswith("_tcp") else base_frame))
        for row, (stamp, *state) in enumerate(zip(stamps, recording.q, recording.dq, recording.tau)):
            write_states(stamp, make.joint_state(stamp, base_frame, *state))
            for write, kind, values, frame in columns:
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
