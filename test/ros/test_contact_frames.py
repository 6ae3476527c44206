"""TF frames of contacts: at the point, z along the normal, closed contacts of valid estimates only."""

from dataclasses import replace

import numpy as np
import pytest
from test_graph import Feed
from test_viewer import estimate

from contact_estimation.robot import load_arm
from contact_estimation.ros import convert
from contact_estimation.ros.contact_frames import contact_transforms


def turned(rotation, vector) -> np.ndarray:
    """A vector turned by a quaternion message, by Hamilton's product with w as the scalar."""
    axis = np.array([rotation.x, rotation.y, rotation.z])
    return vector + 2.0 * np.cross(axis, np.cross(axis, vector) + rotation.w * vector)


def test_a_frame_stands_on_the_normal():
    plain = estimate(6, 1.0)
    tilted = np.array([0.6, -0.48, 0.64])
    contact = replace(plain.contacts[0], stiffness=3e4 * tilted, point_base=np.array([0.1, 0.2, 0.3]))
    (frame,) = contact_transforms(replace(plain, contacts=(contact,)), "left_base", "left_", 1_500_000_000)
    assert (frame.header.frame_id, frame.child_frame_id) == ("left_base", "left_tip")
    assert (frame.header.stamp.sec, frame.header.stamp.nanosec) == (1, 500_000_000)
    place = frame.transform.translation
    np.testing.assert_allclose([place.x, place.y, place.z], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(turned(frame.transform.rotation, np.array([0.0, 0.0, 1.0])), tilted, atol=1e-12)


def test_an_open_contact_or_an_invalid_estimate_has_no_frame():
    plain = estimate(6, 1.0)
    ajar = replace(plain, contacts=(replace(plain.contacts[0], probability=0.2),))
    nowhere = replace(plain, contacts=(replace(plain.contacts[0], stiffness=np.full(3, np.nan)),))
    assert not [f for e in (ajar, nowhere, replace(plain, valid=False)) for f in contact_transforms(e, "b", "", 1)]


def test_a_listener_of_tf2_finds_the_contact(graph):
    """With the tf2_ros of a robot's ROS: the node's frame is where its estimate says."""
    tf2_ros = pytest.importorskip("tf2_ros", reason="tf2_ros comes with a ROS installation only, PyPI has none")
    given = {"observer": "ekf", "sensors": "joint_torque", "max_age": 0.0, "tf_prefix": "left_"}
    with graph.start("estimator", given) as process:
        feed = Feed(graph, load_arm("ur16e"), process)
        feed.begin()
        buffer = tf2_ros.Buffer(node=graph.node)
        listener = tf2_ros.TransformListener(buffer, graph.node)

        def found() -> bool:
            feed.send(feed.sample())
            return buffer.can_transform("left_base_link", "left_contact_1", tf2_ros.Time())

        assert graph.spin(found), process.text()
        frame = buffer.lookup_transform("left_base_link", "left_contact_1", tf2_ros.Time())
        by_stamp = {convert.stamp_ns(m.header.stamp): m for m in feed.estimates}
        (contact,) = by_stamp[convert.stamp_ns(frame.header.stamp)].contacts
        place, stiffness = frame.transform.translation, np.array(convert.xyz(contact.stiffness))
        np.testing.assert_allclose(convert.xyz(place), convert.xyz(contact.point_base), atol=1e-9)
        normal = turned(frame.transform.rotation, np.array([0.0, 0.0, 1.0]))
        np.testing.assert_allclose(normal, stiffness / np.linalg.norm(stiffness), atol=1e-9)
        listener.unregister()
