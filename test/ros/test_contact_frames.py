"""TF frames of contacts: at the point, z along the normal, closed contacts of valid estimates only."""

from dataclasses import replace

import numpy as np
from test_viewer import estimate

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
