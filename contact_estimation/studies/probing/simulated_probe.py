"""The paper's experiment in simulation: a position-controlled probe on rubber, many independent runs at once.

The ground truth is richer than the filter's model where reality is: friction builds up elastically before it slides
(presliding), contact opens, and the arm follows a plan made from the rough first estimate, corrected along the guessed
normal with the measured force, so that contact lasts and stays below the force limit. Parameters drift while the probe
slides, as far as the settings tell the filter that they may.

The contact is spatial. The plane is its restriction to motion in x and y and about z: :class:`PlanarProbe`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.excitation import (
    Command,
    ExcitationSettings,
    azimuth,
    command,
    planar_tilt,
    spatial_tilt,
)
from contact_estimation.identify.probing.planar import lift_pose, plane_frame
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import homogeneous

#: Tangential stiffness [N/m] of the contact before it slides; 15 N of friction preslide 0.75 mm.
PRESLIDING_STIFFNESS = 20000.0
#: Stiffness and friction are uniform within this many of the settings' standard deviations around their start.
WIDE = 1.6
#: Errors of lengths and angles are normal, cut at this many standard deviations.
CUT = 2.5
#: Rate [Hz] of the simulation, and greatest speed [m/s] and gain [m/s per N/m of force error] along the normal.
_RATE, _MAX_DESCENT, _FORCE_GAIN = 250.0, 0.05, 60.0


@dataclass(frozen=True)
class Truth:
    """Planted parameters of R runs; SI, world frame.

    Attributes:
        tips: (R, contacts, 3), tool axes.
        normal: (R, 3).
        d: (R,).
        stiffness: (R,).
        friction: (R,).
    """

    tips: np.ndarray
    normal: np.ndarray
    d: np.ndarray
    stiffness: np.ndarray
    friction: np.ndarray

    def run(self, index: int) -> Truth:
        """Return one run alone."""
        return Truth(*(value[index : index + 1] for value in vars(self).values()))


@dataclass(frozen=True)
class Guess:
    """What is roughly known before contact.

    Attributes:
        tips: (R, contacts, 3), tool axes [m].
        surface: (R, 3, 3) rotations whose third column is the normal.
        rotation: (R, 3, 3) of the tool at contact.
        position: (R, 3) of the tool at contact [m].
    """

    tips: np.ndarray
    surface: np.ndarray
    rotation: np.ndarray
    position: np.ndarray

    def pose(self, run: int) -> np.ndarray:
        """Return the pose (4, 4) of the tool at contact."""
        return homogeneous(self.rotation[run], self.position[run])


@dataclass(frozen=True)
class Motion:
    """Poses, twists and wrenches of R runs, each array (R, ...) at one time or (T, R, ...) over T samples.

    Attributes:
        position: (..., 3) [m].
        rotation: (..., 3, 3).
        twist: (..., 6), world axes.
        wrench: (..., 6) ON the probe, tool axes.
    """

    position: np.ndarray
    rotation: np.ndarray
    twist: np.ndarray
    wrench: np.ndarray


@dataclass(frozen=True)
class Recording(Motion):
    """Measured samples of R runs.

    Attributes:
        t: (T,) [s].
        slip: true tangential speed (T, R) [m/s] of the first tip, in the plane with its sign.
        planted: true parameters (T, R, n_s).
    """

    t: np.ndarray
    slip: np.ndarray
    planted: np.ndarray


def surface_angles(surface: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return the angles (a, b) (R, 2) of ``normal`` (R, 3) in ``surface`` (R, 3, 3): n = R_x(a) R_y(b) e_z there."""
    local = np.einsum("rji,rj->ri", surface, normal)
    return np.column_stack([np.arctan2(-local[:, 1], local[:, 2]), np.arcsin(local[:, 0])])


