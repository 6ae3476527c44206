"""The contact in space, which paper 4 leaves as future work: 3-D tips, planes with two angles and an offset, the full
wrench.

Parameters: (x, y, z) of every tip in tool axes [m]; then for every surface its two angles (a, b) [rad], offset d [m],
kappa~ and mu~. The normal is n = R_ref R_x(a) R_y(b) e_z, so that the angles are small and regular around the
reference the surface was given, and the surface is n.p = d. Contact i presses tip i on its surface: delta_i = d -
n.p_i and, as in eq. 3-5, f_i = kappa delta_i (n - mu u_i), with u_i the direction of sliding. The wrench is the sum
over contacts, ON the probe, in tool axes about the tool's origin.

The sign of sliding of eq. 3-5 becomes a direction. Per contact two modes remain: along the predicted direction or
against it; within a mode the direction turns with the transverse velocity of each point. Friction follows the direction
of sliding over a presliding distance (:mod:`presliding`), so it is turned by the angle that it trails.
"""

from __future__ import annotations

import itertools

import numpy as np
import pinocchio as pin

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.probing.bounded import Bounds

_SURFACE = 5  # parameters of a surface: a, b, d, kappa~, mu~


class SpatialModel:
    """Measurement model of space for :class:`~contact_estimation.identify.probing.filter.ProbingFilter`.

    Poses are homogeneous matrices (4, 4) of the tool in the world; twists (6,) are [velocity of the tool's origin;
    angular velocity] in world axes; pose errors are [position; rotation vector] in world axes.

    Args:
        stiffness, friction: bounds shared by all surfaces.
        references: (surfaces, 3, 3) rotations whose third column is the first guess of each normal.
        surface_of_tip: index of the surface that each tip touches, for example ``(0,)``, or ``(0, 0)`` for a fork.

    Raises:
        IdentificationError: a tip names a surface that is not there.
    """

    axes = 6
    wrench_size = 6
    force_size = 3

    def __init__(self, stiffness: Bounds, friction: Bounds, references, surface_of_tip=(0,)):
        self._references = np.asarray(references, dtype=float)
        self._surface_of = tuple(surface_of_tip)
        if not set(self._surface_of) <= set(range(len(self._references))):
            raise IdentificationError(
                f"surface_of_tip is {self._surface_of}, but {len(self._references)} surfaces were given"
            )
        self.contacts = len(self._surface_of)
        tips = [f"tip{i}_{axis}" for i in range(self.contacts) for axis in "xyz"]
        surfaces = [
            f"surface{j}_{name}"
            for j in range(len(self._references))
            for name in ("a", "b", "d", "stiffness", "friction")
        ]
        self.parameters = tuple(tips + surfaces)
        self.units = tuple(["m"] * len(tips) + ["rad", "rad", "m", "N/m", "1"] * len(self._references))
        self.bounds = {}
        for j in range(len(self._references)):
            self.bounds[self._first(j) + 3], self.bounds[self._first(j) + 4] = stiffness, friction
        #: contacts by surface: where friction has a direction, it trails that of sliding
        self.trailing = tuple(self._surface_of.index(j) for j in range(len(self._references)))
        self.modes = tuple(itertools.product((1.0, -1.0), repeat=self.contacts))

    def _first(self, surface):
        """Index of the first parameter of a surface."""
        return 3 * self.contacts + _SURFACE * surface

    def surface_of(self, contact: int) -> int:
        """Index of the surface that a tip touches."""
        return self._surface_of[contact]

    def surface_terms(self, s, surface: int = 0):
        """Offset d [m], as ``s`` has it, and stiffness [N/m] of a surface."""
        first = self._first(surface)
        return s[first + 2], self.bounds[first + 3].to_bounded(s[first + 3])

    def tip(self, s, contact: int = 0):
        """Tip (3, ...) of a contact in tool axes [m]."""
        return s[3 * contact : 3 * contact + 3]

    def normal(self, s, surface: int = 0):
        """Outward unit normal (3, ...) of a surface in world axes."""
        a, b = s[self._first(surface)], s[self._first(surface) + 1]
        cos_b = np.cos(b)
        return self._references[surface] @ np.array([np.sin(b), -np.sin(a) * cos_b, np.cos(a) * cos_b])

    @staticmethod
    def advance(pose, increment):
        """Pose moved by a pose error (6,)."""
        out = pose.copy()
        out[:3, 3] += increment[:3]
        out[:3, :3] = pin.exp3(np.asarray(increment[3:])) @ pose[:3, :3]
        return out

    @staticmethod
    def difference(pose, reference):
        """Pose error (6,) from ``reference`` to ``pose``."""
        return np.concatenate([pose[:3, 3] - reference[:3, 3], pin.log3(pose[:3, :3] @ reference[:3, :3].T)])

    @staticmethod
    def shift(pose, origin):
        """Pose with its position relative to ``origin`` (3,)."""
        out = np.array(pose)
        out[:3, 3] -= origin
        return out

    def _slide_axes(self, pose, twist, s, contact):
        """Tip velocity, its tangential part, the unit direction of that and the transverse unit vector, at the mean."""
        arm = pose[:3, :3] @ self.tip(s, contact)
        normal = self.normal(s, self._surface_of[contact])
        velocity = twist[:3] + _cross(twist[3:], arm)
        tangential = velocity - normal * (normal @ velocity)
        speed = np.linalg.norm(tangential)
        along = tangential / speed if speed > 1e-9 else self._references[self._surface_of[contact]][:, 0]
        return arm, normal, tangential, along, _cross(normal, along)

    def grips(self, pose, s, force):
        """Friction (contacts,) [N] of tips that slide under a measured ``force`` [N] (its norm), shared among them as
        their loads are."""
        loads, frictions = np.empty(self.contacts), np.empty(self.contacts)
        for i, surface in enumerate(self._surface_of):
            offset, stiffness = self.surface_terms(s, surface)
            point = pose[:3, 3] + pose[:3, :3] @ self.tip(s, i)
            loads[i] = stiffness * max(offset - self.normal(s, surface) @ point, 1e-9)
            friction = self._first(surface) + 4
            frictions[i] = self.bounds[friction].to_bounded(s[friction])
        return force * loads / loads.sum() * frictions / np.hypot(1.0, frictions)

    def prepare(self, pose, twist, s, deflection=None):
        """What stays fixed during one wrench update.

        Args:
            pose, twist, s: the mean.
            deflection: of the bristles (contacts, 3), world axes, of which the direction counts; without it friction
                does not trail.

        Returns:
            rows (2 surfaces, 12) over [pose; twist] errors through which kinematic noise enters the wrench:
            deformation and transverse velocity, at the middle of the tips on each surface (between tips 2 cm apart it
            differs by 1e-5 m). Then, per contact, the unit vectors along and across the sliding, and the same two
            turned by the angle that friction trails.
        """
        rows, axes = np.zeros((2 * len(self._references), 12)), []
        for i, surface in enumerate(self._surface_of):
            arm, normal, _, along, across = self._slide_axes(pose, twist, s, i)
            share = 1.0 / self._surface_of.count(surface)
            rows[2 * surface, :6] += share * np.concatenate([-normal, -_cross(arm, normal)])
            rows[2 * surface + 1, 6:] += share * np.concatenate([across, _cross(arm, across)])
            angle = 0.0 if deflection is None else np.arctan2(across @ deflection[i], along @ deflection[i])
            cos, sin = np.cos(angle), np.sin(angle)
            trail, aside = cos * along + sin * across, cos * across - sin * along
            axes.append(tuple(axis[:, None] for axis in (along, across, trail, aside)))
        return rows, axes

    def wrenches(self, pose, twist, c, axes, modes):
        """Predicted wrench (6, N) of each of ``modes`` at the points ``c`` (k, N): parameters, then two noises per
        surface. ``axes`` are those of :meth:`prepare`."""
        pressed, rubbed = 0.0, []
        for i in range(self.contacts):
            press, rubs = self._contact(pose, twist, c, i, *axes[i], {mode[i] for mode in modes})
            pressed = pressed + press
            rubbed.append(rubs)
        return [pressed + sum(rubbed[i][sign] for i, sign in enumerate(mode)) for mode in modes]

    def _contact(self, pose, twist, c, i, along, across, trail, aside, signs):
        """Wrench of the normal force of contact ``i``, and of its friction for each of ``signs``."""
        surface = self._surface_of[i]
        rotation, first, tip = pose[:3, :3], self._first(surface), c[3 * i : 3 * i + 3]
        noises = len(self.parameters) + 2 * surface
        deformation_noise, transverse_noise = c[noises], c[noises + 1]
        arm, normal = rotation @ tip, self.normal(c, surface)
        delta = c[first + 2] + deformation_noise - normal.T @ pose[:3, 3] - np.einsum("ij,ij->j", normal, arm)
        if self.contacts > 1:  # with one contact the force itself says that it is closed
            delta = np.maximum(delta, 0.0)
        load = self.bounds[first + 3].to_bounded(c[first + 3]) * delta
        grip = load * self.bounds[first + 4].to_bounded(c[first + 4])
        velocity = twist[:3, None] + _cross(twist[3:, None], arm)
        velocity_along = np.abs(along.T @ velocity)
        velocity_across = across.T @ velocity + transverse_noise
        rubs = {}
        for sign in signs:
            slide = (sign * velocity_along) * trail + velocity_across * aside
            slide -= normal * np.einsum("ij,ij->j", normal, slide)
            force = rotation.T @ (slide * (-grip / np.sqrt(np.einsum("ij,ij->j", slide, slide) + 1e-18)))
            rubs[sign] = np.vstack([force, _cross(tip, force)])
        force = rotation.T @ (normal * load)
        return np.vstack([force, _cross(tip, force)]), rubs

    def slip(self, pose, twist, s):
        """Tangential speed (contacts,), its gradient (contacts, 12 + n_s) over [pose; twist; s], and the velocities
        (contacts, 3). The turn of the tangent plane with the surface angles is of second order and left out."""
        values, gradient = np.zeros(self.contacts), np.zeros((self.contacts, 12 + len(s)))
        velocities = np.zeros((self.contacts, 3))
        for i in range(self.contacts):
            arm, _, velocities[i], along, _ = self._slide_axes(pose, twist, s, i)
            values[i] = along @ velocities[i]
            pull = _cross(along, twist[3:])
            gradient[i, 3:6] = _cross(arm, pull)
            gradient[i, 6:9], gradient[i, 9:12] = along, _cross(arm, along)
            gradient[i, 12 + 3 * i : 15 + 3 * i] = pose[:3, :3].T @ pull
        return values, gradient, velocities

    def slip_samples(self, pose, twist, s, deviations):
        """Tangential velocity (contacts, N) along the predicted direction at ``deviations`` (12 + n_s, N) of [pose;
        twist; s]."""
        out = np.empty((self.contacts, deviations.shape[1]))
        for i in range(self.contacts):
            along = self._slide_axes(pose, twist, s, i)[3]
            arm = pose[:3, :3] @ (self.tip(s, i)[:, None] + deviations[12 + 3 * i : 15 + 3 * i])
            arm = arm + _cross(deviations[3:6], arm)
            out[i] = along @ (twist[:3, None] + deviations[6:9] + _cross(twist[3:, None] + deviations[9:12], arm))
        return out

    def offset_to_world(self, s, covariance, origin):
        """``s`` and ``covariance`` with every offset referred to the world origin instead of ``origin`` (3,)."""
        out, jacobian = np.array(s), np.eye(len(s))
        for j, reference in enumerate(self._references):
            first = self._first(j)
            a, b = s[first], s[first + 1]
            by_a = reference @ np.array([0.0, -np.cos(a) * np.cos(b), -np.sin(a) * np.cos(b)])
            by_b = reference @ np.array([np.cos(b), np.sin(a) * np.sin(b), -np.cos(a) * np.sin(b)])
            out[first + 2] += self.normal(s, j) @ origin
            jacobian[first + 2, first], jacobian[first + 2, first + 1] = by_a @ origin, by_b @ origin
        return out, jacobian @ covariance @ jacobian.T

    @staticmethod
    def wrench_deviations(settings):
        """Standard deviations (6,) of the measured wrench."""
        return np.repeat([settings.force_noise, settings.torque_noise], 3)

    def walk(self, settings):
        """Standard deviations (n_s,) of what the parameters may change per slide step."""
        surface = [
            settings.angle_walk,
            settings.angle_walk,
            settings.offset_walk,
            settings.stiffness_walk,
            settings.friction_walk,
        ]
        return np.array([settings.tip_walk] * (3 * self.contacts) + surface * len(self._references))

    def start(self, settings, pose, tips):
        """Rough start from a first touch at ``pose`` (4, 4): each surface passes near the guessed tip (contacts, 3)
        that touches it.

        Returns:
            s (n_s,), covariance (n_s, n_s) and origin (3,), the first tip in the world, for
            :meth:`ProbingFilter.start`.
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


def _cross(a, b):
    """Cross product over the first axis; numpy's own is several times slower on few rows."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
