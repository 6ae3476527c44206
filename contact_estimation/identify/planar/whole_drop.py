"""Fit a whole drop by time stepping (paper 5, eq. 8): first state, m/I and one restitution; modes follow from them.

A search explains the first impacts only. The later ones, down to rest, are sensitive to m/I: each bounce magnifies what
an earlier one left open. From the estimate of the first impacts, Levenberg-Marquardt steps the drop to its end. The
result counts where it explains every sample as well as noise allows; modes that differ anywhere would not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.drop_fit import damped_step
from contact_estimation.identify.planar.drop_model import DropProblem
from contact_estimation.identify.planar.shapes import ratio_bounds
from contact_estimation.identify.planar.stepping import FallingBody, simulate

_DIFFERENCE = 1e-6  # of the derivatives, in units of the unknowns
_ITERATIONS, _TOLERANCE = 10, 0.1  # most steps of the fit; a step that lowers the chi-square by less ends it
_HARDEST = 1e3  # damping at which no step is left to try
_MISFIT = 5.0  # standard deviations of chi-square beyond which a drop is not explained


class WholeDrop(NamedTuple):
    """Fit of a whole drop.

    Attributes:
        m_over_i: m/I [1/m^2].
        std: its standard deviation.
    """

    m_over_i: float
    std: float


def fit_whole_drop(problem: DropProblem, q: Array, v: Array, m_over_i: float, restitution: float) -> WholeDrop | None:
    """Fit every sample of a drop.

    Args:
        problem: recorded states and their noise.
        q: first configuration (3,).
        v: first velocity (3,).
        m_over_i: first m/I [1/m^2].
        restitution: first coefficient of Newton's.

    Returns:
        The fit; None where it does not explain the recording.
    """
    u = np.array([*q, *v, m_over_i, restitution])
    r = _residuals(problem, u)
    damping, jacobian = 1e-3, np.zeros((r.size, u.size))
    for _ in range(_ITERATIONS):
        shifted = [_residuals(problem, u + step) for step in _DIFFERENCE * np.eye(u.size)]
        jacobian = np.stack([(each - r) / _DIFFERENCE for each in shifted], axis=-1)
        if not np.isfinite(jacobian).all():
            return None
        before = float(r @ r)
        while damping < _HARDEST:
            trial = u - damped_step(jacobian, r, damping)
            new = _residuals(problem, trial)
            if new @ new < before:
                u, r, damping = trial, new, 0.1 * damping
                break
            damping *= 10.0
        if before - r @ r < _TOLERANCE:
            break
    count = int(np.isfinite(problem.sigma).sum()) * len(problem.q)
    if not r @ r < count + _MISFIT * np.sqrt(2.0 * count):
        return None
    return WholeDrop(float(u[6]), float(np.sqrt(np.linalg.pinv(jacobian.T @ jacobian)[6, 6])))


def _residuals(problem: DropProblem, u: Array) -> Array:
    """Return q and v less the recorded ones over the noise (6 N,); infinite where ``u`` is no drop."""
    lower, upper = ratio_bounds(problem.shape)
    if not (lower <= u[6] <= upper and 0.0 <= u[7] <= 1.0):
        return np.full(problem.q.size * 2, np.inf)
    body = FallingBody(problem.shape, float(u[6]), 1.0, problem.friction, float(u[7]), problem.slope)
    try:
        run = simulate(body, u[:3], u[3:6], problem.h, len(problem.q) - 1)
    except IdentificationError:
        return np.full(problem.q.size * 2, np.inf)
    return np.asarray((np.hstack([run.q - problem.q, run.v - problem.v]) / problem.sigma).ravel())