def normal_of_angles(surface: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return the normals (R, 3) of angles (R, 2): the inverse of :func:`surface_angles`."""
    a, b = angles.T
    local = np.column_stack([np.sin(b), -np.sin(a) * np.cos(b), np.cos(a) * np.cos(b)])
    return np.asarray(np.einsum("rij,rj->ri", surface, local))


def draw_dynamics(settings: ProbingSettings, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw stiffness [N/m] and friction (runs,) with the spread that the settings state."""
    stiffness = settings.stiffness_start + WIDE * settings.stiffness_start_std * rng.uniform(-1.0, 1.0, runs)
    return stiffness, settings.friction_start + WIDE * settings.friction_start_std * rng.uniform(-1.0, 1.0, runs)


def contact_wrench(
    truth: Truth, motion: Motion, bristles: np.ndarray, dt: float, presliding: float = PRESLIDING_STIFFNESS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the true wrench: springs, and friction that is elastic until it reaches Coulomb's bound.

    Args:
        truth: planted parameters.
        motion: pose and twist.
        bristles: deflections (R, contacts, 3) [m] before.
        dt: time since [s].
        presliding: tangential stiffness before the contact slides [N/m].

    Returns:
        wrench (R, 6) in tool axes, the moved bristles, and the tips' tangential velocity (R, contacts, 3) [m/s].
    """
    arm = np.einsum("rij,rcj->rci", motion.rotation, truth.tips)
    normal = truth.normal[:, None]
    delta = truth.d[:, None] - np.sum(normal * (motion.position[:, None] + arm), axis=2)
    load = truth.stiffness[:, None] * np.maximum(delta, 0.0)
    velocity = motion.twist[:, None, :3] + np.cross(motion.twist[:, None, 3:], arm)
    bristles = bristles + dt * velocity
    bristles = bristles - normal * np.sum(normal * bristles, axis=2, keepdims=True)
    length = np.linalg.norm(bristles, axis=2)
    limit = truth.friction[:, None] * load / presliding
    scale = np.minimum(1.0, np.divide(limit, length, out=np.ones_like(limit), where=length > 0.0))
    bristles = bristles * scale[..., None]
    force = load[..., None] * normal - presliding * bristles
    force = np.einsum("rji,rcj->rci", motion.rotation, force)
    wrench = np.concatenate([force.sum(axis=1), np.cross(truth.tips, force).sum(axis=1)], axis=1)
    return wrench, bristles, velocity - normal * np.sum(normal * velocity, axis=2, keepdims=True)


class SpatialProbe:
    """A probe with one or several tips on planes in space.

    Args:
        settings: spread of surfaces and guesses, noise, random walk.
        tips: places of the tips along the tool's x axis [m].
    """

    def __init__(self, settings: ProbingSettings, tips: tuple[float, ...] = (0.0,)) -> None:
        self.settings, self._tips = settings, tips

    def draw(self, runs: int, rng: np.random.Generator) -> tuple[Truth, Guess]:
        """Draw random surfaces, probes and rough starts with the spread that the settings state."""
        cfg = self.settings

        def error(*shape: int) -> np.ndarray:
            return np.clip(rng.standard_normal(shape), -CUT, CUT)

        axes = [rng.uniform(low, high, runs) for low, high in ((-0.03, 0.03), (-0.03, 0.03), (0.14, 0.22))]
        tips_guess = np.stack(axes, axis=1)[:, None] + np.array([[x, 0.0, 0.0] for x in self._tips])
        tips = tips_guess + cfg.tip_start_std * error(runs, 1, 3)
        if len(self._tips) > 1:
            tips = tips + cfg.tip_pair_start_std * error(runs, len(self._tips), 3)
        surface = Rotation.from_rotvec(rng.uniform(-0.4, 0.4, (runs, 3)))
        normal = surface.apply(Rotation.from_euler("XY", cfg.angle_start_std * error(runs, 2)).apply([0.0, 0.0, 1.0]))
        flange = Rotation.from_rotvec([np.pi, 0.0, 0.0])  # the tool's z axis points into the surface
        tilt, turn = rng.uniform(-0.1, 0.1, runs) * (len(self._tips) == 1), rng.uniform(-0.5, 0.5, runs)
        rotation = surface * Rotation.from_rotvec(np.column_stack([tilt, np.zeros(runs), turn])) * flange
        position = rng.uniform([-0.5, -0.5, 0.2], [0.5, 0.5, 0.8], (runs, 3))
        dynamics = draw_dynamics(cfg, runs, rng)
        guess = Guess(tips_guess, surface.as_matrix(), rotation.as_matrix(), position)
        return Truth(tips, normal, first_touch(guess, tips, normal, rng), *dynamics), guess

    def plan(self, guess: Guess, excitation: ExcitationSettings) -> GuardedPlan:
        """Return the tool's motion."""
        return GuardedPlan(guess, self.settings, excitation)

    def parameters(self, truth: Truth, guess: Guess) -> np.ndarray:
        """Return the parameters (R, n_s) in the order of the model."""
        angles = surface_angles(guess.surface, truth.normal)
        columns = [truth.tips.reshape(len(truth.d), -1), angles, truth.d, truth.stiffness, truth.friction]
        return np.column_stack(columns)

    def slip(self, velocity: np.ndarray, truth: Truth) -> np.ndarray:
        """Return the slip (R,) [m/s] of a tangential velocity (R, 3)."""
        return np.asarray(np.linalg.norm(velocity, axis=1))

    def measure(self, motion: Motion, rng: np.random.Generator) -> Motion:
        """Return the motion with the noise of the settings."""
        cfg = self.settings

        def noise(*deviations: float) -> np.ndarray:
            return np.repeat(deviations, 3) * rng.standard_normal((len(motion.position), 3 * len(deviations)))

        turned = Rotation.from_rotvec(noise(cfg.angle_noise)).as_matrix() @ motion.rotation
        position = motion.position + noise(cfg.position_noise)
        twist = motion.twist + noise(cfg.velocity_noise, cfg.rate_noise)
        return Motion(position, turned, twist, motion.wrench + noise(cfg.force_noise, cfg.torque_noise))

    def _turn(self, guess: Guess, normal: np.ndarray, due: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Turn the normals (R, 3) by one slide step of the runs that are ``due``."""
        kick = self.settings.angle_walk * due[:, None] * rng.standard_normal((len(due), 2))
        return normal_of_angles(guess.surface, surface_angles(guess.surface, normal) + kick)

    def _tip_kick(self, tips: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw a standard normal change of the tips (R, contacts, 3)."""
        return rng.standard_normal(tips.shape)

    def random_walk(self, truth: Truth, guess: Guess, due: np.ndarray, rng: np.random.Generator) -> Truth:
        """Change the parameters by one slide step of the random walk, as the filter's process model does.

        Args:
            truth: before.
            guess: whose first tip, where it was at contact, is the pivot of the surface.
            due: which runs (R,) have slid that far.
            rng: generator.

        Returns:
            truth after it.
        """
        cfg = self.settings
        normal = self._turn(guess, truth.normal, due, rng)
        pivot = guess.position + np.einsum("rij,rj->ri", guess.rotation, guess.tips[:, 0])
        tips = truth.tips + cfg.tip_walk * due[:, None, None] * self._tip_kick(truth.tips, rng)
        d = truth.d + np.sum((normal - truth.normal) * pivot, axis=1)
        d = d + cfg.offset_walk * due * rng.standard_normal(len(due))
        dynamics = []
        for value, upper, walk in (
            (truth.stiffness, cfg.stiffness_max, cfg.stiffness_walk),
            (truth.friction, cfg.friction_max, cfg.friction_walk),
        ):
            bounds = Bounds(0.0, upper)
            dynamics.append(bounds.to_bounded(bounds.to_free(value) + walk * due * rng.standard_normal(len(due))))
        return Truth(tips, normal, d, *dynamics)

    def simulate(
        self,
        truth: Truth,
        guess: Guess,
        excitation: ExcitationSettings,
        seconds: float,
        rate: float,
        rng: np.random.Generator,
        presliding: float = PRESLIDING_STIFFNESS,
    ) -> Recording:
        """Run the excitation on every surface.

        Args:
            truth: planted parameters at contact.
            guess: what the plan is made with.
            excitation: shape of the motion.
            seconds: length [s].
            rate: rate of the samples [Hz].
            rng: generator of noise and random walk.
            presliding: tangential stiffness of the contact before it slides [N/m].

        Returns:
            samples with the settings' noise.
        """
        dt, every = 1.0 / _RATE, round(_RATE / rate)
        count, runs = round(seconds * rate), len(truth.d)
        plan = self.plan(guess, excitation)
        bristles, wrench = np.zeros_like(truth.tips), np.zeros((runs, 6))
        travelled, chance = np.zeros(runs), rng.spawn(1)[0]
        samples, slips, planted = [], np.empty((count, runs)), []
        for step in range(count * every):
            twist = plan.advance(step * dt, dt, wrench)
            motion = Motion(plan.position, plan.rotation, twist, wrench)
            wrench, bristles, velocity = contact_wrench(truth, motion, bristles, dt, presliding)
            slip = self.slip(velocity[:, 0], truth)
            travelled += dt * np.abs(slip)
            due = travelled > self.settings.slide_step
            if np.any(due):
                truth, travelled = self.random_walk(truth, guess, due, chance), np.where(due, 0.0, travelled)
            if (step + 1) % every == 0:
                samples.append(self.measure(replace(motion, wrench=wrench), rng))
                slips[step // every] = slip
                planted.append(self.parameters(truth, guess))
        arrays = {name: np.array([getattr(sample, name) for sample in samples]) for name in vars(samples[0])}
        return Recording(t=np.arange(1, count + 1) / rate, slip=slips, planted=np.array(planted), **arrays)


class PlanarProbe(SpatialProbe):
    """A probe with one tip in the plane: tip, force and motion in x and y, rotation about z."""

    def draw(self, runs: int, rng: np.random.Generator) -> tuple[Truth, Guess]:
        """Draw random surfaces, probes and rough starts with the spread that the settings state."""
        cfg = self.settings

        def error(*shape: int) -> np.ndarray:
            return np.clip(rng.standard_normal(shape), -CUT, CUT)

        tip_guess = np.vstack([rng.uniform(-0.03, 0.03, runs), rng.uniform(-0.22, -0.14, runs), np.zeros(runs)])
        phi_guess = rng.uniform(-0.6, 0.6, runs)
        position = rng.uniform([[-0.5], [0.2]], [[0.5], [0.8]], (2, runs))
        poses = np.array(
            [lift_pose(pose) for pose in np.vstack([position, phi_guess + rng.uniform(-0.1, 0.1, runs)]).T]
        )
        phi = phi_guess + cfg.angle_start_std * error(runs)
        tips = (tip_guess + cfg.tip_start_std * np.vstack([error(2, runs), np.zeros(runs)])).T[:, None]
        dynamics = draw_dynamics(cfg, runs, rng)
        surface = np.array([plane_frame(angle) for angle in phi_guess])
        guess = Guess(tip_guess.T[:, None], surface, poses[:, :3, :3], poses[:, :3, 3])
        normal = np.column_stack([-np.sin(phi), np.cos(phi), np.zeros(runs)])
        return Truth(tips, normal, first_touch(guess, tips, normal, rng), *dynamics), guess

    def plan(self, guess: Guess, excitation: ExcitationSettings) -> GuardedPlan:
        """Return the tool's motion."""
        return PlanarPlan(guess, self.settings, excitation)

    def parameters(self, truth: Truth, guess: Guess) -> np.ndarray:
        """Return the parameters (R, 6) in the order of :class:`PlanarModel`."""
        phi = np.arctan2(-truth.normal[:, 0], truth.normal[:, 1])
        return np.column_stack([truth.tips[:, 0, :2], phi, truth.d, truth.stiffness, truth.friction])

    def slip(self, velocity: np.ndarray, truth: Truth) -> np.ndarray:
        """Return the slip (R,) [m/s] along the tangent (n_y, -n_x), eq. 7."""
        return np.asarray(velocity[:, 0] * truth.normal[:, 1] - velocity[:, 1] * truth.normal[:, 0])

    def measure(self, motion: Motion, rng: np.random.Generator) -> Motion:
        """Return the motion with the noise of the settings on the axes of the plane."""
        cfg, runs = self.settings, len(motion.position)

        def noise(linear: float, angular: float) -> np.ndarray:
            return np.asarray(np.array([linear, linear, angular]) * rng.standard_normal((3, runs)).T)

        pose, twist, wrench = np.zeros((runs, 6)), motion.twist.copy(), motion.wrench.copy()
        axes = [0, 1, 5]
        pose[:, axes] = noise(cfg.position_noise, cfg.angle_noise)
        twist[:, axes] += noise(cfg.velocity_noise, cfg.rate_noise)
        wrench[:, axes] += noise(cfg.force_noise, cfg.torque_noise)
        turned = Rotation.from_rotvec(pose[:, 3:]).as_matrix() @ motion.rotation
        return Motion(motion.position + pose[:, :3], turned, twist, wrench)

    def _turn(self, guess: Guess, normal: np.ndarray, due: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        phi = np.arctan2(-normal[:, 0], normal[:, 1]) + self.settings.angle_walk * due * rng.standard_normal(len(due))
        return np.column_stack([-np.sin(phi), np.cos(phi), np.zeros(len(due))])

    def _tip_kick(self, tips: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        kick = np.zeros(tips.shape)
        kick[:, 0, :2] = rng.standard_normal((2, len(tips))).T
        return kick


def first_touch(guess: Guess, tips: np.ndarray, normal: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the offsets (R,) [m] at which the lowest tip has just been noticed to touch, up to 1 mm deep."""
    world = guess.position[:, None] + np.einsum("rij,rcj->rci", guess.rotation, tips)
    return np.asarray(np.einsum("ri,rci->rc", normal, world).min(axis=1) + rng.uniform(0.0, 0.001, len(normal)))


class GuardedPlan:
    """Position-controlled tool that follows the excitation planned with the guess, in space.

    The force error corrects the motion along the guessed normal.

    Args:
        guess: tips and surface.
        settings: expected stiffness.
        excitation: shape of the motion.
    """

    def __init__(self, guess: Guess, settings: ProbingSettings, excitation: ExcitationSettings) -> None:
        self._guess, self._settings, self._excitation = guess, settings, excitation
        self.position, self.rotation = guess.position.copy(), guess.rotation.copy()
        self._middle = guess.tips.mean(axis=1)  # about which the tool turns

    def advance(self, t: float, dt: float, wrench: np.ndarray) -> np.ndarray:
        """Move by one step.

        Args:
            t: time since contact [s].
            dt: length of the step [s].
            wrench: measured wrench (R, 6), tool axes.

        Returns:
            twist (R, 6) of the step, world axes.
        """
        order, cfg, normal = command(self._excitation, t), self._settings, self._guess.surface[:, :, 2]
        force = np.einsum("rij,rj->ri", self.rotation, wrench[:, :3])
        push = order.force - np.einsum("ri,ri->r", force, normal)
        descent = order.force_rate / cfg.stiffness_start + _FORCE_GAIN * push / cfg.stiffness_max
        descent = np.clip(descent, -_MAX_DESCENT, _MAX_DESCENT)
        tip_velocity = order.speed * self._tangent(order) - descent[:, None] * normal
        arm = np.einsum("rij,rj->ri", self.rotation, self._middle)
        turn, rotation = self._turn(order, t, dt)
        twist = np.concatenate([tip_velocity - np.cross(turn, arm), turn], axis=1)
        self.position, self.rotation = self.position + dt * twist[:, :3], rotation
        return twist

    def _tangent(self, order: Command) -> np.ndarray:
        """Directions (R, 3) of positive sliding."""
        angle = azimuth(order.stroke)
        return np.asarray(self._guess.surface @ np.array([np.cos(angle), np.sin(angle), 0.0]))

    def _turn(self, order: Command, t: float, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """Angular velocity (R, 3) and the orientation (R, 3, 3) after the step."""
        now = Rotation.from_rotvec(-spatial_tilt(self._excitation, order))
        later = Rotation.from_rotvec(-spatial_tilt(self._excitation, command(self._excitation, t + dt)))
        turn = self._guess.surface @ ((later * now.inv()).as_rotvec() / dt)
        return turn, Rotation.from_rotvec(dt * turn).as_matrix() @ self.rotation


class PlanarPlan(GuardedPlan):
    """The same in the plane, where the tool leans with sliding and its orientation is commanded."""

    def _tangent(self, order: Command) -> np.ndarray:
        return -self._guess.surface[:, :, 0]

    def _turn(self, order: Command, t: float, dt: float) -> tuple[np.ndarray, np.ndarray]:
        tilt, rate = planar_tilt(self._excitation, order)
        turn = np.tile([0.0, 0.0, -rate], (len(self.position), 1))
        return turn, Rotation.from_rotvec([0.0, 0.0, -tilt]).as_matrix() @ self._guess.rotation
