"""Impacts of finite duration: a compliant normal force (the future work of paper 5, section 7.4).

Normal force of Hunt and Crossley with penetration d = -phi and friction mu F against the slip:

    F = k d (1 + c d').

Motion during the contact shows k/m and c besides m/I: F/m is the measured normal acceleration, linear in (k/m, k c/m),
and eq. 27 holds for every sample, whatever makes the force.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.closed_forms import ratio_least_squares
from contact_estimation.identify.planar.shapes import Shape, contact_rows
from contact_estimation.identify.planar.stepping import gravity

SMOOTH = 0.01  # [m/s] slip velocity below which friction fades


class CompliantContact(NamedTuple):
    """A compliant contact: k/m [1/s^2], c [s/m] and Coulomb friction."""

    stiffness_over_mass: float
    dissipation: float
    friction: float

    def acceleration(self, shape: Shape, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Find normal and tangential force per mass of every contact (c,), (c,) [m/s^2], and levers (c, 2) [m]."""
        phi, normal, tangent = contact_rows(shape, q)
        depth, rate = np.maximum(-phi, 0.0), -(normal @ v)
        force = np.maximum(self.stiffness_over_mass * depth * (1.0 + self.dissipation * rate), 0.0)
        return force, -self.friction * force * np.tanh((tangent @ v) / SMOOTH), shape.levers(q[2])


class CompliantEstimate(NamedTuple):
    """m/I [1/m^2], k/m [1/s^2], dissipation [s/m] and friction found in ``samples`` of contact."""

    m_over_i: float
    stiffness_over_mass: float
    dissipation: float
    friction: float
    samples: int


def simulate_compliant(
    shape: Shape,
    m_over_i: float,
    contact: CompliantContact,
    start: tuple[ArrayLike, ArrayLike],
    h: float,
    steps: int,
    substeps: int = 50,
) -> tuple[Array, Array]:
    """States q, v (steps + 1, 3) of a free fall from ``start`` = (q, v) onto compliant ground (symplectic Euler)."""
    (q, v), fine = (np.array(part, float) for part in start), h / substeps
    states = [(q, v)]
    for i in range(steps * substeps):
        normal, tangent, r = contact.acceleration(shape, q, v)
        turn = m_over_i * (r[:, 0] * normal - r[:, 1] * tangent).sum()
        v = v + fine * (gravity() + np.array([tangent.sum(), normal.sum(), turn]))
        q = q + fine * v
        if (i + 1) % substeps == 0:
            states.append((q, v))
    return np.array([q for q, _ in states]), np.array([v for _, v in states])


def identify_compliant(shape: Shape, q: ArrayLike, v: ArrayLike, h: float) -> CompliantEstimate:
    """Identify an impact on one contact by midpoint differences.

    Args:
        shape: outline.
        q: configurations (N, 3), several within the impact.
        v: velocities (N, 3).
        h: sample interval [s].

    Raises:
        IdentificationError: fewer than 4 samples of contact on a single point.
    """
    q, v = np.asarray(q, float), np.asarray(v, float)
    middle, velocity = 0.5 * (q[1:] + q[:-1]), 0.5 * (v[1:] + v[:-1])
    phi, normal, tangent = contact_rows(shape, middle)
    single = np.flatnonzero((phi < 0.0).sum(axis=1) == 1)
    if len(single) < 4:
        raise IdentificationError(
            f"{len(single)} samples of contact on a single point, at least 4 are needed; sample faster"
        )
    lowest = np.argmin(phi[single], axis=1)
    depth, moving = -phi[single, lowest], velocity[single]
    rate = -np.einsum("ni,ni->n", normal[single, lowest], moving)
    force = (v[single + 1] - v[single]) / h - gravity()
    stiffness, damped = np.linalg.lstsq(np.stack([depth, depth * rate], axis=1), force[:, 1], rcond=None)[0]
    levers = shape.levers(middle[single, 2])[np.arange(len(single)), lowest]
    ratio = ratio_least_squares(v[single], v[single + 1], levers, h, gravity())
    slip = np.einsum("ni,ni->n", tangent[single, lowest], moving)
    sliding = np.abs(slip) > 5.0 * SMOOTH
    opposing = -force[sliding, 0] * np.sign(slip[sliding])
    friction = float(np.median(opposing / force[sliding, 1])) if sliding.any() else np.nan
    return CompliantEstimate(ratio, float(stiffness), float(damped / stiffness), friction, len(single))
