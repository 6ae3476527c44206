"""A drop as few unknowns: free flight joined by impacts that obey the complementarity conditions (paper 5, eq. 8 and
26).

Between impacts the stepped motion is linear in (q^0, v^0) and in the velocity jumps, so a window of N noisy states is
compressed once into a small triangular system per axis; only the rotation couples through m/I and the contact geometry.
Unknowns u = [q^0 (3), v^0 (3), three slots per impact, m/I]; an impact is a step index and a mode. The first slot is
the normal jump dvy_j; the mode decides dvx_j:

- ``STICK``: lambda = 0, the contact point's tangential velocity after the impact is 0;
- ``+1`` / ``-1``: slip along +x / -x, friction on the edge of its cone: dvx = -+ mu dvy;
- ``+2`` / ``-2``: both at once, the corner where sticking and slipping along +x / -x meet (dvy_j is then decided as
  well).

Together the five close the set of impacts that eq. 8 allows at one contact, so the best feasible drop lies in one of
them. ``DOUBLE`` is a landing on two contacts at once: their split is unknown, so all three jumps are free (slots dvy,
dvx, domega) and nothing is said about m/I.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from contact_estimation.identify.planar.shapes import Shape
from contact_estimation.identify.planar.stepping import gravity

STICK = 0
MODES = (STICK, 1, -1, 2, -2)
DOUBLE = 3
SLOTS = 3


@dataclass(frozen=True)
class Impact:
    """One impact: it acts in step ``k`` (changes v^k into v^{k+1}), in ``mode``, at contact ``contact`` of the
    shape."""

    k: int
    mode: int
    contact: int = 0


@dataclass(frozen=True)
class DropProblem:
    """Noisy states of one free body: ``q``, ``v`` (N, 3), step ``h`` [s], noise ``sigma`` (6,) of (q, v) per
    channel."""

    shape: Shape
    friction: float
    h: float
    q: np.ndarray
    v: np.ndarray
    sigma: np.ndarray
    slope: float = 0.0

    def until(self, end: int) -> "DropProblem":
        """The same drop, first ``end`` states only."""
        return replace(self, q=self.q[:end], v=self.v[:end])


class Compressed:
    """The window of ``problem`` seen by a drop with impacts in steps ``ks``: R_a p_a - z_a per axis, p = [q0, v0,
    jumps]."""

    def __init__(self, problem: DropProblem, ks):
        steps = np.arange(len(problem.q))
        g = gravity(problem.slope)
        since = np.maximum(steps[:, None] - np.asarray(ks, int)[None, :], 0)
        q_rows = np.hstack([np.ones((len(steps), 1)), problem.h * steps[:, None], problem.h * since])
        v_rows = np.hstack([np.zeros((len(steps), 1)), np.ones((len(steps), 1)), since > 0])
        self.factor, self.target, self.rest = [], [], 0.0
        for axis in range(3):
            weights = 1.0 / problem.sigma[axis], 1.0 / problem.sigma[3 + axis]
            rows = np.vstack([q_rows * weights[0], v_rows * weights[1]])
            fall = problem.h**2 * g[axis] * steps * (steps + 1) / 2.0, problem.h * g[axis] * steps
            values = np.concatenate([(problem.q[:, axis] - fall[0]) * weights[0],
                                     (problem.v[:, axis] - fall[1]) * weights[1]])
            orthogonal, factor = np.linalg.qr(rows)
            self.factor.append(factor)
            self.target.append(orthogonal.T @ values)
            self.rest += float(values @ values - self.target[-1] @ self.target[-1])

    def linear(self) -> np.ndarray:
        """Unconstrained least squares: p (3, 2 + J)."""
        return np.array([np.linalg.lstsq(f, z, rcond=None)[0] for f, z in zip(self.factor, self.target)])


def residuals(u, problem: DropProblem, impacts, compressed: Compressed, gaps):
    """Residual vector, Jacobian and jumps at ``u`` (7 + 3J): compressed data, then the contact distance of every
    impact.

    ``gaps`` (J,) [m] is how far a step moves the contact: the stepped impact happens at 0 <= phi <= gap, which enters
    as its mean and variance (the paper's slack of section 7.1).
    """
    size = len(u)
    state = drop_jumps(u, problem, impacts)
    rows, jacobian = [], []
    for axis in range(3):
        p = np.concatenate([[u[axis], u[3 + axis]], state.jumps[:, axis]])
        dp = np.vstack([_unit(axis, size), _unit(3 + axis, size), state.d_jumps[:, axis]])
        rows.append(compressed.factor[axis] @ p - compressed.target[axis])
        jacobian.append(compressed.factor[axis] @ dp)
    spread = gaps / np.sqrt(12.0)
    extra, d_extra = (state.phi - gaps / 2.0) / spread, state.d_phi / spread[:, None]
    return np.concatenate([*rows, extra]), np.vstack([*jacobian, d_extra]), state


@dataclass
class JumpState:
    """What the impacts of a drop do: velocity ``jumps`` (J, 3), slip velocity after, contact distance and normal
    velocity before each [SI]; ``d_...`` are derivatives with respect to u."""

    jumps: np.ndarray
    d_jumps: np.ndarray
    slip: np.ndarray
    phi: np.ndarray
    d_phi: np.ndarray
    approach: np.ndarray


def drop_jumps(u, problem: DropProblem, impacts) -> JumpState:
    """Follow the impacts in order of time."""
    count, size, h = len(impacts), len(u), problem.h
    g, eye = gravity(problem.slope), _identity(size)
    jumps, d_jumps = np.zeros((count, 3)), np.zeros((count, 3, size))
    slip, phi, d_phi, approach = np.zeros(count), np.zeros(count), np.zeros((count, size)), np.zeros(count)
    for j, impact in enumerate(impacts):
        fall = h * h * g * impact.k * (impact.k + 1) / 2.0
        q, dq = u[:3] + h * impact.k * u[3:6] + fall, eye[:3] + h * impact.k * eye[3:6]
        v, dv = u[3:6] + h * impact.k * g, eye[3:6]
        for i in range(j):
            lag = h * (impact.k - impacts[i].k)
            q, dq, v, dv = q + lag * jumps[i], dq + lag * d_jumps[i], v + jumps[i], dv + d_jumps[i]
        rx, ry, rx_rate, ry_rate = problem.shape.lever(float(q[2]), impact.contact)
        drx, dry = rx_rate * dq[2], ry_rate * dq[2]
        before, d_before = v + h * g, dv
        phi[j], d_phi[j] = q[1] + ry, dq[1] + dry
        approach[j] = before[1] + rx * before[2]
        slide = before[0] - ry * before[2], d_before[0] - ry * d_before[2] - dry * before[2]
        if impact.mode == DOUBLE:
            slots = 6 + SLOTS * j + np.array([1, 0, 2])
            jumps[j], d_jumps[j] = u[slots], eye[slots]
        else:
            jumps[j], d_jumps[j] = _jump(u, j, impact.mode, problem.friction, (rx, drx), (ry, dry), slide)
        after = before + jumps[j]
        slip[j] = after[0] - ry * after[2]
    return JumpState(jumps, d_jumps, slip, phi, d_phi, approach)


def _jump(u, j, mode, friction, rx, ry, slide):
    """Jump (3,) and its derivative (3, size) of impact ``j``; ``rx``, ``ry`` and the slip before it come with
    derivatives."""
    size, ratio = len(u), u[-1]
    (rx, drx), (ry, dry), (slide, d_slide) = rx, ry, slide
    d_ratio, djy = _unit(size - 1, size), _unit(6 + SLOTS * j, size)
    jy = u[6 + SLOTS * j]
    compliance, d_compliance = 1.0 + ratio * ry * ry, d_ratio * ry * ry + 2.0 * ratio * ry * dry
    cross, d_cross = ratio * rx * ry, d_ratio * rx * ry + ratio * (drx * ry + rx * dry)
    if mode == STICK:
        jx = (cross * jy - slide) / compliance
        djx = (d_cross * jy + cross * djy - d_slide - jx * d_compliance) / compliance
    else:
        edge = np.sign(mode) * friction
        if abs(mode) == 2:
            corner = edge * compliance + cross
            corner = np.copysign(max(abs(corner), 1e-6), corner)
            jy = slide / corner
            djy = (d_slide - jy * (edge * d_compliance + d_cross)) / corner
        jx, djx = -edge * jy, -edge * djy
    arm, d_arm = rx * jy - ry * jx, drx * jy + rx * djy - dry * jx - ry * djx
    return np.array([jx, jy, ratio * arm]), np.stack([djx, djy, d_ratio * arm + ratio * d_arm])


def replay(u, problem: DropProblem, impacts, jumps) -> tuple[np.ndarray, np.ndarray]:
    """States q, v (N, 3) of the fitted drop."""
    steps = np.arange(len(problem.q))[:, None]
    g = gravity(problem.slope)
    q = u[:3] + problem.h * steps * u[3:6] + problem.h**2 * g * steps * (steps + 1) / 2.0
    v = u[3:6] + problem.h * steps * g
    for impact, jump in zip(impacts, jumps):
        since = np.maximum(steps - impact.k, 0)
        q, v = q + problem.h * since * jump, v + (since > 0) * jump
    return q, v


@lru_cache
def _identity(size):
    return np.eye(size)


def _unit(index, size):
    return _identity(size)[index]
