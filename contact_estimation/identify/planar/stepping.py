"""Time stepping with frictional contact as an LCP per step (paper 5, eq. 8), with Newton's restitution.

The unknowns of a step are impulses [N s]: c_n per contact, c_t = (c_t1, c_t2) along +J_t and -J_t, and the slip speed
lambda [m/s]. A contact takes part when the unconstrained step would bring it to the ground, phi + h J_n v_free <= 0.
Geometry is taken at q^k, as in the closed forms (eq. 20-26), so that recordings and closed forms belong together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.lcp import solve_lcp
from contact_estimation.identify.planar.shapes import Shape, contact_rows

GRAVITY = 9.81  # [m/s^2]
_STRETCH = 4  # samples of a flight first looked at for the next contact; doubled while there is none


class Contacts(NamedTuple):
    """Every contact a system can make at one configuration."""

    phi: Array  # distances (c,) [m]
    normal: Array  # rows J_n (c, n)
    tangent: Array  # rows J_t (c, n)
    friction: Array  # Coulomb coefficients (c,)
    restitution: Array  # Newton's coefficients (c,)


class System(Protocol):
    """What can be stepped: M dv/dt = force + J_n^T c_n + J_t^T c_t."""

    def mass(self, q: Array) -> Array:
        """Inertia matrix M (n, n)."""

    def force(self, q: Array, v: Array) -> Array:
        """Gravity and velocity terms (n,), everything except contact and external forces."""

    def contacts(self, q: Array) -> Contacts:
        """Every possible contact at q."""


@dataclass(frozen=True)
class FallingBody:
    """One planar rigid body over flat ground."""

    shape: Shape  # outline
    mass_over_inertia: float  # m/I [1/m^2]
    body_mass: float = 1.0  # m [kg]
    friction: float = 0.7  # Coulomb coefficient of body and ground together
    restitution: float = 0.6  # Newton's coefficient of body and ground together
    slope: float = 0.0  # angle [rad] by which the ground falls towards +x

    def mass(self, q: Array) -> Array:
        """Return diag(m, m, I)."""
        return self.body_mass * np.diag([1.0, 1.0, 1.0 / self.mass_over_inertia])

    def force(self, q: Array, v: Array) -> Array:
        """Gravity [N, N, Nm] in ground axes."""
        return self.body_mass * gravity(self.slope)

    def contacts(self, q: Array) -> Contacts:
        """Return the shape's contacts with one friction and one restitution."""
        phi, normal, tangent = contact_rows(self.shape, q)
        return Contacts(phi, normal, tangent, np.full(len(phi), self.friction), np.full(len(phi), self.restitution))


def gravity(slope: float = 0.0) -> Array:
    """Acceleration (3,) of a free body [m/s^2, m/s^2, rad/s^2] in the axes of ground that falls by ``slope`` [rad]."""
    return GRAVITY * np.array([np.sin(slope), -np.cos(slope), 0.0])


class Impulses(NamedTuple):
    """Impulses of one step (leading axes empty) or of all steps (N, ...)."""

    normal: Array  # c_n (..., c) [N s]
    tangent: Array  # c_t (..., c, 2) along +J_t and -J_t [N s]
    slip: Array  # lambda (..., c) [m/s]


@dataclass(frozen=True)
class Trajectory:
    """N steps of a system; row k of the impulses belongs to step k."""

    h: float  # step [s]
    q: Array  # configurations (N+1, n)
    v: Array  # velocities (N+1, n)
    normal: Array  # c_n (N, c) [N s]
    tangent: Array  # c_t (N, c, 2) along +J_t and -J_t [N s]
    slip: Array  # lambda (N, c) [m/s]

    @property
    def t(self) -> Array:
        """Time [s] of every state."""
        return self.h * np.arange(len(self.q), dtype=float)

    @property
    def friction_impulse(self) -> Array:
        """Signed tangential impulse c_t1 - c_t2 (N, c) [N s] along J_t."""
        return self.tangent[..., 0] - self.tangent[..., 1]


def simulate(
    system: System,
    q0: ArrayLike,
    v0: ArrayLike,
    h: float,
    steps: int,
    external: Callable[[int, Array, Array], Array] | None = None,
) -> Trajectory:
    """Step a system.

    Args:
        system: what moves.
        q0: first configuration (n,).
        v0: first velocity (n,).
        h: step [s].
        steps: how many.
        external: generalised forces (n,) that ``external(k, q, v)`` adds.

    Raises:
        IdentificationError: the step's LCP has no solution (contradictory contacts), naming the step.
    """
    states, impulses = [(np.array(q0, float), np.array(v0, float))], []
    for k in range(steps):
        q, v = states[-1]
        force = system.force(q, v) + (0.0 if external is None else external(k, q, v))
        after, impulse = step_velocity(system.mass(q), v, force, system.contacts(q), h, k)
        states.append((q + h * after, after))
        impulses.append(impulse)
    return Trajectory(h, *map(np.array, zip(*states)), *map(np.array, zip(*impulses)))


