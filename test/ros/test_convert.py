"""Messages to arrays and back."""

import numpy as np

from contact_estimation.ros import convert
from contact_estimation.ros.drawing import marker_array
from contact_estimation.viz.markers import Shape

NAMES = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint")


def test_stamps_keep_every_nanosecond():
    for ns in (0, 1, 999_999_999, 1_700_000_000_123_456_789):
        assert convert.stamp_ns(convert.header(ns, "f").stamp) == ns


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
