"""Choice of the next stroke (paper 4, section IV): the stroke with the narrowest predicted intervals over targets.

The wrench's Jacobian at the estimate, along the stroke, predicts the information. Reversals, leaning and pressing need
no rule: they have the information that section IV describes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_estimation.identify.probing.excitation import ExcitationSettings
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.model import Mean
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.identify.probing.update import Density, differentiate

#: Points along a stroke at which its information is predicted.
_POINTS = 6


@dataclass(frozen=True)
class Stroke:
    """A stroke in the surface axes of the guess.

    Attributes:
        heading: direction of sliding [rad].
        lean: rotation vector (3,) of the tool at its end [rad].
    """

    heading: float
    lean: np.ndarray

    @property
    def direction(self) -> np.ndarray:
        """Unit vector (3,) of sliding in surface axes."""
        return np.array([np.cos(self.heading), np.sin(self.heading), 0.0])


@dataclass(frozen=True)
class Posture:
    """From where the next stroke begins.

    Attributes:
        lean: present lean (3,) in surface axes [rad].
        surface: axes (3, 3) of the guessed surface.
        rotation: orientation (3, 3) of the upright tool.
    """

    lean: np.ndarray
    surface: np.ndarray
    rotation: np.ndarray


def candidates(place: np.ndarray, length: float, reach: float, tilt: float) -> list[Stroke]:
    """List the strokes to four sides, upright or leaning against sliding, that stay within reach.

    Args:
        place: present place (2,) of the tip in surface axes, from the first touch [m].
        length: length of a stroke [m].
        reach: greatest distance from the first touch [m]; from beyond it the strokes that come back are left.
        tilt: lean [rad].

    Returns:
        the strokes.
    """
    out = []
    for heading in 0.5 * np.pi * np.arange(4):
        goal = place + length * np.array([np.cos(heading), np.sin(heading)])
        if np.linalg.norm(goal) <= max(reach, float(np.linalg.norm(place))):
            axis = np.array([-np.sin(heading), np.cos(heading), 0.0])
            out += [Stroke(heading, lean * axis) for lean in (0.0, tilt)]
    return out


def predicted_covariance(
    estimator: ProbingFilter,
    model: SpatialModel,
    stroke: Stroke,
    posture: Posture,
    excitation: ExcitationSettings,
    samples: int,
) -> np.ndarray:
    """Predict the covariance (n_s, n_s) of the free parameters that a stroke leaves.

    Args:
        estimator: the running filter.
        model: its model.
        stroke: candidate.
        posture: from where it begins.
        excitation: force, speed and times of a stroke.
        samples: how many wrenches the stroke will bring.

    Returns:
        the covariance.
    """
    s, covariance = estimator.local()
    information = np.linalg.inv(estimator.joint_covariance())
    kinematic, change = estimator.kinematic_noise, stroke.lean - posture.lean
    for k in range(_POINTS):
        share = (k + 0.5) / _POINTS
        lean = posture.lean + 0.5 * (1.0 - np.cos(np.pi * share)) * change
        turned = posture.surface @ pin.exp3(-lean) @ posture.surface.T @ posture.rotation
        rate = -0.5 * np.pi / excitation.stroke_time * np.sin(np.pi * share) * (posture.surface @ change)
        load = excitation.force + excitation.force_swing * np.sin(2.0 * np.pi * share)
        velocity = posture.surface @ stroke.direction * excitation.speed
        pose, arm = _pressed(model, s, turned, load)
        mean = Mean(pose, np.concatenate([velocity - np.cross(rate, arm), rate]), s)
        rows, axes = model.prepare(mean)
        noises = rows * kinematic @ rows.T
        mean_c = np.concatenate([s, np.zeros(len(rows))])
        spread = np.diag(np.concatenate([np.diag(covariance), np.diag(noises)]))
        _, (whole, *_) = differentiate(model, Density(mean_c, spread, model.conditions_at(mean, axes)))
        slope, noisy = whole[:, : len(s)], whole[:, len(s) :]
        information += samples / _POINTS * estimator.information(slope, noisy @ noises @ noisy.T)
    return np.asarray(np.linalg.inv(information)[: len(s), : len(s)])


def _pressed(model: SpatialModel, s: np.ndarray, rotation: np.ndarray, load: float) -> tuple[np.ndarray, np.ndarray]:
    """Pose of the turned tool whose first tip, at the origin, is pressed by ``load`` [N], and the tip's lever arm."""
    arm, normal = rotation @ model.tip(s), model.normal(s)
    offset, stiffness = model.surface_terms(s)
    pose = np.eye(4)
    pose[:3, :3] = rotation
    pose[:3, 3] = normal * (offset - load / stiffness) - arm
    return pose, arm


def physical_deviation(model: SpatialModel, s: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the standard deviations (n_s,) of the physical parameters, to first order for the bounded ones."""
    out = np.sqrt(np.diag(covariance))
    for i, bounds in model.bounds.items():
        out[i] *= bounds.slope(s[i])
    return np.asarray(out)
