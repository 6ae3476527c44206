"""The unknown trajectory: positions on a non-uniform time grid; velocities and accelerations are their differences.

Paper 3, section III: only positions q_1 ... q_n are unknown, v and a follow by finite differences, and differences of
quaternions are rotation vectors. A step of the optimiser lives in the tangent space (nv numbers per time), where
q <- q (+) d is MuJoCo's `mj_integratePos`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt

from contact_estimation.exceptions import IdentificationError, shape_error
from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.batch import rotations


class Coordinates:
    """Which numbers of qpos are plain and which are quaternions, and where they sit among the nv tangent numbers."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.nq, self.nv = model.nq, model.nv
        plain_q: list[int] = []
        plain_v: list[int] = []
        self.quaternions: list[tuple[int, int]] = []  # addresses in qpos and among the tangent numbers
        for kind, qadr, vadr in zip(model.jnt_type, model.jnt_qposadr, model.jnt_dofadr):
            if kind == mujoco.mjtJoint.mjJNT_FREE:
                plain_q += range(qadr, qadr + 3)
                plain_v += range(vadr, vadr + 3)
                self.quaternions.append((int(qadr) + 3, int(vadr) + 3))
            elif kind == mujoco.mjtJoint.mjJNT_BALL:
                self.quaternions.append((int(qadr), int(vadr)))
            else:
                plain_q.append(qadr)
                plain_v.append(vadr)
        self._plain_q, self._plain_v = np.array(plain_q, int), np.array(plain_v, int)

    def difference(self, before: Array, after: Array) -> Array:
        """Tangent vectors d (..., nv) with before (+) d = after, for positions (..., nq)."""
        out = np.empty((*before.shape[:-1], self.nv))
        out[..., self._plain_v] = after[..., self._plain_q] - before[..., self._plain_q]
        for q, v in self.quaternions:
            out[..., v : v + 3] = rotations.log(
                rotations.multiply(rotations.conjugate(before[..., q : q + 4]), after[..., q : q + 4])
            )
        return out

    def add(self, position: Array, step: Array) -> Array:
        """Position (+) step: (..., nq) moved by tangent vectors (..., nv); quaternions are renormalised."""
        out = np.empty_like(position)
        out[..., self._plain_q] = position[..., self._plain_q] + step[..., self._plain_v]
        for q, v in self.quaternions:
            turned = rotations.multiply(position[..., q : q + 4], rotations.exp(step[..., v : v + 3]))
            out[..., q : q + 4] = turned / np.linalg.norm(turned, axis=-1, keepdims=True)
        return out


class Stencil(NamedTuple):
    """Velocity v_i = vm D_i + vp D_i+1 and acceleration a_i = am D_i + ap D_i+1 from differences D_i = q_i (-) q_i-1.

    Arrays (n,), 1/s and 1/s^2. The first and last time have one neighbour: their velocity is one-sided, their
    acceleration is not defined (``interior`` is False there and the problem leaves out what depends on it).
    """

    vm: Array
    vp: Array
    am: Array
    ap: Array
    interior: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, t: Array, scheme: str = "central", breaks: Sequence[int] = ()) -> Stencil:
        """Weights for the times ``t`` (n,) [s].

        At an index in ``breaks`` another recording begins, which has no difference to the one before.

        ``backward`` is the paper's v_i = (q_i - q_i-1)/h, which lags half a step behind q_i and so biases damping
        against stiffness; ``central`` has the same three-point support (the same band) without the lag.

        Raises:
            IdentificationError: fewer than 3 times, not increasing, or an unknown scheme.
        """
        if len(breaks):
            parts = [cls.of(part, scheme) for part in np.split(np.asarray(t, float), breaks)]
            return cls(*(np.concatenate(each) for each in zip(*parts)))
        t = np.asarray(t, float)
        if t.ndim != 1 or len(t) < 3 or not np.all(np.diff(t) > 0):
            raise IdentificationError(
                f"a trajectory needs at least 3 strictly increasing times, given {t.shape} times"
                " that are not; sort them and remove duplicates"
            )
        if scheme not in ("central", "backward"):
            raise IdentificationError(f"velocity scheme '{scheme}' is not known; use 'central' or 'backward'")
        n = len(t)
        vm, vp, am, ap = np.zeros((4, n))
        h1, h2 = np.diff(t)[:-1], np.diff(t)[1:]
        inner = slice(1, n - 1)
        am[inner], ap[inner] = -2.0 / (h1 * (h1 + h2)), 2.0 / (h2 * (h1 + h2))
        if scheme == "central":
            vm[inner], vp[inner] = h2 / (h1 * (h1 + h2)), h1 / (h2 * (h1 + h2))
        else:
            vm[inner] = 1.0 / h1
        vp[0], vm[-1] = 1.0 / (t[1] - t[0]), 1.0 / (t[-1] - t[-2])
        interior = np.ones(n, bool)
        interior[[0, -1]] = False
        return cls(vm, vp, am, ap, interior)

    def at(self, times: Indices | slice) -> Stencil:
        """Take the weights of some times (an index or slice)."""
        return Stencil(self.vm[times], self.vp[times], self.am[times], self.ap[times], self.interior[times])


def motion(coordinates: Coordinates, stencil: Stencil, q: Array) -> tuple[Array, Array, Array]:
    """Differences D (n+1, nv; D_0 = D_n = 0), velocities and accelerations (n, nv) of positions q (n, nq)."""
    if q.shape != (len(stencil.vm), coordinates.nq):
        raise shape_error("motion", "q", q.shape, (len(stencil.vm), coordinates.nq))
    inner = coordinates.difference(q[:-1], q[1:])
    zero = np.zeros((1, coordinates.nv))
    differences = np.concatenate([zero, inner, zero])
    before, after = differences[:-1], differences[1:]
    velocity = stencil.vm[:, None] * before + stencil.vp[:, None] * after
    acceleration = stencil.am[:, None] * before + stencil.ap[:, None] * after
    return differences, velocity, acceleration


def chain(
    coordinates: Coordinates, stencil: Stencil, differences: tuple[Array, Array], by_q: Array, by_v: Array, by_a: Array
) -> Array:
    """Find derivatives (n, m, 3 nv) of per-time functions by the steps of q_i-1, q_i, q_i+1.

    Args:
        coordinates: of the model.
        stencil: of the times.
        differences: (n, nv) D_i and D_i+1 of :func:`motion`.
        by_q: derivatives at each time by position step (n, m, nv).
        by_v: by velocity.
        by_a: by acceleration.
    """
    (before, after), column = differences, (slice(None), None, None)
    by_before = stencil.vm[column] * by_v + stencil.am[column] * by_a
    by_after = stencil.vp[column] * by_v + stencil.ap[column] * by_a
    n, m, nv = by_q.shape
    out = np.empty((n, m, 3, nv))
    out[:, :, 0] = -by_before
    out[:, :, 1] = by_q + by_before - by_after
    out[:, :, 2] = by_after
    for _, v in coordinates.quaternions:
        part = slice(v, v + 3)
        right_before = rotations.right_jacobian_inverse(before[:, part])
        right_after = rotations.right_jacobian_inverse(after[:, part])
        left_before, left_after = right_before.swapaxes(-1, -2), right_after.swapaxes(-1, -2)
        out[:, :, 0, part] = -by_before[..., part] @ left_before
        out[:, :, 1, part] = by_q[..., part] + by_before[..., part] @ right_before - by_after[..., part] @ left_after
        out[:, :, 2, part] = by_after[..., part] @ right_after
    return out.reshape(n, m, 3 * nv)
