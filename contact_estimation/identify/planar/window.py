"""Base inertial parameters and all contact impulses of a window of states, modes unknown (paper 5, eq. 17-18, 26, 32).

The equation of motion of a step is linear in the parameters theta and in the impulses c:

    Y(q^k, v^k, v^{k+1}) theta = h f_ext + J_c(q^k)^T c.

The motion sides of the complementarity conditions (distance, slip velocity) are measured. Within a slack for noise
(section 7.1) they decide the set of forces of each contact: none, one edge of the friction cone, or the whole cone.
Those sets are convex, so the rest of eq. 18 is a bounded least-squares problem. Its solution is global for the given
slack. scipy's ``nnls`` finds it, or ``lsq_linear`` if theta has other bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import lsq_linear, nnls

from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.identifiability import Identifiability, analyse
from contact_estimation.identify.planar.shapes import Shape, contact_rows


class Step(NamedTuple):
    """One step of eq. 18 with c contacts; leading axes hold several."""

    y: Array  # regressor (n, r)
    known: Array  # impulse of known forces (n,) = h f_ext
    normal: Array  # rows J_n (c, n)
    tangent: Array  # rows J_t (c, n)
    gap: Array  # phi^k + h J_n v^k (c,) [m]
    slip: Array  # J_t v^{k+1} (c,) [m/s]
    friction: Array  # Coulomb coefficients (c,)

    def at(self, index: int | tuple[slice, int]) -> Step:
        """Return the steps ``index`` of the leading axes."""
        return Step(*(part[index] for part in self))


class Slack(NamedTuple):
    """How far noise may push a measured distance [m] and slip velocity [m/s] off their constraint (section 7.1)."""

    distance: float = 1e-6
    slip: float = 1e-6


_EXACT = Slack()


class WindowEstimate(NamedTuple):
    """Result of :func:`identify_window`."""

    theta: Array  # parameters (r,)
    normal: Array  # impulses (N, c) [N s]
    tangent: Array  # impulses (N, c) [N s], signed along J_t
    residual: Array  # of the equation of motion (N, n)
    identifiability: Identifiability  # of theta
    # "global" (the convex problem is solved to optimality), "undetermined" (the window does not determine a
    # parameter) or "failed"
    status: str
    reason: str = ""  # why it is not "global"


class Column(NamedTuple):
    """One cone edge (+1 along +J_t, -1 along -J_t) of a contact that may bear force in a step."""

    step: int
    contact: int
    edge: int

    def force_at(self, step: Step) -> Array:
        """Generalised force (..., n) of a unit normal impulse."""
        c = self.contact
        friction = self.edge * step.friction[..., c, None]
        return np.asarray(step.normal[..., c, :] + friction * step.tangent[..., c, :])


def identify_window(
    steps: list[Step],
    slack: Slack = _EXACT,
    known: dict[int, float] | None = None,
    bounds: tuple[ArrayLike, ArrayLike] = (0.0, np.inf),
    weight: ArrayLike = 1.0,
) -> WindowEstimate:
    """Solve eq. 18 over ``steps``.

    Args:
        steps: one per sample interval.
        slack: see :class:`Slack`.
        known: parameters given beforehand, index -> value. Without external forces eq. 18 is homogeneous and one must
            be given: impulses and the others then follow as ratios to it.
        bounds: (lower, upper) of theta, numbers or (r,).
        weight: of the rows, number or (n,), e.g. 1 / noise of the momenta.

    Raises:
        ConfigError: no steps, or an index in ``known`` that does not exist.
        IdentificationError: no external force and nothing given, or values that are not finite.
    """
    if not steps:
        raise ConfigError("identify_window: no steps given")
    known, (rows, r) = dict(known or {}), steps[0].y.shape
    if any(not 0 <= i < r for i in known):
        raise ConfigError(f"identify_window: known names parameters {sorted(known)}, there are {r} (0 to {r - 1})")
    if not known and not any(step.known.any() for step in steps):
        raise IdentificationError(
            "no external force acts in the window and no parameter is given: only ratios are "
            "determined (eq. 18 is homogeneous); give one in known, such as the mass"
        )
    free = [i for i in range(r) if i not in known]
    row_weight, columns = np.broadcast_to(np.asarray(weight, float), (rows,)), force_columns(steps, slack)
    matrix, target = _stack(steps, columns, known, free, row_weight)
    if not (np.isfinite(matrix).all() and np.isfinite(target).all()):
        raise IdentificationError("the window holds values that are not finite")
    lower, upper = (np.broadcast_to(np.asarray(bound, float), (r,))[free] for bound in bounds)
    solution, optimal = _solve(matrix, target, lower, upper)
    identifiability = analyse(matrix[:, : len(free)], matrix[:, len(free) :])
    theta = np.array([known.get(i, np.nan) for i in range(r)])
    theta[free] = solution[: len(free)]
    normal, tangent = np.zeros((2, len(steps), len(steps[0].gap)))
    for (k, c, edge), value in zip(columns, solution[len(free) :]):
        normal[k, c] += value
        tangent[k, c] += edge * steps[k].friction[c] * value
    residual = ((matrix @ solution - target).reshape(len(steps), rows)) / row_weight
    status, reason = ("global", "") if optimal else ("failed", "the least-squares solver did not reach optimality")
    if optimal and not all(identifiability.determined):
        names = [i for i, determined in zip(free, identifiability.determined) if not determined]
        status, reason = "undetermined", f"the window does not determine parameters {names}: excite them or give one"
    return WindowEstimate(theta, normal, tangent, residual, identifiability, status, reason)


def _stack(
    steps: list[Step], columns: list[Column], known: dict[int, float], free: list[int], weight: Array
) -> tuple[Array, Array]:
    """Weighted rows of all steps: matrix (N n, free + columns) and target (N n,)."""
    n = len(weight)
    matrix, target = np.zeros((n * len(steps), len(free) + len(columns))), np.zeros(n * len(steps))
    for k, step in enumerate(steps):
        block = slice(k * n, (k + 1) * n)
        matrix[block, : len(free)] = weight[:, None] * step.y[:, free]
        target[block] = weight * (step.known - sum(step.y[:, i] * value for i, value in known.items()))
    for j, column in enumerate(columns, start=len(free)):
        matrix[column.step * n : (column.step + 1) * n, j] = -weight * column.force_at(steps[column.step])
    return matrix, target


def force_columns(steps: list[Step], slack: Slack) -> list[Column]:
    """Return every cone edge that may bear force."""
    columns = []
    for k, step in enumerate(steps):
        for c in np.flatnonzero(step.gap <= slack.distance).tolist():
            edges: tuple[int, ...] = (1, -1) if abs(step.slip[c]) <= slack.slip else (-int(np.sign(step.slip[c])),)
            edges = (0,) if step.friction[c] == 0.0 else edges
            columns += [Column(k, c, edge) for edge in edges]
    return columns


def _solve(matrix: Array, target: Array, lower: Array, upper: Array) -> tuple[Array, bool]:
    """Bounded least squares with unit columns; theta within its bounds, cone edges not negative; whether optimal."""
    scale, count, free = np.maximum(np.linalg.norm(matrix, axis=0), 1e-12), matrix.shape[1], len(lower)
    if not lower.any() and np.isinf(upper).all():
        try:
            return nnls(matrix / scale, target, maxiter=20 * count)[0] / scale, True
        except RuntimeError:
            return np.full(count, np.nan), False
    low = np.concatenate([lower, np.zeros(count - free)]) * scale
    high = np.concatenate([upper * scale[:free], np.full(count - free, np.inf)])
    result = lsq_linear(matrix / scale, target, bounds=(low, high), method="bvls", tol=1e-12, max_iter=20 * count)
    return result.x / scale, bool(result.status > 0)


def body_step(
    shape: Shape, states: tuple[Array, Array, Array], h: float, friction: float, gravity: Array, external: Array
) -> Step:
    """Make a step of a single body (eq. 26, 32) with theta = (m, I).

    Args:
        shape: outline.
        states: q^k, v^k and v^{k+1} (..., 3).
        h: step [s].
        friction: Coulomb coefficient.
        gravity: free acceleration (3,).
        external: known force (..., 3) [N, N, Nm].
    """
    (q, v, after), fall = states, h * np.asarray(gravity)
    phi, normal, tangent = contact_rows(shape, q)
    change, before = after - v - fall, v + fall
    y = np.zeros((*change.shape, 2))
    y[..., :2, 0], y[..., 2, 1] = change[..., :2], change[..., 2]
    gap, slip = phi + (h * normal @ before[..., None])[..., 0], (tangent @ after[..., None])[..., 0]
    known = np.broadcast_to(h * external, change.shape)
    return Step(y, known, normal, tangent, gap, slip, np.full(phi.shape, friction))
