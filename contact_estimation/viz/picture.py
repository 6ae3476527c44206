"""A picture of an arm with its estimated contacts, for reports: no display and no browser is needed."""

from __future__ import annotations

import io
from collections.abc import Sequence

import matplotlib.image
import numpy as np

from contact_estimation.robot import Arm
from contact_estimation.viz.curves import Peak
from contact_estimation.viz.markers import Shape, estimate_shapes
from contact_estimation.viz.meshes import arm_meshes, box, link_poses
from contact_estimation.viz.player import Box, camera_of
from contact_estimation.viz.raster import Camera, picture, shape_meshes


def arm_picture(
    arm: Arm,
    q: np.ndarray,
    shapes: Sequence[Shape] = (),
    boxes: Sequence[Box] = (),
    width: int = 720,
    height: int = 480,
    camera: Camera | None = None,
) -> np.ndarray:
    """Draw an arm.

    Args:
        arm: the robot.
        q: joint positions (n,) [rad].
        shapes: of :mod:`contact_estimation.viz.markers`.
        boxes: bodies beside the arm.
        width: of the picture [pixels].
        height: of the picture [pixels].
        camera: where from; default from the side, the TCP in front.

    Returns:
        (height, width, 3) uint8.
    """
    poses = link_poses(arm, q)
    position, rotation = arm.tcp_pose(q)
    frames = {arm.base_frame: (np.eye(3), np.zeros(3)), arm.tcp_frame: (rotation, position)}
    solids = [mesh.moved(0, *poses[mesh.joint], mesh.colour) for mesh in arm_meshes(arm)]
    solids += [box(0.5 * b.size).moved(0, b.rotation, b.position, b.colour) for b in boxes]
    return picture(solids, shape_meshes(shapes, frames), camera or camera_of(arm, q), width, height)


def peak_picture(
    arm: Arm, q: np.ndarray, time: float, observer: str, peak: Peak, boxes: Sequence[Box] = ()
) -> tuple[bytes, str]:
    """Draw the sample with the largest estimated force.

    Args:
        arm: the robot.
        q: joint positions (n,) of that sample [rad].
        time: since the first sample [s].
        observer: whose estimate it is.
        peak: the estimate.
        boxes: bodies beside the arm.

    Returns:
        The PNG file and its caption.
    """
    shapes = estimate_shapes(peak.estimate, arm.tcp_frame, arm.base_frame)
    mode = peak.estimate.mode
    caption = f"{observer} at {time:.2f} s, its largest force: {peak.size:.1f} N (orange), mode {mode}."
    return png(arm_picture(arm, q, shapes, boxes)), caption


def png(image: np.ndarray) -> bytes:
    """Encode a picture (height, width, 3) uint8 as PNG."""
    file = io.BytesIO()
    matplotlib.image.imsave(file, image, format="png")
    return file.getvalue()
