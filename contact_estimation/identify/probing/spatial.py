"""The contact in space, which paper 4 leaves as future work: 3-D tips, planes with two angles, the full wrench.

The normal of a surface is n = R_ref R_x(a) R_y(b) e_z, so that its angles (a, b) are small around the reference that
the surface was given; the surface is n.p = d. Contact i presses tip i on its surface: delta_i = d - n.p_i and, as in
eq. 3-5, f_i = kappa delta_i (n - mu u_i), with u_i the direction of sliding. The wrench is the sum over contacts, ON
the probe, in tool axes about the tool's origin.

The sign of sliding of eq. 3-5 becomes a direction. Per contact two modes remain: along the predicted direction or
against it; within a mode the direction turns with the transverse velocity of each point. Friction follows the direction
of sliding over a distance (:mod:`~contact_estimation.identify.probing.bristles`), so it is turned by that angle.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable, Sequence
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_estimation.codegen import Parts
from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.model import ContactModel, Mean, Start
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.tip_motion import SURFACE, TipMotions, surface_normal


class SpatialModel(ContactModel):
    """Measurement model of space.

    Poses are homogeneous matrices (4, 4) of the tool in the world; twists (6,) are [velocity of the tool's origin;
    angular velocity] in world axes; pose errors are [position; rotation vector] in world axes.

    Args:
        stiffness: bounds of the stiffness [N/m] of every surface.
        friction: bounds of its friction.
        references: (surfaces, 3, 3) rotations whose third column is the first guess of each normal.
        surface_of_tip: index of the surface that each tip touches, for example ``(0,)``, or ``(0, 0)`` for a fork.

    Raises:
        IdentificationError: a tip names a surface that does not exist.
    """

    axes = 6
    force_size = 3
    wrench_size = 6

    def __init__(
        self, stiffness: Bounds, friction: Bounds, references: ArrayLike, surface_of_tip: Sequence[int] = (0,)
    ) -> None:
        self._references = np.asarray(references, dtype=float)
        self._surface_of = tuple(surface_of_tip)
        self.contacts, self.surfaces = len(self._surface_of), len(self._references)
        if not set(self._surface_of) <= set(range(self.surfaces)):
            raise IdentificationError(f"surface_of_tip is {self._surface_of}, but {self.surfaces} surfaces were given")
        tips = [f"tip{i}_{axis}" for i in range(self.contacts) for axis in "xyz"]
        self.parameters = (*tips, *(f"surface{j}_{name}" for j in range(self.surfaces) for name in SURFACE))
        self.units = ("m",) * len(tips) + tuple(SURFACE.values()) * self.surfaces
        self.bounds = {}
        for j in range(self.surfaces):
            self.bounds[self._first(j) + 3], self.bounds[self._first(j) + 4] = stiffness, friction
        self.bristle_contacts = tuple(self._surface_of.index(j) for j in range(self.surfaces))
        self.modes = tuple(itertools.product((1.0, -1.0), repeat=self.contacts))
        self.noises = 2 * self.surfaces
        numbers = {"references": 9 * self.surfaces, "intervals": 4 * self.surfaces, "axes": 12 * self.contacts}
        self.conditions = Parts(position=3, rotation=9, twist=6, **numbers)
        self._numbers = np.append(self._references, self._intervals())

    def _first(self, surface: int) -> int:
        """Index of the first parameter of a surface."""
        return 3 * self.contacts + len(SURFACE) * surface

    def surface_of(self, contact: int) -> int:
        """Return the index of the surface that a tip touches."""
        return self._surface_of[contact]

    def surface_terms(self, s: np.ndarray, surface: int = 0) -> tuple[float, float]:
        """Return the offset d [m], as ``s`` has it, and the stiffness [N/m] of a surface."""
        first = self._first(surface)
        return s[first + 2], self.bounds[first + 3].to_bounded(s[first + 3])

    def tip(self, s: np.ndarray, contact: int = 0) -> np.ndarray:
        """Return the tip (3, ...) of a contact in tool axes [m]."""
        tip: np.ndarray = s[3 * contact : 3 * contact + 3]
        return tip

    def normal(self, s: np.ndarray, surface: int = 0) -> np.ndarray:
        """Return the outward unit normal (3, ...) of a surface in world axes."""
        a, b = s[self._first(surface)], s[self._first(surface) + 1]
        cos_b = np.cos(b)
        return np.asarray(self._references[surface] @ np.array([np.sin(b), -np.sin(a) * cos_b, np.cos(a) * cos_b]))

    def advance(self, pose: np.ndarray, increment: np.ndarray) -> np.ndarray:
        """Return the pose moved by a pose error (6,)."""
        out = np.array(pose)
        out[:3, 3] += increment[:3]
        np.matmul(pin.exp3(increment[3:]), pose[:3, :3], out=out[:3, :3])
        return out

    def difference(self, pose: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Return the pose error (6,) from ``reference`` to ``pose``."""
        return np.concatenate([pose[:3, 3] - reference[:3, 3], pin.log3(pose[:3, :3] @ reference[:3, :3].T)])

    def shift(self, pose: np.ndarray, origin: np.ndarray) -> np.ndarray:
        """Return the pose with its position relative to ``origin`` (3,)."""
        out = np.array(pose)
        out[:3, 3] -= origin
        return out

    @functools.cached_property
    def _motions(self) -> TipMotions:
        return TipMotions(self._surface_of, self._references)

    def velocities(self, mean: Mean) -> np.ndarray:
        """Return the tangential velocities (contacts, 3) [m/s] of the tips."""
        return np.array(self._motions.at(mean).tangential)

    def grips(self, mean: Mean, force: float) -> np.ndarray:
        """Return the friction (contacts,) [N] of sliding tips, which share a ``force`` [N] (its norm) as their loads.

        An unloaded tip has a deformation of a nanometre here.
        """
        loads, slopes, motions = [], [], self._motions.at(mean)
        for i, surface in enumerate(self._surface_of):
            offset, stiffness = self.surface_terms(mean.s, surface)
            loads.append(stiffness * max(offset - motions.normal[i] @ (mean.pose[:3, 3] + motions.arm[i]), 1e-9))
            entry = self._first(surface) + 4
            friction = float(self.bounds[entry].to_bounded(mean.s[entry]))
            slopes.append(friction / math.hypot(1.0, friction))
        total = sum(loads)
        return np.array([force * load / total * slope for load, slope in zip(loads, slopes)])

    def normals_in_tool(self, mean: Mean) -> np.ndarray:
        """Return the outward unit normals (surfaces, 3), tool axes."""
        return np.array([self.normal(mean.s, j) @ mean.pose[:3, :3] for j in range(self.surfaces)])

    def prepare(self, mean: Mean, deflection: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return two rows per surface, and the slide axes of every contact; buffers.

        The rows (2 surfaces, 12) are the gradients of deformation and transverse velocity, at the middle of the tips on
        each surface (between tips 2 cm apart the deformation differs by 1e-5 m).
        """
        motions = self._motions.at(mean)
        return motions.rows, motions.slide_axes(deflection)

    def transverse(self, mean: Mean) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient (surfaces, 12) of the transverse velocity, and its direction (contacts, 3) at tips."""
        motions = self._motions.at(mean)
        return motions.rows[1::2], motions.across.copy()

    @property
    def structure(self) -> Hashable:
        """Which tip touches which surface decides, too."""
        return super().structure, self._surface_of

    def conditions_at(self, mean: Mean, axes: np.ndarray) -> np.ndarray:
        """Return pose and twist, references and intervals of the surfaces, and the slide axes of the tips."""
        pose, twist, _ = mean
        return np.concatenate([pose[:3, 3], pose[:3, :3].ravel(), twist, self._numbers, axes.ravel()])

    def wrench_equation(self, c: ca.SX, known: SimpleNamespace) -> list[ca.SX]:
        """Predict the wrench (6,) of each mode; ``c`` ends with the two noises of every surface."""
        bounded = self._bounded(c, known.intervals)
        contacts = [self._contact(i, c, known, bounded) for i in range(self.contacts)]
        return [
            sum((press + rubs[sign] for (press, rubs), sign in zip(contacts, mode)), ca.SX(6, 1)) for mode in self.modes
        ]

    def _contact(
        self, i: int, c: ca.SX, known: SimpleNamespace, bounded: dict[int, ca.SX]
    ) -> tuple[ca.SX, dict[float, ca.SX]]:
        """Wrench (6,) of the normal force of contact ``i``, and of its friction for either sign."""
        surface, tip = self._surface_of[i], c[3 * i : 3 * i + 3]
        first, noises = self._first(surface), len(self.parameters) + 2 * surface
        rotation = ca.reshape(known.rotation, 3, 3).T
        arm, normal = (
            rotation @ tip,
            surface_normal(ca.vertsplit(c[first : first + 2]), known.references[9 * surface : 9 * surface + 9]),
        )
        delta = c[first + 2] + c[noises] - ca.dot(normal, known.position) - ca.dot(normal, arm)
        if self.contacts > 1:  # with one contact the force itself says that it is closed
            delta = ca.fmax(delta, 0.0)
        load = bounded[first + 3] * delta
        grip = load * bounded[first + 4]
        along, across, friction_along, friction_across = ca.vertsplit(known.axes[12 * i : 12 * i + 12], 3)
        velocity = known.twist[:3] + ca.cross(known.twist[3:], arm)
        ahead = ca.fabs(ca.dot(along, velocity)) * friction_along
        aside = (ca.dot(across, velocity) + c[noises + 1]) * friction_across
        rubs = {}
        for sign in (1.0, -1.0):
            slide = sign * ahead + aside
            slide -= normal * ca.dot(normal, slide)
            force = rotation.T @ (slide * (-grip / ca.sqrt(ca.dot(slide, slide) + 1e-18)))
            rubs[sign] = ca.vertcat(force, ca.cross(tip, force))
        force = rotation.T @ (normal * load)
        return ca.vertcat(force, ca.cross(tip, force)), rubs

    def slip(self, mean: Mean) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the tangential speeds (contacts,), their gradient (contacts, 12 + n_s), and velocities (contacts, 3).

        The turn of the tangent plane with the surface's angles is of second order and left out.
        """
        motions = self._motions.at(mean)
        return motions.slip.copy(), motions.gradient.copy(), motions.tangential.copy()

    def offset_to_world(
        self, s: np.ndarray, covariance: np.ndarray, origin: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return s and its covariance with every offset referred to the world's origin instead of ``origin`` (3,)."""
        out, jacobian = np.array(s), np.eye(len(s))
        for j, reference in enumerate(self._references):
            first = self._first(j)
            a, b = s[first], s[first + 1]
            by_a = reference @ np.array([0.0, -np.cos(a) * np.cos(b), -np.sin(a) * np.cos(b)])
            by_b = reference @ np.array([np.cos(b), np.sin(a) * np.sin(b), -np.cos(a) * np.sin(b)])
            out[first + 2] += self.normal(s, j) @ origin
            jacobian[first + 2, first], jacobian[first + 2, first + 1] = by_a @ origin, by_b @ origin
        return out, jacobian @ covariance @ jacobian.T

    def start(self, settings: ProbingSettings, pose: np.ndarray, tips: ArrayLike) -> Start:
        """Make a rough start from a first touch: each surface passes near the guessed tip that touches it.

        Args:
            settings: start values and their standard deviations.
            pose: pose (4, 4) at the touch.
            tips: guessed tips (contacts, 3) [m], tool axes.

        Returns:
            arguments of ``ProbingFilter.start``; the origin is the first tip in the world.
        """
        tips = np.asarray(tips, dtype=float).reshape(self.contacts, 3)
        rotation = pose[:3, :3]
        origin = pose[:3, 3] + rotation @ tips[0]
        n_s, n_t = len(self.parameters), 3 * self.contacts
        s, root = np.zeros(n_s), np.zeros((n_s, n_s + 3))  # the last three columns are the mounting, common to all tips
        s[:n_t] = tips.ravel()
        root[:n_t, n_s:] = settings.tip_start_std * np.tile(np.eye(3), (self.contacts, 1))
        if self.contacts > 1:
            root[:n_t, :n_t] = settings.tip_pair_start_std * np.eye(n_t)
        for j, reference in enumerate(self._references):
            first, i = self._first(j), self._surface_of.index(j)
            s[first + 2] = reference[:, 2] @ (pose[:3, 3] + rotation @ tips[i] - origin)
            root[first, first] = root[first + 1, first + 1] = settings.angle_start_std
            root[first + 2, first + 2] = settings.offset_start_std
            root[first + 2] += (reference[:, 2] @ rotation) @ root[3 * i : 3 * i + 3]
            for k, mean, std in (
                (first + 3, settings.stiffness_start, settings.stiffness_start_std),
                (first + 4, settings.friction_start, settings.friction_start_std),
            ):
                s[k], root[k, k] = self.bounds[k].fit(mean, std)
        return s, root @ root.T, origin


def homogeneous(rotation: np.ndarray, position: ArrayLike) -> np.ndarray:
    """Return the matrix (4, 4) of a rotation (3, 3) and a position (3,)."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation, position
    return out


def frame_from_normal(normal: ArrayLike) -> np.ndarray:
    """Return a rotation (3, 3) whose third column is ``normal`` (3,), made a unit vector."""
    z = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
