"""Interface of the probe's measurement models, for :class:`~contact_estimation.identify.probing.filter.ProbingFilter`.

The parameters s are, in this order: the coordinates of every tip in tool axes [m], then for each surface its angles
[rad], its offset d [m], its stiffness and its friction, the last two as free coordinates of their bounds (eq. 10-12).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from types import SimpleNamespace
from typing import NamedTuple

import casadi as ca
import numpy as np

from contact_estimation.codegen import Parts
from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.settings import ProbingSettings

#: s (n_s,), its covariance (n_s, n_s) and the origin of positions [m]: arguments of ``ProbingFilter.start``.
Start = tuple[np.ndarray, np.ndarray, np.ndarray]
#: Signs of sliding (contacts,) of some modes.
Modes = tuple[tuple[float, ...], ...]


class Mean(NamedTuple):
    """Mean of what the wrench depends on: ``pose``, ``twist`` (axes,) [m/s, rad/s] and parameters ``s`` (n_s,)."""

    pose: np.ndarray
    twist: np.ndarray
    s: np.ndarray


class ContactModel(ABC):
    """Geometry, slip and wrench of a probe on surfaces, and the arithmetic of its pose.

    Attributes:
        axes: axes of the pose and of the twist; translations come first.
        force_size: axes that are translations, which is also the number of force components.
        wrench_size: components of the wrench.
        contacts: number of tips.
        surfaces: number of surfaces.
        bristle_contacts: one contact per surface whose friction has a bristle state; empty where friction has a sign.
        parameters: names of s.
        units: units of the physical parameters.
        tested: how many parameters, the last ones of s, are 0 in the plain model; a trial tests them against 0.
        bounds: index in s of each bounded parameter, and its bounds.
        modes: sign of sliding of every contact, for each mode.
        noises: entries of c behind the parameters: directions in which noise of pose and twist enters the wrench.
        conditions: parts of what the wrench depends on besides c: pose, twist, slide axes, numbers of the model.
    """

    axes: int
    force_size: int
    wrench_size: int
    contacts: int = 1
    surfaces: int = 1
    bristle_contacts: tuple[int, ...] = ()
    parameters: tuple[str, ...]
    units: tuple[str, ...]
    tested: int = 0
    bounds: dict[int, Bounds]
    modes: Modes
    noises: int
    conditions: Parts

    def wrench_deviations(self, settings: ProbingSettings) -> np.ndarray:
        """Return the standard deviations (wrench_size,) of the measured wrench [N, Nm]."""
        moments = self.wrench_size - self.force_size
        return np.array([settings.force_noise] * self.force_size + [settings.torque_noise] * moments)

    def walk(self, settings: ProbingSettings) -> np.ndarray:
        """Return the standard deviations (n_s,) of what the parameters may change per slide step."""
        surface = [settings.angle_walk] * (self.force_size - 1)
        surface += [settings.offset_walk, settings.stiffness_walk, settings.friction_walk]
        return np.array([settings.tip_walk] * (self.force_size * self.contacts) + surface * self.surfaces)

    @abstractmethod
    def advance(self, pose: np.ndarray, increment: np.ndarray) -> np.ndarray:
        """Return the pose moved by ``increment`` (axes,) [m, rad]."""

    @abstractmethod
    def difference(self, pose: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Return the increment (axes,) from ``reference`` to ``pose``."""

    @abstractmethod
    def shift(self, pose: np.ndarray, origin: np.ndarray) -> np.ndarray:
        """Return the pose with its position relative to ``origin`` [m]."""

    @abstractmethod
    def slip(self, mean: Mean) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute how the tips slide.

        Returns:
            slip [m/s] (contacts,), its gradient (contacts, 2 axes + n_s) over [pose; twist; s], and the tangential
            velocities (contacts, 1 or 3) [m/s].
        """

    @abstractmethod
    def normals_in_tool(self, mean: Mean) -> np.ndarray:
        """Return the outward unit normals (surfaces, force_size), tool axes."""

    @abstractmethod
    def prepare(self, mean: Mean, deflection: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Compute what stays fixed during one wrench update.

        Args:
            mean: the mean.
            deflection: bristle deflection (contacts, 3), world axes; without it friction is opposite to sliding.

        Returns:
            rows (k, 2 axes) over [pose; twist] errors through which kinematic noise enters the wrench, and the slide
            axes (contacts, 4, 3), world axes: unit vectors along and across sliding, and the same two for its friction
            (none in the plane). Both may be buffers.
        """

    @property
    def structure(self) -> Hashable:
        """What the wrench equation depends on besides numbers: models of one structure share compiled code."""
        return type(self), tuple(type(bounds) for bounds in self.bounds.values())

    @abstractmethod
    def wrench_equation(self, c: ca.SX, known: SimpleNamespace) -> list[ca.SX]:
        """Predict the wrench ON the probe, tool axes about the tool's origin.

        Args:
            c: parameters (n_s,), then the noises that :meth:`prepare` names.
            known: the parts of :attr:`conditions`.

        Returns:
            wrench (wrench_size,) [N, Nm] of each of the modes.
        """

    @abstractmethod
    def conditions_at(self, mean: Mean, axes: np.ndarray) -> np.ndarray:
        """Return the conditions of the wrench: :attr:`conditions` at the mean, with slide axes of :meth:`prepare`."""

    def _intervals(self) -> np.ndarray:
        """Return lower end and width of every bounded parameter's interval."""
        return np.array([(b.lower, b.upper - b.lower) for b in self.bounds.values()]).ravel()

    def _bounded(self, c: ca.SX, intervals: ca.SX) -> dict[int, ca.SX]:
        """Return the physical values of the bounded parameters, by their index in s."""
        return {
            i: intervals[2 * k] + intervals[2 * k + 1] * bounds.share(c[i])
            for k, (i, bounds) in enumerate(self.bounds.items())
        }

    @abstractmethod
    def offset_to_world(
        self, s: np.ndarray, covariance: np.ndarray, origin: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return s and its covariance with every offset referred to the world's origin instead of ``origin`` [m]."""
