"""Joints are read from the bytes of messages, by name; what the ordinary classes decode is the measure."""

import numpy as np
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from contact_estimation.exceptions import RecordingError
from contact_estimation.ros import convert
from contact_estimation.ros.serialized import JointStateReader, OtherJoints, stamp_ns

NAMES = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint")


def joint_states(names=NAMES, count=None, frame="base_link") -> JointState:
    values = [float(i) for i in range(len(names) if count is None else count)]
    return JointState(
        header=convert.header(1_700_000_000_123_456_789, frame),
        name=list(names),
        position=values,
        velocity=[10 + v for v in values],
        effort=[20 + v for v in values],
    )


def read(reader: JointStateReader, message: JointState) -> np.ndarray:
    return np.array(reader.read(serialize_message(message)))


def rows(*columns: float) -> np.ndarray:
    return np.array([columns, np.add(columns, 10), np.add(columns, 20)], float)


def test_joints_are_taken_by_name_and_others_left_out():
    reader = JointStateReader(NAMES, "joint_states")
    mixed = joint_states(("elbow_joint", "gripper", "shoulder_pan_joint", "shoulder_lift_joint"))
    for _ in range(2):  # in the ordinary way, then by their layout
        np.testing.assert_array_equal(read(reader, mixed), rows(2, 3, 0))
    for _ in range(2):  # another order later on the same topic
        np.testing.assert_array_equal(read(reader, joint_states()), rows(0, 1, 2))
    assert stamp_ns(serialize_message(mixed)) == 1_700_000_000_123_456_789


def test_every_number_is_read_as_the_ordinary_classes_do():
    rng, reader = np.random.default_rng(0), JointStateReader(NAMES, "joint_states", "left_")
    names = [f"left_{name}" for name in NAMES]
    for _ in range(20):
        expected = rng.normal(size=(3, 3)) * 10.0 ** rng.integers(-300, 300)
        np.testing.assert_array_equal(
            read(reader, convert.joint_state(convert.header(1, "b"), names, *expected)), expected
        )


def test_a_name_of_the_same_length_is_another_name():
    """The bytes differ where the size does not: an exchanged order must not be read as the old one."""
    reader = JointStateReader(("a1", "a2"), "joint_states")
    for names, columns in ((("a1", "a2"), (0, 1)), (("a2", "a1"), (1, 0)), (("a1", "a2"), (0, 1))):
        np.testing.assert_array_equal(read(reader, joint_states(names)), rows(*columns))


def test_bytes_that_only_align_mean_nothing():
    reader = JointStateReader(("a", "b"), "joint_states")
    raw = bytearray(serialize_message(joint_states(("a", "b"), frame="")))
    reader.read(bytes(raw))
    layout = reader._layout
    assert layout.gaps
    for begin, end in layout.gaps:
        raw[begin:end] = b"\xa5" * (end - begin)
    np.testing.assert_array_equal(reader.read(bytes(raw)), rows(0, 1))
    assert reader._layout is layout


def test_a_big_endian_message_is_decoded_in_the_ordinary_way():
    reader = JointStateReader(NAMES, "joint_states")
    small = serialize_message(joint_states())
    big = bytearray(small)
    big[1] = 0
    words = [4, 8, 12]  # stamp, length of the frame's name
    at = 12 + 4 + len("base_link") + 1
    at += -(at - 4) % 4
    words.append(at)
    at += 4
    for name in NAMES:
        at += -(at - 4) % 4
        words.append(at)
        at += 4 + len(name) + 1
    for _ in range(3):
        at += -(at - 4) % 4
        words.append(at)
        at += 4
        at += -(at - 4) % 8
        for k in range(3):
            big[at + 8 * k : at + 8 * k + 8] = small[at + 8 * k : at + 8 * k + 8][::-1]
        at += 24
    for word in words:
        big[word : word + 4] = small[word : word + 4][::-1]
    for _ in range(2):
        np.testing.assert_array_equal(reader.read(bytes(big)), rows(0, 1, 2))
    assert stamp_ns(bytes(big)) == 1_700_000_000_123_456_789


@pytest.mark.parametrize("cut", [6, 40])
def test_bytes_of_another_message_are_named_and_the_next_message_is_read(cut):
    reader, good = JointStateReader(NAMES, "joint_states"), serialize_message(joint_states())
    for _ in range(2):  # in the ordinary way, then by the layout
        reader.read(good)
    with pytest.raises(RecordingError, match=f"topic joint_states: {cut} bytes are no JointState"):
        reader.read(good[:cut])
    assert stamp_ns(good[:6]) == 0
    np.testing.assert_array_equal(np.array(reader.read(good)), rows(0, 1, 2))


def test_other_peoples_joints_are_told_apart():
    reader = JointStateReader(NAMES, "joint_states")
    for _ in range(2):
        np.testing.assert_array_equal(read(reader, joint_states()), rows(0, 1, 2))
        with pytest.raises(OtherJoints, match="finger_joint"):
            read(reader, joint_states(("finger_joint",)))


@pytest.mark.parametrize(
    "message, words",
    [
        (
            joint_states(("shoulder_pan_joint", "shoulder_lift_jont", "elbow_joint")),
            ["shoulder_lift_joint", "shoulder_lift_jont"],
        ),
        (joint_states(NAMES[:2]), ["elbow_joint"]),
        (joint_states((*NAMES, "elbow_joint")), ["more than once"]),
        (joint_states(count=2), ["position has 2 entries", "3 joint names"]),
    ],
)
def test_unusable_messages_are_named(message, words):
    reader = JointStateReader(NAMES, "joint_states")
    with pytest.raises(RecordingError) as error:
        read(reader, message)
    for word in words:
        assert word in str(error.value)
    np.testing.assert_array_equal(read(reader, joint_states()), rows(0, 1, 2))  # and the next good one is read
