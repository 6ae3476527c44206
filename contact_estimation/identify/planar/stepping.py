"""Time stepping with frictional contact as an LCP per step (paper 5, eq. 8), with Newton's restitution.

The unknowns of a step are impulses [N s]: c_n per contact, c_t = (c_t1, c_t2) along +J_t and -J_t, and the slip speed
lambda [m/s]. A contact takes part when the unconstrained step would bring it to the ground, phi + h J_n v_free <= 0.
Geometry is taken at q^k, as in the closed forms (eq. 20-26), so that recordings and closed forms belong together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, NamedTuple, Protocol

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.planar.lcp import solve_lcp
from contact_estimation.identify.planar.shapes import Shape, contact_rows

GRAVITY = 9.81


class Contacts(NamedTuple):
    """Distances phi (c,) [m], rows J_n and J_t (c, n), friction and restitution (c,) of every contact a system can
    make."""

    phi: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray
    friction: np.ndarray
    restitution: np.ndarray


class System(Protocol):
    """What can be stepped: M dv/dt = force + J_n^T c_n + J_t^T c_t."""

    def mass(self, q: np.ndarray) -> np.ndarray:
        """Inertia matrix M (n, n)."""

    def force(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Gravity and velocity terms (n,), everything except contact and external forces."""

    def contacts(self, q: np.ndarray) -> Contacts:
        """Every possible contact at q."""


@dataclass(frozen=True)
class FallingBody:
    """One planar rigid body over flat ground; ``slope`` [rad] tilts the ground downhill towards +x.

    ``mass_over_inertia`` is m/I [1/m^2]; ``friction`` and ``restitution`` belong to body and ground together.
    """

    shape: Shape
    mass_over_inertia: float
    body_mass: float = 1.0
    friction: float = 0.7
    restitution: float = 0.6
    slope: float = 0.0

    def mass(self, q) -> np.ndarray:
        """diag(m, m, I)."""
        return self.body_mass * np.diag([1.0, 1.0, 1.0 / self.mass_over_inertia])

    def force(self, q, v) -> np.ndarray:
        """Gravity [N, N, Nm] in ground axes."""
        return self.body_mass * gravity(self.slope)

    def contacts(self, q) -> Contacts:
        """The shape's contacts with one friction and one restitution."""
        phi, normal, tangent = contact_rows(self.shape, q)
        return Contacts(phi, normal, tangent, np.full(len(phi), self.friction), np.full(len(phi), self.restitution))


def gravity(slope: float = 0.0) -> np.ndarray:
    """Acceleration (3,) of a free body [m/s^2, m/s^2, rad/s^2] in the axes of ground that falls by ``slope`` along
    +x."""
    return GRAVITY * np.array([np.sin(slope), -np.cos(slope), 0.0])


@dataclass(frozen=True)
class Trajectory:
    """N steps of ``h`` [s]: states q, v (N+1, n); impulses of step k in row k: ``normal`` (N, c), ``tangent`` (N, c, 2)
    along +J_t and -J_t [N s], ``slip`` lambda (N, c) [m/s]; ``phi`` (N+1, c) [m]."""

    h: float
    q: np.ndarray
    v: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray
    slip: np.ndarray
    phi: np.ndarray

    @property
    def t(self) -> np.ndarray:
        """Time [s] of every state."""
        return self.h * np.arange(len(self.q))

    @property
    def friction_impulse(self) -> np.ndarray:
        """Signed tangential impulse c_t1 - c_t2 (N, c) [N s] along J_t."""
        return self.tangent[..., 0] - self.tangent[..., 1]


def simulate(system: System, q0, v0, h: float, steps: int,
             external: Callable[[int, np.ndarray, np.ndarray], np.ndarray] | None = None) -> Trajectory:
    """Step ``system`` from (q0, v0) ``steps`` times by ``h`` [s]; ``external(k, q, v)`` adds generalised forces (n,).

    Raises:
        IdentificationError: the step's LCP has no solution (contradictory contacts), naming the step.
    """
    q, v = np.array(q0, float), np.array(v0, float)
    count = len(system.contacts(q).phi)
    record = {"q": [q], "v": [v], "normal": [], "tangent": [], "slip": [], "phi": [system.contacts(q).phi]}
    for k in range(steps):
        contacts = system.contacts(q)
        force = system.force(q, v) + (0.0 if external is None else external(k, q, v))
        v, normal, tangent, slip = step_velocity(system.mass(q), v, force, contacts, h, k, count)
        q = q + h * v
        for name, value in zip(record, (q, v, normal, tangent, slip, system.contacts(q).phi)):
            record[name].append(value)
    return Trajectory(h, **{name: np.array(values) for name, values in record.items()})


def step_velocity(mass, v, force, contacts: Contacts, h: float, k: int = 0, count: int | None = None):
    """Velocity after one step and its impulses: v (n,), c_n (c,), c_t (c, 2), lambda (c,)."""
    count = len(contacts.phi) if count is None else count
    free = v + h * np.linalg.solve(mass, force)
    normal, tangent, slip = np.zeros(count), np.zeros((count, 2)), np.zeros(count)
    active = np.flatnonzero(contacts.phi + h * contacts.normal @ free <= 0.0)
    if active.size == 0:
        return free, normal, tangent, slip
    rows_n, rows_t = contacts.normal[active], contacts.tangent[active]
    rows = np.vstack([rows_n, rows_t, -rows_t])
    effect = np.linalg.solve(mass, rows.T)
    m = active.size
    matrix = np.zeros((4 * m, 4 * m))
    matrix[:3 * m, :3 * m] = rows @ effect
    share = np.vstack([np.eye(m), np.eye(m)])
    matrix[m:3 * m, 3 * m:] = share
    matrix[3 * m:, :m] = np.diag(contacts.friction[active])
    matrix[3 * m:, m:3 * m] = -share.T
    offset = np.concatenate([rows @ free, np.zeros(m)])
    offset[:m] += _rebound(contacts.phi[active], rows_n @ v, contacts.restitution[active], h)
    solution = solve_lcp(matrix, offset)
    if not solution.solved:
        raise IdentificationError(f"step {k}: the contact LCP of {m} contacts has no solution; reduce the step ({h} s)")
    z = solution.z
    normal[active], tangent[active], slip[active] = z[:m], z[m:3 * m].reshape(2, m).T, z[3 * m:]
    return free + effect @ z[:3 * m], normal, tangent, slip


def _rebound(phi, approach, restitution, h):
    """What is added to J_n v^{k+1} >= 0: restitution times the approach speed, or, for a contact that hardly approaches
    (slower than gravity makes it in four steps), the distance that may still be closed in this step."""
    bouncing = approach < -4.0 * GRAVITY * h
    return np.where(bouncing, restitution * approach, np.where(phi > 0.0, phi, 0.2 * phi) / h)
