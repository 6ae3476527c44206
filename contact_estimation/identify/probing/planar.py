"""The planar contact of paper 4: tip, surface, stiffness and friction, and the wrench they predict (eq. 3-7).

Parameters s = (x^p, y^p, phi, d, kappa~, mu~), eq. 12. The surface is the line n.p = d with tangent (cos phi, sin phi)
and outward normal n = (-sin phi, cos phi). The wrench (F_x, F_y, M_z) is what the environment exerts ON the probe, in
end-effector axes about the end-effector's origin. It is the restriction of
:class:`~contact_estimation.identify.probing.spatial.SpatialModel` to a plane, written out because the closed form is
several times faster. Eq. 3-5 have no clamp at zero deformation: the filter uses them in contact only.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import casadi as ca
import numpy as np

from contact_estimation.codegen import Parts
from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.model import ContactModel, Mean, Start
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel, homogeneous

_IN_SPACE = [0, 1, 4, 5, 6, 7]  # where the planar parameters stand among those of one tip on one surface in space

#: Slide axes of a contact in the plane.
NO_AXES = np.zeros((0, 4, 3))


class PlanarModel(ContactModel):
    """Measurement model of the plane: poses (3,) are (x, y, alpha) [m, m, rad].

    Args:
        stiffness: bounds of kappa [N/m].
        friction: bounds of mu.
    """

    axes = 3
    force_size = 2
    wrench_size = 3
    parameters: tuple[str, ...] = ("tip_x", "tip_y", "phi", "d", "stiffness", "friction")
    units: tuple[str, ...] = ("m", "m", "rad", "m", "N/m", "1")
    modes = ((1.0,), (-1.0,))
    noises = 1
    conditions = Parts(position=2, heading=2, intervals=4)

    def __init__(self, stiffness: Bounds, friction: Bounds) -> None:
        self.bounds = {4: stiffness, 5: friction}

    def advance(self, pose: np.ndarray, increment: np.ndarray) -> np.ndarray:
        """Return the pose moved by ``increment`` (3,)."""
        return np.asarray(pose + increment)

    def difference(self, pose: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Return the increment (3,) from ``reference`` to ``pose``; the angle is wrapped."""
        step: np.ndarray = pose - reference
        step[2] = (step[2] + np.pi) % (2.0 * np.pi) - np.pi
        return step

    def shift(self, pose: np.ndarray, origin: np.ndarray) -> np.ndarray:
        """Return the pose with its position relative to ``origin`` (2,)."""
        return np.array([pose[0] - origin[0], pose[1] - origin[1], pose[2]])

    def normals_in_tool(self, mean: Mean) -> np.ndarray:
        """Return the outward unit normal (1, 2), tool axes."""
        theta = mean.pose[2] - mean.s[2]
        return np.array([[np.sin(theta), np.cos(theta)]])

    def prepare(self, mean: Mean, deflection: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient (1, 6) of the deformation, eq. 6, over [pose; twist].

        The angle's noise also turns the force; half a milliradian of it stays far below the force noise.
        """
        (pose, _, s), phi = mean, mean.s[2]
        theta = pose[2] - phi
        lever = -(np.cos(theta) * s[0] - np.sin(theta) * s[1])
        return np.array([[np.sin(phi), -np.cos(phi), lever, 0.0, 0.0, 0.0]]), NO_AXES

    def conditions_at(self, mean: Mean, axes: np.ndarray) -> np.ndarray:
        """Return the tool's position and heading, and the intervals of stiffness and friction."""
        x, y, angle = mean.pose
        return np.array([x, y, np.cos(angle), np.sin(angle), *self._intervals()])

    def wrench_equation(self, c: ca.SX, known: SimpleNamespace) -> list[ca.SX]:
        """Predict the wrench (3,) of each mode, eq. 3-6; ``c`` (7,) ends with the deformation's noise."""
        return self._wrenches(c, known, (ca.cos(c[2]), ca.sin(c[2])), lambda below: below + c[3] + c[6])

    def _wrenches(
        self, c: ca.SX, known: SimpleNamespace, tangent: tuple[ca.SX, ca.SX], depth: Callable[[ca.SX], ca.SX]
    ) -> list[ca.SX]:
        """Wrench (3,) of each mode on a surface with a ``tangent``; ``depth`` of the tip's depth under its line."""
        (cos_phi, sin_phi), (cos_tool, sin_tool) = tangent, (known.heading[0], known.heading[1])
        sin, cos = sin_tool * cos_phi - cos_tool * sin_phi, cos_tool * cos_phi + sin_tool * sin_phi
        below = sin_phi * known.position[0] - cos_phi * known.position[1] - sin * c[0] - cos * c[1]
        bounded = self._bounded(c, known.intervals)
        normal = bounded[4] * depth(below)
        friction = normal * bounded[5]
        out = []
        for (sign,) in self.modes:
            x, y = normal * sin - sign * friction * cos, normal * cos + sign * friction * sin
            out.append(ca.vertcat(x, y, c[0] * y - c[1] * x))
        return out

    def slip(self, mean: Mean) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the slip (1,) of eq. 7, its gradient (1, 12) over [pose; twist; s], and the slip as (1, 1)."""
        (pose, twist, s), phi = mean, mean.s[2]
        theta = pose[2] - phi
        sin, cos, sin_phi, cos_phi = np.sin(theta), np.cos(theta), np.sin(phi), np.cos(phi)
        arm = sin * s[0] + cos * s[1]
        turn = (cos * s[0] - sin * s[1]) * twist[2]
        value = np.array([cos_phi * twist[0] + sin_phi * twist[1] - arm * twist[2]])
        gradient = np.zeros((1, 12))
        gradient[0, 2] = -turn
        gradient[0, 3:6] = cos_phi, sin_phi, -arm
        gradient[0, 6:9] = -sin * twist[2], -cos * twist[2], -sin_phi * twist[0] + cos_phi * twist[1] + turn
        return value, gradient, value[:, None]

    def offset_to_world(
        self, s: np.ndarray, covariance: np.ndarray, origin: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return s and its covariance with d referred to the world's origin instead of ``origin`` (2,)."""
        out, jacobian = np.array(s), np.eye(6)
        out[3] += -np.sin(s[2]) * origin[0] + np.cos(s[2]) * origin[1]
        jacobian[3, 2] = -np.cos(s[2]) * origin[0] - np.sin(s[2]) * origin[1]
        return out, jacobian @ covariance @ jacobian.T

    def start(self, settings: ProbingSettings, pose: np.ndarray, tip: np.ndarray, phi: float) -> Start:
        """Make a rough start from a first touch: the surface passes near the guessed tip.

        Args:
            settings: start values and their standard deviations.
            pose: pose (3,) at the touch.
            tip: guessed tip (2,) [m], end-effector axes.
            phi: guessed angle of the surface [rad].

        Returns:
            arguments of ``ProbingFilter.start``. Since the tip touches, the offset is as uncertain as the tip along
            the normal, and correlated with it.
        """
        space = SpatialModel(self.bounds[4], self.bounds[5], [plane_frame(phi)])
        s, covariance, origin = space.start(settings, lift_pose(pose), [[*tip, 0.0]])
        s[4] = phi
        return s[_IN_SPACE], covariance[np.ix_(_IN_SPACE, _IN_SPACE)], origin[:2]


def plane_frame(phi: float) -> np.ndarray:
    """Return the frame (3, 3) of a planar surface in space: columns -tangent, plane normal z, outward normal."""
    cos, sin = np.cos(phi), np.sin(phi)
    return np.array([[-cos, 0.0, -sin], [-sin, 0.0, cos], [0.0, 1.0, 0.0]])


def lift_pose(pose: np.ndarray) -> np.ndarray:
    """Return the pose (4, 4) in space of a planar pose (3,)."""
    cos, sin = np.cos(pose[2]), np.sin(pose[2])
    rotation = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
    return homogeneous(rotation, np.array([pose[0], pose[1], 0.0]))
