"""TF frames of closed contacts: at the contact point, z along the normal.

Without tf2_ros no frames are published; the markers show the same. Pinocchio's coefficients have the order x, y, z, w
of geometry_msgs, so tf_transformations is not needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import Quaternion, Transform, TransformStamped, Vector3
from rclpy.node import Node

from contact_estimation.filters.observer import Estimate
from contact_estimation.ros.convert import header
from contact_estimation.viz.meshes import align_z


def broadcaster(node: Node) -> Any:
    """Return a broadcaster of transforms, or None where ROS has no tf2_ros."""
    try:
        from tf2_ros import TransformBroadcaster
    except ImportError:
        return None
    return TransformBroadcaster(node)


def contact_transforms(estimate: Estimate, base_frame: str, prefix: str, stamp_ns: int) -> list[TransformStamped]:
    """Return the frames of the contacts that are closed.

    Args:
        estimate: an invalid one has none.
        base_frame: parent of the frames, as it is named on the graph.
        prefix: put in front of the contacts' names.
        stamp_ns: of the sample [ns].
    """
    transforms = []
    for contact in estimate.contacts if estimate.valid else ():
        norm = float(np.linalg.norm(contact.stiffness))
        if not (contact.closed and norm > 0.0 and np.isfinite([norm, *contact.point_base]).all()):
            continue
        x, y, z, w = pin.Quaternion(align_z(contact.stiffness)).coeffs().tolist()
        place = Vector3(**dict(zip("xyz", contact.point_base.tolist())))
        pose = Transform(translation=place, rotation=Quaternion(x=x, y=y, z=z, w=w))
        head = header(stamp_ns, base_frame)
        transforms.append(TransformStamped(header=head, child_frame_id=prefix + contact.name, transform=pose))
    return transforms
