"""A probe with one or several tips on a plane in space, many independent runs at once: the spatial counterpart of
:mod:`~contact_estimation.identify.probing.world_planar`, with the same presliding friction and the same guarded
plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from contact_estimation.identify.probing.excitation import ExcitationSettings, azimuth, command, spatial_tilt
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.world_planar import PRESLIDING_STIFFNESS, wander_bounded


@dataclass(frozen=True)
class SpatialTruth:
    """Planted parameters of R runs: ``tips`` (R, contacts, 3) in tool axes, ``normal`` (R, 3), others (R,); SI, world
    frame."""

    tips: np.ndarray
    normal: np.ndarray
    d: np.ndarray
    stiffness: np.ndarray
    friction: np.ndarray

    def parameters(self, surface: np.ndarray) -> np.ndarray:
        """(R, n_s) in the order of :class:`SpatialModel` with the references ``surface`` (R, 3, 3)."""
        angles = surface_angles(surface, self.normal)
        columns = [self.tips.reshape(len(self.d), -1), angles, self.d, self.stiffness, self.friction]
        return np.column_stack(columns)


@dataclass(frozen=True)
class SpatialGuess:
    """What is roughly known before contact: ``tips`` (R, contacts, 3), ``surface`` (R, 3, 3) rotations whose third
    column is the normal, ``rotation`` (R, 3, 3) and ``position`` (R, 3) of the tool at contact."""

    tips: np.ndarray
    surface: np.ndarray
    rotation: np.ndarray
    position: np.ndarray

    def pose(self, run: int) -> np.ndarray:
        """Homogeneous matrix (4, 4) of the tool at contact."""
        return homogeneous(self.rotation[run], self.position[run])


@dataclass(frozen=True)
class SpatialRecording:
    """Measured samples of R runs: ``t`` (T,), ``position`` (T, R, 3), ``rotation`` (T, R, 3, 3), ``twist`` and
    ``wrench`` (T, R, 6); ``planted`` (T, R, n_s) the true parameters."""

    t: np.ndarray
    position: np.ndarray
    rotation: np.ndarray
    twist: np.ndarray
    wrench: np.ndarray
    planted: np.ndarray


def surface_angles(surface: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Angles (a, b) (R, 2) of ``normal`` (R, 3) about the axes of ``surface`` (R, 3, 3): normal = R_x(a) R_y(b) e_z
    there."""
    local = np.einsum("rji,rj->ri", surface, normal)
    return np.column_stack([np.arctan2(-local[:, 1], local[:, 2]), np.arcsin(local[:, 0])])


