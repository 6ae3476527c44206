"""The paper's experiment in simulation: a position-controlled probe on rubber, many independent runs at once.

The ground truth is richer than the filter's model where reality is: friction builds up elastically before it slides
(presliding), contact opens, and the arm follows a plan made from the rough first estimate, corrected in the direction
believed to be normal by the measured force, so that contact lasts and stays below the force limit. Parameters wander
while the probe slides, as far as the settings tell the filter that they may.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.excitation import ExcitationSettings, command, planar_tilt
from contact_estimation.identify.probing.planar import contact_wrench, deformation, slip_velocity
from contact_estimation.identify.probing.settings import ProbingSettings

#: Tangential stiffness [N/m] of the contact before it slides; 15 N of friction preslide 0.75 mm.
PRESLIDING_STIFFNESS = 20000.0


@dataclass(frozen=True)
class PlanarTruth:
    """Planted parameters of R runs: ``tip`` (2, R), the others (R,); SI, world frame."""

    tip: np.ndarray
    phi: np.ndarray
    d: np.ndarray
    stiffness: np.ndarray
    friction: np.ndarray

    def parameters(self) -> np.ndarray:
        """(6, R) in the order of :data:`planar.PARAMETERS`."""
        return np.vstack([self.tip, self.phi, self.d, self.stiffness, self.friction])


@dataclass(frozen=True)
class Guess:
    """What is roughly known of R runs before contact: ``tip`` (2, R), ``phi`` (R,), and the ``pose`` (3, R) at
    contact."""

    tip: np.ndarray
    phi: np.ndarray
    pose: np.ndarray


@dataclass(frozen=True)
class PlanarRecording:
    """Samples of R runs: ``t`` (T,), ``pose``, ``twist``, ``wrench`` (T, 3, R) as measured, ``slip`` (T, R) true
    [m/s], ``planted`` (T, 6, R) the true parameters."""

    t: np.ndarray
    pose: np.ndarray
    twist: np.ndarray
    wrench: np.ndarray
    slip: np.ndarray
    planted: np.ndarray


def draw(settings: ProbingSettings, runs: int, rng: np.random.Generator) -> tuple[PlanarTruth, Guess]:
    """Random surfaces, probes and rough starts; the error of the guess has the spread that the settings state.

    Angles' and lengths' errors are normal, cut at 2.5 standard deviations. Stiffness and friction are uniform within
    1.6 standard deviations of their start.
    """
    def error(*shape):
        return np.clip(rng.standard_normal(shape), -2.5, 2.5)

    tip_guess = np.vstack([rng.uniform(-0.03, 0.03, runs), rng.uniform(-0.22, -0.14, runs)])
    phi_guess = rng.uniform(-0.6, 0.6, runs)
    position = rng.uniform([[-0.5], [0.2]], [[0.5], [0.8]], (2, runs))
    pose = np.vstack([position, phi_guess + rng.uniform(-0.1, 0.1, runs)])
    phi = phi_guess + settings.angle_start_std * error(runs)
    tip = tip_guess + settings.tip_start_std * error(2, runs)
    wide = 1.6
    stiffness = settings.stiffness_start + wide * settings.stiffness_start_std * rng.uniform(-1.0, 1.0, runs)
    friction = settings.friction_start + wide * settings.friction_start_std * rng.uniform(-1.0, 1.0, runs)
    first_deformation = rng.uniform(0.0, 0.001, runs)  # contact has just been noticed
    d = first_deformation - deformation(pose, tip, phi, 0.0)
    return PlanarTruth(tip, phi, d, stiffness, friction), Guess(tip_guess, phi_guess, pose)


def simulate(
    truth: PlanarTruth,
    guess: Guess,
    settings: ProbingSettings,
    excitation: ExcitationSettings,
    seconds: float,
    rate: float,
    rng: np.random.Generator,
    inner_rate: float = 250.0,
    presliding: float = PRESLIDING_STIFFNESS,
) -> PlanarRecording:
    """Run the excitation on every surface and sample it at ``rate`` [Hz] with the settings' noise; ``presliding``
    [N/m] is the tangential stiffness of the contact before it slides."""
    dt, every = 1.0 / inner_rate, int(round(inner_rate / rate))
    count = int(round(seconds * rate))
    runs = len(truth.phi)
    pose, bristle = guess.pose.copy(), np.zeros(runs)
    normal, tangent = (
        np.array([-np.sin(guess.phi), np.cos(guess.phi)]),
        np.array([np.cos(guess.phi), np.sin(guess.phi)]),
    )
    alpha0 = guess.pose[2]
    out = {name: np.empty((count, 3, runs)) for name in ("pose", "twist", "wrench")}
    slips, planted, noise = np.empty((count, runs)), np.empty((count, 6, runs)), _deviations(settings)
    wrench, travelled = np.zeros((3, runs)), np.zeros(runs)
    pivot, chance = touch_point(guess), rng.spawn(1)[0]
    for step in range(count * every):
        order = command(excitation, step * dt)
        tilt, tilt_rate = planar_tilt(excitation, order)
        twist = _guided_twist(order, -tilt_rate, guess, pose, wrench, normal, tangent, settings)
        pose = pose + dt * twist
        pose[2] = alpha0 - tilt
        wrench, bristle, slip = _contact(truth, pose, twist, bristle, dt, presliding)
        travelled += dt * np.abs(slip)
        due = travelled > settings.slide_step
        if np.any(due):
            truth, travelled = wander(truth, due, pivot, settings, chance), np.where(due, 0.0, travelled)
        if (step + 1) % every == 0:
            k = step // every
            for name, value in (("pose", pose), ("twist", twist), ("wrench", wrench)):
                out[name][k] = value + noise[name][:, None] * rng.standard_normal((3, runs))
            slips[k], planted[k] = slip, truth.parameters()
    return PlanarRecording(np.arange(1, count + 1) / rate, slip=slips, planted=planted, **out)


def touch_point(guess: Guess) -> np.ndarray:
    """Guessed place (2, R) of the tip at contact, where the filter has its origin."""
    c, s = np.cos(guess.pose[2]), np.sin(guess.pose[2])
    return guess.pose[:2] + np.vstack([c * guess.tip[0] - s * guess.tip[1], s * guess.tip[0] + c * guess.tip[1]])


def wander(truth: PlanarTruth, due, pivot, settings: ProbingSettings, rng: np.random.Generator) -> PlanarTruth:
    """Truth after one slide step of the runs that are ``due`` (R,): the filter's process model, planted. Angles turn
    the surface about ``pivot`` (2, R)."""
    def kick(deviation, *shape):
        return deviation * due * rng.standard_normal((*shape, len(due)))

    phi = truth.phi + kick(settings.angle_walk)
    lift = (np.cos(phi) - np.cos(truth.phi)) * pivot[1] - (np.sin(phi) - np.sin(truth.phi)) * pivot[0]
    return PlanarTruth(
        truth.tip + kick(settings.tip_walk, 2),
        phi,
        truth.d + lift + kick(settings.offset_walk),
        wander_bounded(truth.stiffness, settings.stiffness_max, kick(settings.stiffness_walk)),
        wander_bounded(truth.friction, settings.friction_max, kick(settings.friction_walk)),
    )


def wander_bounded(value, upper: float, kick):
    """A parameter between 0 and ``upper`` after ``kick`` in its free coordinate."""
    bounds = Bounds(0.0, upper)
    return bounds.to_bounded(bounds.to_free(value) + kick)


def _deviations(cfg):
    return {
        "pose": np.array([cfg.position_noise, cfg.position_noise, cfg.angle_noise]),
        "twist": np.array([cfg.velocity_noise, cfg.velocity_noise, cfg.rate_noise]),
        "wrench": np.array([cfg.force_noise, cfg.force_noise, cfg.torque_noise]),
    }


def _guided_twist(order, turn, guess, pose, wrench, normal, tangent, settings):
    """Twist of the end-effector for the command, planned with the guess; the force error corrects along the guessed
    normal."""
    c, s = np.cos(pose[2]), np.sin(pose[2])
    force_world = np.array([c * wrench[0] - s * wrench[1], s * wrench[0] + c * wrench[1]])
    push = order.force - np.sum(force_world * normal, axis=0)
    descent = order.force_rate / settings.stiffness_start + 60.0 * push / settings.stiffness_max
    tip_velocity = order.speed * tangent - np.clip(descent, -0.05, 0.05) * normal
    arm = np.array([c * guess.tip[0] - s * guess.tip[1], s * guess.tip[0] + c * guess.tip[1]])
    return np.vstack([tip_velocity[0] + turn * arm[1], tip_velocity[1] - turn * arm[0], np.full_like(descent, turn)])


def _contact(truth, pose, twist, bristle, dt, presliding):
    """True wrench: spring, and friction that is elastic until it reaches Coulomb's bound."""
    delta = deformation(pose, truth.tip, truth.phi, truth.d)
    normal_force = truth.stiffness * np.maximum(delta, 0.0)
    slip = slip_velocity(pose, twist, truth.tip, truth.phi)
    limit = truth.friction * normal_force / presliding
    bristle = np.clip(bristle + slip * dt, -limit, limit)
    ratio = np.divide(presliding * bristle, normal_force, out=np.zeros_like(bristle), where=normal_force > 0.0)
    return np.vstack(contact_wrench(pose[2] - truth.phi, truth.tip, normal_force, ratio)), bristle, slip
