"""The planar contact on a surface of constant curvature: the circle that touches the line at the first touch.

A seventh parameter, the curvature c [1/m], is positive where the surface is convex. With s = t.p - t.p_0 along the
tangent from the first touch p_0 and y = n.p - d above the line, the distance to the circle's centre is R / c with

    R = sqrt((1 + c y)^2 + (c s)^2),   depth = (1 - R) / c = -(2 y + c (s^2 + y^2)) / (1 + R),

and the normal turns by atan2(c s, 1 + c y) from the line's. All of it is smooth at c = 0.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.probing.model import Mean, Modes, SlideAxes, Start
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings


class CurvedPlanarModel(PlanarModel):
    """:class:`PlanarModel` with the curvature as last parameter; ``phi`` and ``d`` are those of the first touch."""

    parameters = (*PlanarModel.parameters, "curvature")
    units = (*PlanarModel.units, "1/m")

    def walk(self, settings: ProbingSettings) -> np.ndarray:
        """Return the standard deviations (7,) of what the parameters may change per slide step."""
        return np.append(super().walk(settings), 0.0)

    def prepare(self, mean: Mean, deflection: np.ndarray | None = None) -> tuple[np.ndarray, list[SlideAxes]]:
        """See :meth:`PlanarModel.prepare`, at the tangent where the tip is."""
        return super().prepare(self._local(mean)[0])

    def wrenches(self, mean: Mean, c: np.ndarray, axes: list[SlideAxes], modes: Modes) -> list[np.ndarray]:
        """Predict the wrench (3, N) of each mode; ``c`` (8, N) ends with curvature and the deformation's noise."""
        depth, angle = self._contact(mean.pose, c)
        # The line that touches the circle under the tip: offset such that its depth is the circle's.
        line = np.vstack([c[:2], angle, np.zeros_like(angle), c[4:6], depth + c[7] - self._gap(mean.pose, c, angle)])
        return super().wrenches(mean, line, axes, modes)

    @staticmethod
    def _gap(pose: np.ndarray, c: np.ndarray, angle: np.ndarray) -> np.ndarray:
        """Depth (N,) of the tip under a line of offset 0 at ``angle``."""
        theta = pose[2] - angle
        below = np.sin(angle) * pose[0] - np.cos(angle) * pose[1]
        return np.asarray(below - np.sin(theta) * c[0] - np.cos(theta) * c[1])

    def _contact(self, pose: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Depth [m] and angle of the surface [rad] under the tip at points ``c`` (7 or more, N)."""
        cos, sin = np.cos(c[2]), np.sin(c[2])
        now, touch = (_tip(where, c) for where in (pose, self._touch))
        way = cos * (now[0] - touch[0]) + sin * (now[1] - touch[1])
        height = -sin * now[0] + cos * now[1] - c[3]
        along, up = c[6] * way, 1.0 + c[6] * height
        ratio = np.hypot(along, up)
        depth = -(2.0 * height + c[6] * (way * way + height * height)) / (1.0 + ratio)
        return depth, c[2] - np.arctan2(along, up)

    def _local(self, mean: Mean) -> tuple[Mean, float]:
        """Return the mean with the angle of the surface under the tip, and that angle's derivative by curvature."""
        pose, twist, s = mean
        angle = float(self._contact(pose, s[:, None])[1][0])
        now, touch = (_tip(where, s[:, None])[:, 0] for where in (pose, self._touch))
        way = float(np.cos(s[2]) * (now[0] - touch[0]) + np.sin(s[2]) * (now[1] - touch[1]))
        return Mean(pose, twist, np.array([*s[:2], angle, *s[3:6]])), -way

    def slip(self, mean: Mean) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the slip (1,), its gradient (1, 13) and the slip as (1, 1), along the tangent where the tip is."""
        local, by_curvature = self._local(mean)
        value, gradient, velocity = super().slip(local)
        return value, np.append(gradient, gradient[:, 8:9] * by_curvature, axis=1), velocity

    def offset_to_world(
        self, s: np.ndarray, covariance: np.ndarray, origin: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return s and its covariance with d referred to the world's origin instead of ``origin`` (2,)."""
        out, jacobian = np.array(s), np.eye(7)
        out[:6] = super().offset_to_world(s[:6], covariance[:6, :6], origin)[0]
        jacobian[3, 2] = -np.cos(s[2]) * origin[0] - np.sin(s[2]) * origin[1]
        return out, jacobian @ covariance @ jacobian.T

    def start(self, settings: ProbingSettings, pose: np.ndarray, tip: np.ndarray, phi: float) -> Start:
        """Make a rough start from a first touch, with a surface that is straight as far as one knows."""
        s, covariance, origin = super().start(settings, pose, tip, phi)
        self._touch = self.shift(pose, origin)
        out = np.zeros((7, 7))
        out[:6, :6], out[6, 6] = covariance, settings.curvature_start_std**2
        return np.append(s, 0.0), out, origin


def _tip(pose: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Position (2, N) of the tip."""
    cos, sin = np.cos(pose[2]), np.sin(pose[2])
    return np.array([pose[0] + cos * c[0] - sin * c[1], pose[1] + sin * c[0] + cos * c[1]])