def normal_of_angles(surface: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Inverse of :func:`surface_angles`: (R, 3)."""
    a, b = angles.T
    local = np.column_stack([np.sin(b), -np.sin(a) * np.cos(b), np.cos(a) * np.cos(b)])
    return np.einsum("rij,rj->ri", surface, local)


def homogeneous(rotation, position) -> np.ndarray:
    """(4, 4) from rotation (3, 3) and position (3,)."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation, position
    return out


def draw(settings: ProbingSettings, runs: int, rng: np.random.Generator,
         fork: tuple[float, ...] = (0.0,)) -> tuple[SpatialTruth, SpatialGuess]:
    """Random surfaces, probes and rough starts with the spread that the settings state (normal, cut at 2.5 deviations).

    ``fork`` (contacts,) [m] places the tips side by side along the tool's x axis.
    """
    def error(*shape):
        return np.clip(rng.standard_normal(shape), -2.5, 2.5)

    tip = np.stack(
        [rng.uniform(-0.03, 0.03, runs), rng.uniform(-0.03, 0.03, runs), rng.uniform(0.14, 0.22, runs)], axis=1
    )
    tips_guess = tip[:, None] + np.array([[x, 0.0, 0.0] for x in fork])
    tips = tips_guess + settings.tip_start_std * error(runs, 1, 3)
    if len(fork) > 1:
        tips = tips + settings.tip_pair_start_std * error(runs, len(fork), 3)
    surface = Rotation.from_rotvec(rng.uniform(-0.4, 0.4, (runs, 3)))
    angles = settings.angle_start_std * error(runs, 2)
    normal = surface.apply(Rotation.from_euler("XY", angles).apply([0.0, 0.0, 1.0]))
    flange = Rotation.from_rotvec([np.pi, 0.0, 0.0])  # the tool's z axis points into the surface
    lean = np.column_stack(
        [rng.uniform(-0.1, 0.1, runs) * (len(fork) == 1), np.zeros(runs), rng.uniform(-0.5, 0.5, runs)]
    )
    rotation = surface * Rotation.from_rotvec(lean) * flange
    position = rng.uniform([-0.5, -0.5, 0.2], [0.5, 0.5, 0.8], (runs, 3))
    wide = 1.6
    stiffness = settings.stiffness_start + wide * settings.stiffness_start_std * rng.uniform(-1.0, 1.0, runs)
    friction = settings.friction_start + wide * settings.friction_start_std * rng.uniform(-1.0, 1.0, runs)
    world = position[:, None] + np.einsum("rij,rcj->rci", rotation.as_matrix(), tips)
    heights = np.einsum("ri,rci->rc", normal, world)
    d = heights.min(axis=1) + rng.uniform(0.0, 0.001, runs)  # the lowest tip has just touched
    return (
        SpatialTruth(tips, normal, d, stiffness, friction),
        SpatialGuess(tips_guess, surface.as_matrix(), rotation.as_matrix(), position),
    )


def contact_wrench(truth, position, rotation, twist, bristles, dt, presliding=PRESLIDING_STIFFNESS):
    """True wrench (R, 6) in tool axes and the moved bristles (R, contacts, 3)."""
    arm = np.einsum("rij,rcj->rci", rotation, truth.tips)
    normal = truth.normal[:, None]
    delta = truth.d[:, None] - np.sum(normal * (position[:, None] + arm), axis=2)
    load = truth.stiffness[:, None] * np.maximum(delta, 0.0)
    velocity = twist[:, None, :3] + np.cross(twist[:, None, 3:], arm)
    bristles = bristles + dt * velocity
    bristles = bristles - normal * np.sum(normal * bristles, axis=2, keepdims=True)
    length = np.linalg.norm(bristles, axis=2)
    limit = truth.friction[:, None] * load / presliding
    scale = np.minimum(1.0, np.divide(limit, length, out=np.ones_like(limit), where=length > 0.0))
    bristles = bristles * scale[..., None]
    force = load[..., None] * normal - presliding * bristles
    force = np.einsum("rji,rcj->rci", rotation, force)
    moment = np.cross(truth.tips, force)
    return np.concatenate([force.sum(axis=1), moment.sum(axis=1)], axis=1), bristles


def simulate(
    truth: SpatialTruth,
    guess: SpatialGuess,
    settings: ProbingSettings,
    excitation: ExcitationSettings,
    seconds: float,
    rate: float,
    rng: np.random.Generator,
    inner_rate: float = 250.0,
    presliding: float = PRESLIDING_STIFFNESS,
) -> SpatialRecording:
    """Run the excitation on every surface and sample it at ``rate`` [Hz] with the settings' noise; ``presliding`` as
    in the plane."""
    dt, every = 1.0 / inner_rate, int(round(inner_rate / rate))
    count, runs = int(round(seconds * rate)), len(truth.d)
    plan = GuardedPlan(guess, settings, excitation)
    bristles, wrench = np.zeros_like(truth.tips), np.zeros((runs, 6))
    travelled, chance = np.zeros(runs), rng.spawn(1)[0]
    pivot = guess.position + np.einsum("rij,rj->ri", guess.rotation, guess.tips[:, 0])
    planted = np.empty((count, *truth.parameters(guess.surface).shape))
    shapes = {"position": (3,), "rotation": (3, 3), "twist": (6,), "wrench": (6,)}
    out = {name: np.empty((count, runs, *shape)) for name, shape in shapes.items()}
    for step in range(count * every):
        twist = plan.advance(step * dt, dt, wrench)
        wrench, bristles = contact_wrench(truth, plan.position, plan.rotation, twist, bristles, dt, presliding)
        arm = np.einsum("rij,rj->ri", plan.rotation, truth.tips[:, 0])
        velocity = twist[:, :3] + np.cross(twist[:, 3:], arm)
        across = velocity - truth.normal * np.sum(truth.normal * velocity, axis=1, keepdims=True)
        travelled += dt * np.linalg.norm(across, axis=1)
        due = travelled > settings.slide_step
        if np.any(due):
            truth = wander(truth, due, pivot, guess.surface, settings, chance)
            travelled = np.where(due, 0.0, travelled)
        if (step + 1) % every == 0:
            for name, value in measure(settings, plan.position, plan.rotation, twist, wrench, rng).items():
                out[name][step // every] = value
            planted[step // every] = truth.parameters(guess.surface)
    return SpatialRecording(np.arange(1, count + 1) / rate, planted=planted, **out)


def wander(truth: SpatialTruth, due, pivot, surface, settings: ProbingSettings, rng: np.random.Generator):
    """Truth after one slide step of the runs that are ``due`` (R,), as in the plane; the surface turns about ``pivot``
    (R, 3)."""
    def kick(deviation, *shape):
        moved = due.reshape((-1,) + (1,) * len(shape))
        return deviation * moved * rng.standard_normal((len(due), *shape))

    angles = surface_angles(surface, truth.normal) + kick(settings.angle_walk, 2)
    normal = normal_of_angles(surface, angles)
    lift = np.sum((normal - truth.normal) * pivot, axis=1)
    return SpatialTruth(
        truth.tips + kick(settings.tip_walk, *truth.tips.shape[1:]),
        normal,
        truth.d + lift + kick(settings.offset_walk),
        wander_bounded(truth.stiffness, settings.stiffness_max, kick(settings.stiffness_walk)),
        wander_bounded(truth.friction, settings.friction_max, kick(settings.friction_walk)),
    )


def measure(cfg, position, rotation, twist, wrench, rng) -> dict:
    """Measured position, rotation, twist and wrench of R runs, with the settings' noise."""

    def noise(deviations):
        return np.asarray(deviations) * rng.standard_normal((len(position), len(deviations)))

    turned = Rotation.from_rotvec(noise([cfg.angle_noise] * 3)).as_matrix() @ rotation
    return {
        "position": position + noise([cfg.position_noise] * 3),
        "rotation": turned,
        "twist": twist + noise([cfg.velocity_noise] * 3 + [cfg.rate_noise] * 3),
        "wrench": wrench + noise([cfg.force_noise] * 3 + [cfg.torque_noise] * 3),
    }


class GuardedPlan:
    """Position-controlled tool that follows the excitation planned with the guess; the force error corrects along its
    normal."""

    def __init__(self, guess: SpatialGuess, settings: ProbingSettings, excitation: ExcitationSettings):
        self._guess, self._settings, self._excitation = guess, settings, excitation
        self.position, self.rotation = guess.position.copy(), guess.rotation.copy()
        self._middle = guess.tips.mean(axis=1)  # about which the tool turns

    def advance(self, t: float, dt: float, wrench: np.ndarray) -> np.ndarray:
        """Move by one step, given the measured ``wrench`` (R, 6); returns the twist (R, 6) of the step, world axes."""
        order, cfg, surface = command(self._excitation, t), self._settings, self._guess.surface
        force = np.einsum("rij,rj->ri", self.rotation, wrench[:, :3])
        push = order.force - np.einsum("ri,ri->r", force, surface[:, :, 2])
        descent = np.clip(order.force_rate / cfg.stiffness_start + 60.0 * push / cfg.stiffness_max, -0.05, 0.05)
        angle = azimuth(order.stroke)
        tangent = surface @ np.array([np.cos(angle), np.sin(angle), 0.0])
        tip_velocity = order.speed * tangent - descent[:, None] * surface[:, :, 2]
        now = Rotation.from_rotvec(-spatial_tilt(self._excitation, order))
        later = Rotation.from_rotvec(-spatial_tilt(self._excitation, command(self._excitation, t + dt)))
        turn = surface @ ((later * now.inv()).as_rotvec() / dt)
        arm = np.einsum("rij,rj->ri", self.rotation, self._middle)
        twist = np.concatenate([tip_velocity - np.cross(turn, arm), turn], axis=1)
        self.position = self.position + dt * twist[:, :3]
        self.rotation = Rotation.from_rotvec(dt * turn).as_matrix() @ self.rotation
        return twist
