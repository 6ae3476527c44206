"""A drop as few unknowns: free flight joined by impacts that obey complementarity (paper 5, eq. 8 and 26).

Between impacts the stepped motion is linear in (q^0, v^0) and in the velocity jumps. A window of N noisy states is
therefore compressed once into a small triangular system per axis; only the rotation couples through m/I and the
contact geometry. Unknowns are u = [q^0 (3), v^0 (3), three slots per impact, m/I]. An impact is a step index and a
mode. Its first slot is the normal jump dvy_j; the mode decides dvx_j:

- ``STICK``: lambda = 0, the contact point's tangential velocity after the impact is 0;
- ``+1`` / ``-1``: slip along +x / -x, friction on the edge of its cone: dvx = -+ mu dvy;
- ``+2`` / ``-2``: both at once, where sticking and slipping along +x / -x meet (dvy_j is then decided as well).

Together the five close the set of impacts that eq. 8 allows at one contact, so the best feasible drop lies in one of
them. ``DOUBLE`` is a landing on two contacts at once: their split is unknown, so all three jumps are free (slots dvy,
dvx, domega) and nothing is said about m/I.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.planar.shapes import Shape
from contact_estimation.identify.planar.stepping import GRAVITY, gravity

STICK, DOUBLE = 0, 3
MODES = (STICK, 1, -1, 2, -2)
SLOTS = 3
_FIRST_SLOT = 6  # after q^0 and v^0


class Impact(NamedTuple):
    """One impact: it changes v^k into v^{k+1} in step ``k``, in ``mode``, at contact ``contact`` of the shape."""

    k: int
    mode: int
    contact: int = 0


Impacts = Sequence[Impact]


@dataclass(frozen=True)
class DropProblem:
    """Noisy states of one free body."""

    shape: Shape  # outline
    friction: float  # Coulomb coefficient
    h: float  # step [s]
    q: Array  # configurations (N, 3)
    v: Array  # velocities (N, 3)
    sigma: Array  # noise (6,) of (q, v) per channel
    slope: float = 0.0  # of the ground [rad]
    shared_restitution: bool = False  # Newton's coefficient, unknown, is the same for every bounce

    def until(self, end: int) -> DropProblem:
        """Return the same drop, first ``end`` states only."""
        return replace(self, q=self.q[:end], v=self.v[:end])

    def weighted_rows(self, ks: Sequence[int] | Indices, axis: int) -> tuple[Array, Array]:
        """Rows (2 N, 2 + J) over [q0, v0, jumps in steps ``ks``] and values (2 N,) of an axis, over the noise."""
        steps, fall = np.arange(len(self.q)), gravity(self.slope)[axis]
        since = np.maximum(steps[:, None] - np.asarray(ks, int)[None, :], 0)
        weight_q, weight_v = 1.0 / self.sigma[axis], 1.0 / self.sigma[3 + axis]
        q_rows = np.hstack([np.ones((len(steps), 1)), self.h * steps[:, None], self.h * since])
        v_rows = np.hstack([np.zeros((len(steps), 1)), np.ones((len(steps), 1)), since > 0])
        q_values = self.q[:, axis] - self.h**2 * fall * steps * (steps + 1) / 2.0
        values = [q_values * weight_q, (self.v[:, axis] - self.h * fall * steps) * weight_v]
        return np.vstack([q_rows * weight_q, v_rows * weight_v]), np.concatenate(values)


class Compressed:
    """A window seen by a drop with impacts in given steps: R_a p_a - z_a per axis a, p = [q0, v0, jumps].

    Attributes:
        factor: R, three triangles (2 + J, 2 + J).
        target: z, three vectors (2 + J,).
        rest: the part of the chi-square that no such drop explains.
    """

    def __init__(self, problem: DropProblem, ks: Sequence[int]) -> None:
        self.factor: list[Array] = []
        self.target: list[Array] = []
        self.rest = 0.0
        for axis in range(3):
            rows, values = problem.weighted_rows(ks, axis)
            orthogonal, factor = np.linalg.qr(rows)
            self.factor.append(factor)
            self.target.append(orthogonal.T @ values)
            self.rest += float(values @ values - self.target[-1] @ self.target[-1])

    def linear(self) -> Array:
        """Unconstrained least squares: p (3, 2 + J)."""
        return np.array([np.linalg.lstsq(f, z, rcond=None)[0] for f, z in zip(self.factor, self.target)])


class JumpState(NamedTuple):
    """What the J impacts of a drop do; ``d_...`` are derivatives with respect to u."""

    jumps: Array  # of the velocity (J, 3)
    d_jumps: Array  # (J, 3, u)
    slip: Array  # tangential velocity of the contact after each impact (J,) [m/s]
    phi: Array  # distance of the contact before each impact (J,) [m]
    d_phi: Array  # (J, u)
    approach: Array  # normal velocity of the contact before each impact (J,) [m/s]
    bounce: Array  # normal velocities of the contact that restitution relates, after and before (2, J) [m/s]
    d_bounce: Array  # (2, J, u)


#: [m/s] How exactly bounces keep the shared restitution: far below any noise, far above rounding.
_RESTITUTION_STD = 1e-4


class DropLinearisation(NamedTuple):
    """A drop at unknowns u."""

    residual: Array  # (R,)
    jacobian: Array  # (R, u)
    state: JumpState  # of its impacts


def linearise(
    u: Array, problem: DropProblem, impacts: Impacts, compressed: Compressed, gaps: Array
) -> DropLinearisation:
    """Linearise a drop. Residuals are compressed data, contact distance of every impact, shared restitution.

    Args:
        u: unknowns (7 + 3J,).
        problem: the drop.
        impacts: its J impacts.
        compressed: the window for their steps.
        gaps: how far a step moves the contact (J,) [m]. The stepped impact happens at 0 <= phi <= gap, which enters as
            its mean and variance (the paper's slack of section 7.1).
    """
    eye, state = _identity(len(u)), drop_jumps(u, problem, impacts)
    rows, jacobian = [], []
    for axis in range(3):
        p = np.concatenate([[u[axis], u[3 + axis]], state.jumps[:, axis]])
        dp = np.vstack([eye[axis], eye[3 + axis], state.d_jumps[:, axis]])
        rows.append(compressed.factor[axis] @ p - compressed.target[axis])
        jacobian.append(compressed.factor[axis] @ dp)
    spread = gaps / np.sqrt(12.0)
    extra, d_extra = (state.phi - gaps / 2.0) / spread, state.d_phi / spread[:, None]
    rows, jacobian = [*rows, extra], [*jacobian, d_extra]
    if problem.shared_restitution:
        newton, d_newton = _restitution_rows(problem, impacts, state)
        rows, jacobian = [*rows, newton], [*jacobian, d_newton]
    return DropLinearisation(np.concatenate(rows), np.vstack(jacobian), state)


def restitution(problem: DropProblem, impacts: Impacts, state: JumpState) -> tuple[float, Array]:
    """Return Newton's coefficient that the bounces share and which impacts are bounces (J,).

    A landing on two contacts, or one slower than gravity makes it in four steps, is no bounce (eq. 8's time stepping).
    """
    after, before = state.bounce
    fast = before < -4.0 * GRAVITY * problem.h
    bounces = fast & np.array([impact.mode != DOUBLE for impact in impacts], bool)
    before = before * bounces
    return float(-(after @ before) / max(before @ before, 1e-12)), bounces


def _restitution_rows(problem: DropProblem, impacts: Impacts, state: JumpState) -> tuple[Array, Array]:
    """Rows (J,), (J, u) of v_n+ + e v_n- = 0 with e eliminated (variable projection, Kaufman's derivative)."""
    coefficient, bounces = restitution(problem, impacts, state)
    after, before = state.bounce * bounces
    d_after, d_before = state.d_bounce * bounces[:, None]
    slope = d_after + coefficient * d_before
    slope = slope - np.outer(before, before @ slope) / max(before @ before, 1e-12)
    return (after + coefficient * before) / _RESTITUTION_STD, slope / _RESTITUTION_STD


def drop_jumps(u: Array, problem: DropProblem, impacts: Impacts) -> JumpState:
    """Follow the impacts in order of time."""
    count, size, h = len(impacts), len(u), problem.h
    g, eye = gravity(problem.slope), _identity(size)
    jumps, d_jumps = np.zeros((count, 3)), np.zeros((count, 3, size))
    slip, phi, d_phi, approach = np.zeros(count), np.zeros(count), np.zeros((count, size)), np.zeros(count)
    bounce, d_bounce = np.zeros((2, count)), np.zeros((2, count, size))
    start, d_start, rate, d_rate, last = u[:3], eye[:3], u[3:6], eye[3:6], 0  # without gravity, at step `last`
    for j, impact in enumerate(impacts):
        lag, last = h * (impact.k - last), impact.k
        start, d_start = start + lag * rate, d_start + lag * d_rate
        q, dq = start + h * h * g * impact.k * (impact.k + 1) / 2.0, d_start
        v, dv = rate + h * impact.k * g, d_rate
        rx, ry, rx_rate, ry_rate = problem.shape.lever(float(q[2]), impact.contact)
        drx, dry = rx_rate * dq[2], ry_rate * dq[2]
        before, d_before = v + h * g, dv
        phi[j], d_phi[j] = q[1] + ry, dq[1] + dry
        approach[j] = before[1] + rx * before[2]
        if impact.mode == DOUBLE:
            slots = _FIRST_SLOT + SLOTS * j + np.array([1, 0, 2])
            jumps[j], d_jumps[j] = u[slots], eye[slots]
        else:
            slide = before[0] - ry * before[2], d_before[0] - ry * d_before[2] - dry * before[2]
            jumps[j], d_jumps[j] = _jump(u, j, impact.mode, problem.friction, ((rx, drx), (ry, dry)), slide)
        rate, d_rate = rate + jumps[j], d_rate + d_jumps[j]
        after = before + jumps[j]
        slip[j] = after[0] - ry * after[2]
        bounce[:, j] = after[1] + rx * after[2], v[1] + rx * v[2]
        d_bounce[0, j] = dv[1] + d_jumps[j, 1] + drx * after[2] + rx * (dv[2] + d_jumps[j, 2])
        d_bounce[1, j] = dv[1] + drx * v[2] + rx * dv[2]
    return JumpState(jumps, d_jumps, slip, phi, d_phi, approach, bounce, d_bounce)


def _jump(
    u: Array,
    j: int,
    mode: int,
    friction: float,
    lever: tuple[tuple[float, Array], tuple[float, Array]],
    slide: tuple[float, Array],
) -> tuple[Array, Array]:
    """Jump (3,) of impact ``j`` and its derivative; lever and the slip before it come with derivatives."""
    size, ratio, jy = len(u), u[-1], u[_FIRST_SLOT + SLOTS * j]
    (rx, drx), (ry, dry), (slip, d_slip) = *lever, slide
    d_ratio, djy = _identity(size)[size - 1], _identity(size)[_FIRST_SLOT + SLOTS * j]
    compliance, d_compliance = 1.0 + ratio * ry * ry, d_ratio * ry * ry + 2.0 * ratio * ry * dry
    cross, d_cross = ratio * rx * ry, d_ratio * rx * ry + ratio * (drx * ry + rx * dry)
    if mode == STICK:
        jx = (cross * jy - slip) / compliance
        djx = (d_cross * jy + cross * djy - d_slip - jx * d_compliance) / compliance
    else:
        edge = np.sign(mode) * friction
        if abs(mode) == 2:
            corner = edge * compliance + cross
            corner = np.copysign(max(abs(corner), 1e-6), corner)  # where both edges meet at once, jy is not defined
            jy = slip / corner
            djy = (d_slip - jy * (edge * d_compliance + d_cross)) / corner
        jx, djx = -edge * jy, -edge * djy
    arm, d_arm = rx * jy - ry * jx, drx * jy + rx * djy - dry * jx - ry * djx
    return np.array([jx, jy, ratio * arm]), np.stack([djx, djy, d_ratio * arm + ratio * d_arm])


def replay(u: Array, problem: DropProblem, impacts: Impacts, jumps: Array) -> tuple[Array, Array]:
    """States q, v (N, 3) of the fitted drop."""
    steps, g = np.arange(len(problem.q))[:, None], gravity(problem.slope)
    q = u[:3] + problem.h * steps * u[3:6] + problem.h**2 * g * steps * (steps + 1) / 2.0
    v = u[3:6] + problem.h * steps * g
    for impact, jump in zip(impacts, jumps):
        since = np.maximum(steps - impact.k, 0)
        q, v = q + problem.h * since * jump, v + (since > 0) * jump
    return q, v


@lru_cache
def _identity(size: int) -> Array:
    return np.eye(size)
