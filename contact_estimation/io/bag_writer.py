"""A recording written as rosbag2 (MCAP or sqlite3), so that the node graph can be fed with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.recording import Recording
from contact_estimation.io.topics import (JOINT_STATE, JOINT_STATES_TOPIC, POINT, SENSORS_TOPIC, TEXT, TRUTH_TOPICS,
                                          VECTOR, WRENCH, WRENCH_TOPIC, WRENCH_ZERO_TOPIC)

STORAGE = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}


def write_bag(path: Path | str, recording: Recording, storage: str = "mcap", base_frame: str = "base_link",
              tcp_frame: str = "tool0") -> Path:
    """Write ``recording`` into the new folder ``path``; returns the path.

    Args:
        path: folder to be made.
        storage: "mcap" or "sqlite3".
        base_frame, tcp_frame: ``frame_id`` of joint states, truth in the base, and wrenches.

    Raises:
        RecordingError: the folder exists, or a stamp is negative (no ROS time).
    """
    path = Path(path)
    if path.exists():
        raise RecordingError(f"{path} exists already; name a folder that does not, or delete it.")
    if recording.stamps_ns.min() < 0:
        raise RecordingError(f"{recording.source}: a stamp is negative ({recording.stamps_ns.min()} ns); "
                             "ROS time starts at 0.")
    make = _Messages(get_typestore(Stores.ROS2_JAZZY))
    with Writer(path, version=9, storage_plugin=STORAGE[storage]) as writer:
        def topic(name, kind):
            connection = writer.add_connection(name, kind, typestore=make.typestore)
            return lambda stamp, message: writer.write(connection, stamp, make.typestore.serialize_cdr(message, kind))

        stamps, names = recording.stamps_ns.tolist(), recording.joint_names
        states, write_states = zip(recording.q, recording.dq, recording.tau), topic(JOINT_STATES_TOPIC, JOINT_STATE)
        tracks = []
        if recording.sensors:
            topic(SENSORS_TOPIC, TEXT)(stamps[0], make.typestore.types[TEXT](data=recording.sensors))
        if recording.wrench_tcp is not None:
            tracks.append((topic(WRENCH_TOPIC, WRENCH), WRENCH, recording.wrench_tcp, tcp_frame))
            if recording.wrench_zero.any():
                zero = make.numbers(WRENCH, stamps[0], tcp_frame, recording.wrench_zero)
                topic(WRENCH_ZERO_TOPIC, WRENCH)(stamps[0], zero)
        for name, value in recording.truth.items():
            there, kind = TRUTH_TOPICS[name]
            tracks.append((topic(there, kind), kind, value, tcp_frame if name.endswith("_tcp") else base_frame))
        for row, (stamp, state) in enumerate(zip(stamps, states)):
            write_states(stamp, make.joints(stamp, base_frame, names, *state))
            for write, kind, values, frame in tracks:
                write(stamp, make.joints(stamp, frame, names, (), (), values[row]) if kind == JOINT_STATE
                      else make.numbers(kind, stamp, frame, values[row]))
    return path


class _Messages:
    """Makes the messages of a recording."""

    def __init__(self, typestore):
        self.typestore = typestore
        types = typestore.types
        self._header, self._time = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"]
        self._joint_state, self._vector3 = types[JOINT_STATE], types["geometry_msgs/msg/Vector3"]
        self._point = types["geometry_msgs/msg/Point"]
        self._wrench = types["geometry_msgs/msg/Wrench"]
        self._stamped = {kind: types[kind] for kind in (WRENCH, VECTOR, POINT)}

    def _head(self, stamp, frame):
        seconds, nanoseconds = divmod(int(stamp), 1_000_000_000)
        return self._header(stamp=self._time(sec=seconds, nanosec=nanoseconds), frame_id=frame)

    def joints(self, stamp, frame, names, position, velocity, effort):
        position, velocity, effort = (np.asarray(values, float) for values in (position, velocity, effort))
        return self._joint_state(header=self._head(stamp, frame), name=list(names), position=position,
                                 velocity=velocity, effort=effort)

    def numbers(self, kind, stamp, frame, row):
        head, row = self._head(stamp, frame), row.tolist()
        if kind == WRENCH:
            wrench = self._wrench(force=self._vector3(*row[:3]), torque=self._vector3(*row[3:]))
            return self._stamped[WRENCH](header=head, wrench=wrench)
        body = {"vector": self._vector3(*row)} if kind == VECTOR else {"point": self._point(*row)}
        return self._stamped[kind](header=head, **body)
