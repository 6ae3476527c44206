"""Choice of the next stroke: the one after which the widest interval, measured by its target, is narrowest (paper 4,
section IV).

The information of a stroke is predicted with the wrench's Jacobian at the estimate along the stroke: reversals,
leaning and pressing prove useful by themselves, because they do what section IV says of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_estimation.identify.probing.update import differentiate


@dataclass(frozen=True)
class Stroke:
    """A stroke in the surface axes of the guess: ``heading`` [rad] of sliding, and the ``lean`` (3,) rotation vector
    at its end."""

    heading: float
    lean: np.ndarray

    @property
    def direction(self) -> np.ndarray:
        """Unit vector (3,) of sliding in surface axes."""
        return np.array([np.cos(self.heading), np.sin(self.heading), 0.0])


def candidates(place: np.ndarray, length: float, reach: float, tilt: float) -> list[Stroke]:
    """Strokes to four sides, upright or leaning against the sliding direction, that stay within ``reach`` [m] of the
    first touch.

    ``place`` (2,) [m] is the tip's present place in surface axes; a place out of reach leaves the strokes that come
    back.
    """
    out = []
    for heading in 0.5 * np.pi * np.arange(4):
        goal = place + length * np.array([np.cos(heading), np.sin(heading)])
        if np.linalg.norm(goal) <= max(reach, np.linalg.norm(place)):
            axis = np.array([-np.sin(heading), np.cos(heading), 0.0])
            out += [Stroke(heading, lean * axis) for lean in (0.0, tilt)]
    return out


def predicted_covariance(estimator, stroke: Stroke, lean, surface, rotation, excitation, samples: int) -> np.ndarray:
    """Covariance (n_s, n_s) of the free parameters that ``stroke`` is expected to leave.

    Args:
        estimator: the running filter.
        stroke: candidate. lean: present lean (3,) in surface axes. surface: (3, 3) axes of the guessed surface.
            rotation: (3, 3) upright tool.
        excitation: force, speed and times of a stroke.
        samples: how many wrenches the stroke will bring.
    """
    model, (s, covariance) = estimator.model, estimator.local()
    steps, information = 6, np.linalg.inv(covariance)
    kinematic = estimator.kinematic_noise
    for k in range(steps):
        share = (k + 0.5) / steps
        blend = 0.5 * (1.0 - np.cos(np.pi * share))
        turned = surface @ pin.exp3(-(lean + blend * (stroke.lean - lean))) @ surface.T @ rotation
        rate = -0.5 * np.pi / excitation.stroke_time * np.sin(np.pi * share) * (surface @ (stroke.lean - lean))
        load = excitation.force + excitation.force_swing * np.sin(2.0 * np.pi * share)
        pose, twist = _pressed(model, s, surface @ stroke.direction * excitation.speed, turned, rate, load)
        rows, prepared = model.prepare(pose, twist, s)
        mean_c = np.concatenate([s, np.zeros(len(rows))])
        spread = np.diag(np.concatenate([np.diag(covariance), np.diag(rows @ kinematic @ rows.T)]))
        line = differentiate(lambda c: model.wrenches(pose, twist, c, prepared, model.modes[:1]), mean_c, spread)[0]
        slope, noisy = line.slope[:, :len(s)], line.slope[:, len(s):]
        noise = estimator.wrench_noise + noisy @ (rows @ kinematic @ rows.T) @ noisy.T
        information += samples / steps * slope.T @ np.linalg.solve(noise, slope)
    return np.linalg.inv(information)


def _pressed(model, s, tip_velocity, rotation, rate, load):
    """Pose and twist of the tool, turned as asked, with the first tip at the origin pressed by ``load`` [N]."""
    first = 3 * model.contacts
    arm, normal = rotation @ model.tip(s), model.normal(s)
    deformation = load / model.bounds[first + 3].to_bounded(s[first + 3])
    pose = np.eye(4)
    pose[:3, :3] = rotation
    pose[:3, 3] = normal * (s[first + 2] - deformation) - arm
    return pose, np.concatenate([tip_velocity - np.cross(rate, arm), rate])


def choose(estimator, options, targets, samples, **place) -> Stroke:
    """The option whose predicted worst ratio of standard deviation to target is least; ``targets`` (n_s,) are
    physical."""
    def worst(stroke):
        covariance = predicted_covariance(estimator, stroke, samples=samples, **place)
        return np.max(physical_deviation(estimator.model, estimator.local()[0], covariance) / targets)

    return min(options, key=worst)


def physical_deviation(model, s, covariance) -> np.ndarray:
    """Standard deviations (n_s,) of the physical parameters, to first order for the bounded ones."""
    out = np.sqrt(np.diag(covariance))
    for i, bounds in model.bounds.items():
        out[i] *= bounds.slope(s[i])
    return out
