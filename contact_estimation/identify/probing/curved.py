"""The planar contact on a surface of constant curvature: the circle that touches the line at the first touch.

A seventh parameter, the curvature c [1/m], is positive where the surface is convex. With s = t.p - t.p_0 along the
tangent from the first touch p_0 and y = n.p - d above the line, the distance to the circle's centre is R / c with

    R = sqrt((1 + c y)^2 + (c s)^2),   depth = (1 - R) / c = -(2 y + c (s^2 + y^2)) / (1 + R),

and the normal turns by atan2(c s, 1 + c y) from the line's. All of it is smooth at c = 0.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from contact_estimation.codegen import Parts
from contact_estimation.identify.probing.model import Mean, Start
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings


class CurvedPlanarModel(PlanarModel):
    """:class:`PlanarModel` with the curvature as last parameter; ``phi`` and ``d`` are those of the first touch."""

    parameters = (*PlanarModel.parameters, "curvature")
    units = (*PlanarModel.units, "1/m")
    tested = 1
    conditions = Parts(position=2, heading=2, intervals=4, touch=2, touch_heading=2)

    def walk(self, settings: ProbingSettings) -> np.ndarray:
        """Return the standard deviations (7,) of what the parameters may change per slide step."""
        return np.append(super().walk(settings), 0.0)

    def normals_in_tool(self, mean: Mean) -> np.ndarray:
        """See :meth:`PlanarModel.normals_in_tool`, where the tip is."""
        return super().normals_in_tool(self._local(mean)[0])

    def prepare(self, mean: Mean, deflection: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """See :meth:`PlanarModel.prepare`, at the tangent where the tip is."""
        return super().prepare(self._local(mean)[0])

    def conditions_at(self, mean: Mean, axes: np.ndarray) -> np.ndarray:
        """See :meth:`PlanarModel.conditions_at`; with the pose of the first touch."""
        x, y, angle = self._touch
        return np.array([*super().conditions_at(mean, axes), x, y, np.cos(angle), np.sin(angle)])

    def wrench_equation(self, c: ca.SX, known: SimpleNamespace) -> list[ca.SX]:
        """Predict the wrench (3,) of each mode; ``c`` (8,) ends with curvature and the deformation's noise."""
        cos, sin, tip = ca.cos(c[2]), ca.sin(c[2]), (c[0], c[1])
        now = _tip(known.position, known.heading, tip)
        way, height = _on_line(now, _tip(known.touch, known.touch_heading, tip), (cos, sin), c[3])
        along, up = c[6] * way, 1.0 + c[6] * height
        ratio = ca.sqrt(along * along + up * up)
        depth = -(2.0 * height + c[6] * (way * way + height * height)) / (1.0 + ratio)
        tangent = (cos * up + sin * along) / ratio, (sin * up - cos * along) / ratio
        return self._wrenches(c, known, tangent, lambda below: depth + c[7])

    def _local(self, mean: Mean) -> tuple[Mean, float]:
        """Return the mean with the angle of the surface under the tip, and that angle's derivative by curvature."""
        pose, twist, s = mean
        now, touch = (_tip(p, (np.cos(p[2]), np.sin(p[2])), s) for p in (pose, self._touch))
        way, height = _on_line(now, touch, (np.cos(s[2]), np.sin(s[2])), s[3])
        angle = s[2] - np.arctan2(s[6] * way, 1.0 + s[6] * height)
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


def _tip(position: Any, heading: Any, tip: Any) -> tuple[Any, Any]:
    """Place of the tip in the world; numbers or expressions."""
    cos, sin = heading[0], heading[1]
    return position[0] + cos * tip[0] - sin * tip[1], position[1] + sin * tip[0] + cos * tip[1]


def _on_line(now: Any, touch: Any, tangent: tuple[Any, Any], offset: Any) -> tuple[Any, Any]:
    """Way of the tip along the tangent since the first touch, and its height above the line."""
    cos, sin = tangent
    return cos * (now[0] - touch[0]) + sin * (now[1] - touch[1]), -sin * now[0] + cos * now[1] - offset
