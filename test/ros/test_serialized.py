"""Messages with numbers written in place decode to what the ordinary conversion makes, field by field."""

import numpy as np
import pytest
from contact_estimation.msg import ContactEstimate
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.typesys import Stores, get_typestore
from sensor_msgs.msg import JointState
from test_messages import JOINTS, random_estimate

from contact_estimation.filters.estimate_row import row_of, with_numbers
from contact_estimation.ros import convert, serialized
from contact_estimation.ros.serialized import SerializedMessage

STAMP = 1_700_000_000_123_456_789
BAG_TYPES = get_typestore(Stores.ROS2_JAZZY)
HEAD = convert.header(STAMP, "base_link")


@pytest.mark.parametrize("contacts", [0, 1, 2, 3])
def test_a_whole_estimate(contacts):
    """Two estimates of the same words: one makes the message, the numbers of the other are written into it."""
    first, other = (random_estimate(seed, contacts) for seed in (1, 2))

    def message(estimate) -> ContactEstimate:
        return convert.contact_estimate(estimate, HEAD, "tool0", JOINTS, "imm")

    numbers = row_of(other).numbers
    ready = SerializedMessage(lambda v: message(with_numbers(first, v)), len(numbers))
    assert row_of(first).words == row_of(other).words
    got = deserialize_message(ready.with_numbers(STAMP, numbers), ContactEstimate)
    expected = message(other)
    for field in ContactEstimate.get_fields_and_field_types():
        assert str(getattr(got, field)) == str(getattr(expected, field)), field


@pytest.mark.parametrize(
    "kind, make, size",
    [
        (WrenchStamped, lambda v: convert.wrench_stamped(HEAD, v[:3], v[3:]), 6),
        (PointStamped, lambda v: convert.point_stamped(HEAD, v), 3),
        (Vector3Stamped, lambda v: convert.vector_stamped(HEAD, v), 3),
        (JointState, lambda v: convert.joint_state(HEAD, JOINTS, v[:6], v[6:12], v[12:]), 18),
        (JointState, lambda v: convert.joint_state(HEAD, JOINTS, effort=v), 6),
    ],
)
def test_standard_messages(kind, make, size):
    ready, rng = SerializedMessage(make, size), np.random.default_rng(0)
    for stamp in (STAMP, 5):
        numbers = rng.normal(size=size)
        numbers[0] = np.nan
        expected = make(numbers)
        expected.header.stamp = convert.header(stamp, "").stamp
        buffer = ready.with_numbers(stamp, numbers)
        assert str(deserialize_message(buffer, kind)) == str(expected)
        read = BAG_TYPES.deserialize_cdr(buffer, f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}")
        assert read.header.frame_id == HEAD.frame_id  # readers of bags refuse bytes that do not belong to it


def test_numbers_that_an_earlier_message_left_in_memory_are_not_written(monkeypatch):
    """CDR skips bytes for alignment, here behind the empty reason, and does not clear them."""
    estimate, marks = random_estimate(1, 0), []

    def message(numbers) -> ContactEstimate:
        marks.append(numbers[:1].tobytes())
        return convert.contact_estimate(with_numbers(estimate, numbers), HEAD, "tool0", JOINTS, "imm")

    def unclean(whole) -> bytes:
        raw = bytearray(serialize_message(whole))
        reason = raw.index(b"imm\0") + 12  # behind the observer's name, valid, and the length of the reason
        raw[reason + 1 : reason + 8] = marks[0][1:]
        return bytes(raw)

    numbers = row_of(estimate).numbers
    SerializedMessage(message, len(numbers))
    monkeypatch.setattr(serialized, "serialize_message", unclean)
    got = deserialize_message(SerializedMessage(message, len(numbers)).with_numbers(STAMP, numbers), ContactEstimate)
    assert got.reason == "" and str(got.force_base) == str(message(numbers).force_base)
