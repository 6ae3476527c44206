"""Base inertial parameters and all contact impulses of a window of states, modes unknown (paper 5, eq. 17-18, 26, 32).

The equation of motion of a step is linear in the parameters theta and in the impulses c:

    Y(q^k, v^k, v^{k+1}) theta = h f_ext + J_c(q^k)^T c.

The motion sides of the complementarity conditions (distance, slip velocity) are measured, so within a slack for noise
(section 7.1) they decide which forces each contact may bear: none, one edge of the friction cone, or the whole cone.
Those sets are convex, so what remains of eq. 18 is a bounded least-squares problem: its answer is global for the
given slack, and a maintained solver (scipy's ``nnls``, or ``lsq_linear`` where theta has other bounds) finds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import lsq_linear, nnls

from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.identify.planar.identifiability import Identifiability, analyse


@dataclass(frozen=True)
class Step:
    """One step: regressor ``y`` (n, r); impulse of known forces ``known`` (n,) = h f_ext; contacts ``normal``,
    ``tangent`` (c, n), ``gap`` (c,) = phi^k + h J_n v^k [m], ``slip`` (c,) = J_t v^{k+1} [m/s], ``friction`` (c,)."""

    y: np.ndarray
    known: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray
    gap: np.ndarray
    slip: np.ndarray
    friction: np.ndarray


@dataclass(frozen=True)
class Slack:
    """How far noise may push a measured ``distance`` [m] and a ``slip`` velocity [m/s] off their constraint (section
    7.1)."""

    distance: float = 1e-6
    slip: float = 1e-6


@dataclass(frozen=True)
class WindowEstimate:
    """Parameters ``theta`` (r,), impulses ``normal`` (N, c) and ``tangent`` (N, c) (signed along J_t) [N s];
    ``residual`` (N, n) of the equation of motion; ``identifiability`` of theta; ``status`` is "global" (the bounded
    least-squares problem is convex and solved to optimality), "undetermined" (a parameter or impulse is not
    determined by the window) or "failed"."""

    theta: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray
    residual: np.ndarray
    identifiability: Identifiability
    status: str
    reason: str = field(default="")


def identify_window(steps: list[Step], slack: Slack = Slack(), known: dict[int, float] | None = None,
                    lower=None, upper=None, weight=None) -> WindowEstimate:
    """Solve eq. 18 over ``steps``.

    Args:
        slack: see :class:`Slack`. known: parameters given beforehand, index -> value. Without external forces eq. 18 is
            homogeneous and one parameter must be given: impulses and the others then follow as ratios to it.
        lower, upper: bounds (r,) of theta, default 0 and infinity. weight: (n,) of the rows, e.g. 1 / noise of the
            momenta.

    Raises:
        ConfigError: no steps, or an index in ``known`` that does not exist.
        IdentificationError: no external force and nothing given, or values that are not finite.
    """
    if not steps:
        raise ConfigError("identify_window: no steps given")
    known = dict(known or {})
    rows, r = steps[0].y.shape
    if any(not 0 <= i < r for i in known):
        raise ConfigError(f"identify_window: known names parameters {sorted(known)}, there are {r} (0 to {r - 1})")
    if not known and not any(step.known.any() for step in steps):
        raise IdentificationError("no external force acts in the window and no parameter is given: only ratios are "
                                  "determined (eq. 18 is homogeneous); give one in known, such as the mass")
    free = [i for i in range(r) if i not in known]
    weight = np.ones(rows) if weight is None else np.asarray(weight, float)
    columns = _force_columns(steps, slack)
    matrix = np.zeros((rows * len(steps), len(free) + len(columns)))
    target = np.zeros(rows * len(steps))
    for k, step in enumerate(steps):
        block = slice(k * rows, (k + 1) * rows)
        matrix[block, :len(free)] = weight[:, None] * step.y[:, free]
        target[block] = weight * (step.known - sum(step.y[:, i] * value for i, value in known.items()))
    for j, (k, _, _, column) in enumerate(columns, start=len(free)):
        matrix[k * rows:(k + 1) * rows, j] = -weight * column
    if not (np.isfinite(matrix).all() and np.isfinite(target).all()):
        raise IdentificationError("the window holds values that are not finite")
    solution, optimal = _solve(matrix, target, len(free), _bound(lower, 0.0, r)[free], _bound(upper, np.inf, r)[free])
    identifiability = analyse(matrix[:, :len(free)], matrix[:, len(free):])
    theta = np.array([known.get(i, np.nan) for i in range(r)])
    theta[free] = solution[:len(free)]
    normal, tangent = (np.zeros((len(steps), len(steps[0].gap))) for _ in range(2))
    for (k, c, edge, _), value in zip(columns, solution[len(free):]):
        normal[k, c] += value
        tangent[k, c] += edge * steps[k].friction[c] * value
    residual = ((matrix @ solution - target).reshape(len(steps), rows)) / weight
    status, reason = ("global", "") if optimal else ("failed", "the least-squares solver did not reach optimality")
    if optimal and not all(identifiability.determined):
        names = [free[i] for i, known_well in enumerate(identifiability.determined) if not known_well]
        status, reason = "undetermined", f"the window does not determine parameters {names}: excite them or give one"
    return WindowEstimate(theta, normal, tangent, residual, identifiability, status, reason)


def _force_columns(steps, slack):
    """(step, contact, edge, generalised force) of every cone edge that may bear force: edge +1 along +J_t, -1 along
    -J_t."""
    columns = []
    for k, step in enumerate(steps):
        for c in np.flatnonzero(step.gap <= slack.distance):
            edges = (1, -1) if abs(step.slip[c]) <= slack.slip else (-int(np.sign(step.slip[c])),)
            if step.friction[c] == 0.0:
                edges = (0,)
            columns += [(k, int(c), edge, step.normal[c] + edge * step.friction[c] * step.tangent[c]) for edge in edges]
    return columns


def _bound(value, default, size):
    return np.full(size, default) if value is None else np.asarray(value, float)


def _solve(matrix, target, free, lower, upper):
    """Bounded least squares with unit columns; theta within its bounds, cone edges not negative."""
    scale = np.maximum(np.linalg.norm(matrix, axis=0), 1e-12)
    count = matrix.shape[1]
    if not lower.any() and np.isinf(upper).all():
        try:
            return nnls(matrix / scale, target, maxiter=20 * count)[0] / scale, True
        except RuntimeError:
            return np.full(count, np.nan), False
    low = np.concatenate([lower, np.zeros(count - free)]) * scale
    high = np.concatenate([upper * scale[:free], np.full(count - free, np.inf)])
    result = lsq_linear(matrix / scale, target, bounds=(low, high), method="bvls", tol=1e-12, max_iter=20 * count)
    return result.x / scale, result.status > 0


def body_steps(shape, q, v, h: float, friction: float, gravity, external=None) -> list[Step]:
    """Steps of a single body (eq. 26, 32): theta = (m, I); ``gravity`` (3,) its free acceleration, ``external`` (N,
    3) [N, Nm]."""
    from contact_estimation.identify.planar.shapes import contact_rows

    steps = []
    for k in range(len(q) - 1):
        phi, normal, tangent = contact_rows(shape, q[k])
        change = v[k + 1] - v[k] - h * np.asarray(gravity)
        y = np.array([[change[0], 0.0], [change[1], 0.0], [0.0, change[2]]])
        known = np.zeros(3) if external is None else h * np.asarray(external[k])
        before = v[k] + h * np.asarray(gravity)
        steps.append(Step(y, known, normal, tangent, phi + h * normal @ before, tangent @ v[k + 1],
                          np.full(len(phi), friction)))
    return steps
