"""Corrections after a Gauss-Newton step, at the few times where the contact changes its state.

Close to the solution nearly all of the remaining cost lies at a few times where a contact opens, closes, sticks or
slips. There the step changed the branch of the force law, so the derivative was wrong. At all other times the step
achieved the predicted decrease. The correction differentiates those times alone and solves again. It costs a fifth of
an iteration and replaces one iteration or several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.linearisation import Linearisation
from contact_estimation.identify.batch.newton_step import NewtonStep

if TYPE_CHECKING:
    from contact_estimation.identify.batch.problem import Problem
    from contact_estimation.identify.batch.solver import Options

_FEW, _MOST = 0.1, 0.95  # share of the times differentiated anew at most; share of the mismatch they must explain
_CORRECTIONS = 6  # after one step, at most

Point = tuple[Array, Array]


def correct(
    problem: Problem, here: Linearisation, before: Point, after: Point, damping: float, options: Options
) -> tuple[Array, Array, int]:
    """Improve a step.

    Corrections end where the model is wrong at many times, where it promises nothing, and where none decreases the
    cost.

    Args:
        problem: whose cost is minimised.
        here: linearisation at ``before``; it is used up.
        before: (q, p) before the step.
        after: (q, p) after it.
        damping: mu.
        options: of the solver.

    Returns:
        (q, p, number of corrections).
    """
    (last_q, last_p), (q, p), count = before, after, 0
    while count < _CORRECTIONS:
        residuals = problem.residuals(q, p)
        cost = problem.cost_of(residuals, p)
        mismatch = here.mismatch(residuals, problem.coordinates.difference(last_q, q), p - last_p)
        order = np.argsort(-mismatch)
        share = np.cumsum(mismatch[order])
        if not share[-1] > options.tolerance * cost:
            break
        times = np.sort(order[: 1 + int(np.searchsorted(share, _MOST * share[-1]))])
        if len(times) > _FEW * len(q):
            break
        problem.renew(here, q, p, times, residuals)
        step = NewtonStep(problem, q, p, here, damping, options.parameter_step)
        if -0.5 * step.slope < options.tolerance * cost:
            break
        found = step.search(cost)
        if found is None:
            break
        last_q, last_p = q, p
        (q, p), count = step.point(found.length), count + 1
    return q, p, count