def fall(body: FallingBody, q0: ArrayLike, v0: ArrayLike, h: float, steps: int) -> tuple[Array, Array]:
    """Step a body as :func:`simulate` does, with the flights between impacts in closed form.

    Args:
        body: what falls.
        q0: first configuration (3,).
        v0: first velocity (3,).
        h: step [s].
        steps: how many.

    Returns:
        q and v (steps + 1, 3).

    Raises:
        IdentificationError: as :func:`simulate`.
    """
    g, states, k = gravity(body.slope), np.empty((2, steps + 1, 3)), 0
    q, v = np.array(q0, float), np.array(v0, float)
    seen, stretch = 0, _STRETCH  # samples of the flight from step k that are done, and those looked at next
    while True:
        ahead = np.arange(seen, min(seen + stretch, steps + 1 - k))[:, None]
        flight_q, flight_v = q + h * ahead * v + h * h * g * ahead * (ahead + 1) / 2.0, v + h * ahead * g
        first, seen = k + seen, seen + len(ahead)
        states[0, first : k + seen], states[1, first : k + seen] = flight_q, flight_v
        r, free = body.shape.levers(flight_q[:, 2]), flight_v + h * g
        phi, closing = flight_q[:, 1, None] + r[..., 1], free[:, 1, None] + r[..., 0] * free[:, 2, None]
        hits = np.flatnonzero((phi + h * closing <= 0.0).any(axis=1))
        if not len(hits) and k + seen <= steps:
            stretch *= 2
            continue
        k = first + int(hits[0]) if len(hits) else steps
        if k == steps:
            return states[0], states[1]
        q, v = states[:, k]
        v, _ = step_velocity(body.mass(q), v, body.force(q, v), body.contacts(q), h, k)
        q, k, seen, stretch = q + h * v, k + 1, 0, _STRETCH


def step_velocity(
    mass: Array, v: Array, force: Array, contacts: Contacts, h: float, k: int = 0
) -> tuple[Array, Impulses]:
    """Velocity (n,) after one step and its impulses; ``k`` names the step in errors."""
    count = len(contacts.phi)
    free = v + h * np.linalg.solve(mass, force)
    impulses = Impulses(np.zeros(count), np.zeros((count, 2)), np.zeros(count))
    active = np.flatnonzero(contacts.phi + h * contacts.normal @ free <= 0.0)
    if active.size == 0:
        return free, impulses
    rows_n, rows_t = contacts.normal[active], contacts.tangent[active]
    rows = np.concatenate([rows_n, rows_t, -rows_t])  # (3 m, n)
    effect = np.linalg.solve(mass, rows.T)
    m = active.size
    matrix, each = np.zeros((4 * m, 4 * m)), np.arange(m)
    matrix[: 3 * m, : 3 * m] = rows @ effect
    for side in (m + each, 2 * m + each):
        matrix[side, 3 * m + each], matrix[3 * m + each, side] = 1.0, -1.0
    matrix[3 * m + each, each] = contacts.friction[active]
    offset = np.concatenate([rows @ free, np.zeros(m)])
    offset[:m] += _rebound(contacts.phi[active], rows_n @ v, contacts.restitution[active], h)
    solution = solve_lcp(matrix, offset)
    if not solution.solved:
        raise IdentificationError(f"step {k}: the contact LCP of {m} contacts has no solution; reduce the step ({h} s)")
    z = solution.z
    impulses.normal[active], impulses.slip[active] = z[:m], z[3 * m :]
    impulses.tangent[active] = z[m : 3 * m].reshape(2, m).T
    return free + effect @ z[: 3 * m], impulses


def _rebound(phi: Array, approach: Array, restitution: Array, h: float) -> Array:
    """Find what is added to J_n v^{k+1} >= 0: restitution times the approach speed [m/s].

    A contact that hardly approaches (slower than gravity makes it in four steps) may instead close its distance in
    this step; of a penetration, a fifth is undone.
    """
    bouncing = approach < -4.0 * GRAVITY * h
    return np.where(bouncing, restitution * approach, np.where(phi > 0.0, phi, 0.2 * phi) / h)
