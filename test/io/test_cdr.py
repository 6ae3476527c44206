"""Blocks of serialised messages against the one-by-one decoder of rosbags."""

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from contact_estimation.io.cdr import decode_block, layout_of
from contact_estimation.io.topics import JOINT_STATE, WRENCH

STORE = get_typestore(Stores.ROS2_JAZZY)


def header(k, frame="base"):
    types = STORE.types
    return types["std_msgs/msg/Header"](types["builtin_interfaces/msg/Time"](1_700_000_000 + k, 999_999_990 + k), frame)


def joints(k, names=("a", "joint_two"), frame="base", numbers=(2, 2, 2), **kwargs):
    rng = np.random.default_rng(k)
    message = STORE.types[JOINT_STATE](header(k, frame), list(names), *(rng.normal(size=n) for n in numbers))
    return bytes(STORE.serialize_cdr(message, JOINT_STATE, **kwargs))


@pytest.mark.parametrize("names", [("a",), ("a", "bb"), ("abc", "defg", "hijkl"), tuple("abcdefg")])
@pytest.mark.parametrize("frame", ["", "b", "base", "base_link"])
def test_joint_states_equal_the_decoder_of_rosbags(names, frame):
    block = [joints(k, names, frame, (len(names),) * 3) for k in range(5)]
    layout = layout_of(block[0], None)
    assert layout.names == names and layout.frame_id == frame
    stamps, (position, velocity, effort) = decode_block(block, layout)
    for row, raw in enumerate(block):
        message = STORE.deserialize_cdr(raw, JOINT_STATE)
        assert stamps[row] == message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        np.testing.assert_array_equal(position[row], message.position)
        np.testing.assert_array_equal(velocity[row], message.velocity)
        np.testing.assert_array_equal(effort[row], message.effort)


def test_wrench_equals_the_decoder_of_rosbags():
    types = STORE.types
    vector = types["geometry_msgs/msg/Vector3"]
    message = types[WRENCH](header(1, "tool0"), types["geometry_msgs/msg/Wrench"](vector(1.0, 2, 3), vector(4.0, 5, 6)))
    raw = bytes(STORE.serialize_cdr(message, WRENCH))
    layout = layout_of(raw, 6)
    assert layout.frame_id == "tool0"
    np.testing.assert_array_equal(decode_block([raw, raw], layout)[1][0], [[1.0, 2, 3, 4, 5, 6]] * 2)


@pytest.mark.parametrize("numbers", [(2, 0, 2), (2, 2, 0), (0, 0, 0)])
def test_empty_sequences(numbers):
    raw = joints(0, numbers=numbers)
    assert [count for _, count in layout_of(raw, None).spans] == list(numbers)


@pytest.mark.parametrize(
    "other",
    [
        joints(1, names=("b", "joint_two")),  # same length, other name
        joints(1, frame="bass"),  # same length, other frame
        joints(1, names=("a", "joint_two", "c"), numbers=(3, 3, 3)),  # other length
    ],
)
def test_a_block_of_two_layouts_is_left_to_the_slow_way(other):
    block = [joints(0), other]
    assert decode_block(block, layout_of(block[0], None)) is None


@pytest.mark.parametrize(
    "raw", [b"", b"\x00\x01\x00\x00", joints(0)[:-4], joints(0) + b"\x00" * 4, joints(0, little_endian=False)]
)
def test_anything_else_has_no_layout(raw):
    assert layout_of(raw, None) is None
