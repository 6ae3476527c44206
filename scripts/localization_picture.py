"""The picture of docs/localization.md: three pushes at an FR3, and where its joint torque says that they are.

python scripts/localization_picture.py docs/pictures/localization.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_estimation.filters.localization.localizer import ContactLocalizer
from contact_estimation.filters.observer import ContactPlace
from contact_estimation.robot import Arm, load_arm
from contact_estimation.viz.markers import Shape, arrow
from contact_estimation.viz.meshes import arm_meshes, link_poses
from contact_estimation.viz.raster import Camera, picture, shape_meshes
from contact_estimation.viz.style import figure

POSTURE = np.array([0.1, -0.6, 0.2, -2.2, 0.1, 1.7, 0.8])
#: Link's joint, point [m] and outward normal in its frame.
PUSHES = {
    "link 3": (2, np.array([0.042, -0.042, -0.08]), np.array([0.707, -0.707, 0.0])),
    "link 5": (4, np.array([0.0, 0.095, -0.1]), np.array([0.0, 1.0, 0.0])),
    "link 7": (6, np.array([0.044, 0.0, 0.08]), np.array([1.0, 0.0, 0.0])),
}
#: [N] along the normal, and across it.
FORCE, ACROSS = 30.0, 5.0
#: [Nm] error of every joint's torque.
NOISE = 0.1
TRUTH, REGION = (0.15, 0.15, 0.15, 1.0), (0.84, 0.37, 0.0, 1.0)


def main() -> None:
    """Localise the three pushes and draw them side by side."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures/localization.png")
    arm, rng = load_arm("fr3"), np.random.default_rng(2)
    localizer = ContactLocalizer(arm)
    fig, axes = figure(1, len(PUSHES), width=12.0, height=4.4)
    for axis, (name, (joint, point, normal)) in zip(axes[0], PUSHES.items()):
        rotation = link_poses(arm, POSTURE)[joint + 1][0]
        force = rotation @ (ACROSS * np.cross(normal, [0.0, 0.0, 1.0]) - FORCE * normal)
        torque, at = torque_of(arm, joint, point, force)
        localizer.reset()
        for _ in range(10):
            localizer.add(0.02, POSTURE, torque + rng.normal(0, NOISE, arm.n), NOISE**2 * np.eye(arm.n))
            localizer.scan(0, localizer.count)
            place = localizer.place()
        axis.imshow(draw(arm, place, at, force))
        axis.set_axis_off()
        told = ", ".join(f"{link.removeprefix('fr3_')} {100 * p:.0f} %" for link, p in list(place.links.items())[:3])
        axis.set_title(f"push at {name}: {told}\nspread {100 * place.spread:.1f} cm", fontsize=9)
    fig.savefig(path, dpi=110, bbox_inches="tight")
    print(f"written: {path}")


def torque_of(arm: Arm, joint: int, point: np.ndarray, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint torque (n,) [Nm] of a force at a point of a joint's frame, and the point in the base frame."""
    data = arm.model.createData()
    pin.computeJointJacobians(arm.model, data, POSTURE)
    jacobian = pin.getJointJacobian(arm.model, data, joint + 1, pin.WORLD)
    at = data.oMi[joint + 1].act(point)
    return (jacobian[:3] - pin.skew(at) @ jacobian[3:]).T @ force, at


def draw(arm: Arm, place: ContactPlace, at: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Return a picture of the arm, the true push and the region that is told."""
    poses = link_poses(arm, POSTURE)
    solids = [mesh.moved(0, *poses[mesh.joint], (0.82, 0.83, 0.85)) for mesh in arm_meshes(arm)]
    push = arrow("truth", "base", at - 0.006 * force, at, TRUTH, size=(0.015, 0.035, 0.05))
    region = tuple(tuple(float(x) for x in point) for point in place.region)
    dots = [Shape(str(i), "ellipsoid", "base", True, p, size=(0.016,) * 3, colour=REGION) for i, p in enumerate(region)]
    shapes = shape_meshes([push, *dots], {"base": (np.eye(3), np.zeros(3))})
    return picture(solids, shapes, Camera(np.array([0.2, 0.0, 0.4]), 1.7, -1.1, 0.35), 520, 520)


if __name__ == "__main__":
    main()
