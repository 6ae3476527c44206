"""Messages to arrays and back; joints by name."""

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from contact_estimation.exceptions import RecordingError
from contact_estimation.ros import convert
from contact_estimation.ros.markers import marker_array
from contact_estimation.viz.markers import Shape

NAMES = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint")


def joint_states(names=NAMES, count=None) -> JointState:
    values = [float(i) for i in range(len(names) if count is None else count)]
    return JointState(
        name=list(names), position=values, velocity=[10 + v for v in values], effort=[20 + v for v in values]
    )


def test_stamps_keep_every_nanosecond():
    for ns in (0, 1, 999_999_999, 1_700_000_000_123_456_789):
        assert convert.stamp_ns(convert.header(ns, "f").stamp) == ns


def test_joints_are_taken_by_name_and_others_left_out():
    reader = convert.JointStateReader(NAMES, "joint_states")
    q, dq, tau = reader.read(joint_states(("elbow_joint", "gripper", "shoulder_pan_joint", "shoulder_lift_joint")))
    np.testing.assert_array_equal(q, [2, 3, 0])
    np.testing.assert_array_equal(dq, [12, 13, 10])
    np.testing.assert_array_equal(tau, [22, 23, 20])
    q, _, _ = reader.read(joint_states())  # another order later on the same topic
    np.testing.assert_array_equal(q, [0, 1, 2])


def test_other_peoples_joints_do_not_concern():
    reader = convert.JointStateReader(NAMES, "joint_states")
    assert reader.concerns(joint_states()) and not reader.concerns(joint_states(("finger_joint",)))


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
    reader = convert.JointStateReader(NAMES, "joint_states")
    with pytest.raises(RecordingError) as error:
        reader.read(message)
    for word in words:
        assert word in str(error.value)
    np.testing.assert_array_equal(reader.read(joint_states())[0], [0, 1, 2])  # and the next good one is read


def test_standard_messages():
    head = convert.header(5, "tool0")
    wrench = convert.wrench_stamped(head, [1, 2, 3], [4, 5, 6])
    np.testing.assert_array_equal(convert.xyz(wrench.wrench.force), [1, 2, 3])
    np.testing.assert_array_equal(convert.xyz(wrench.wrench.torque), [4, 5, 6])
    assert wrench.header.frame_id == "tool0"
    np.testing.assert_array_equal(convert.xyz(convert.point_stamped(head, [1, 2, 3]).point), [1, 2, 3])
    np.testing.assert_array_equal(convert.xyz(convert.vector_stamped(head, [1, 2, 3]).vector), [1, 2, 3])
    torques = convert.joint_state(head, NAMES, effort=np.array([7.0, 8.0, 9.0]))
    assert list(torques.effort) == [7, 8, 9] and not torques.position
    reverse = convert.joint_state(head, NAMES, effort=np.arange(6.0)[::-2])  # a view with strides
    assert list(reverse.effort) == [5, 3, 1]


def test_markers():
    shapes = [
        Shape("force", "arrow", "tool0", True, (0.0, 0.0, 0.1), (0.0, 0.0, 0.2), size=(0.01, 0.02, 0.03)),
        Shape(
            "contact/tip",
            "ellipsoid",
            "tool0",
            True,
            (0.0, 0.0, 0.1),
            orientation=(0.0, 0.0, 1.0, 0.0),
            size=(1.0, 2.0, 3.0),
        ),
        Shape("gone", "ellipsoid", "tool0", False),
    ]
    arrow, ball, gone = marker_array(shapes, 7).markers
    assert (arrow.type, arrow.action, len(arrow.points), arrow.points[1].z) == (arrow.ARROW, arrow.ADD, 2, 0.2)
    assert (ball.type, ball.scale.y, ball.pose.orientation.z) == (ball.SPHERE, 2.0, 1.0)
    assert gone.action == gone.DELETE and gone.ns == "gone" and gone.header.frame_id == "tool0"
