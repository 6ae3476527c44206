"""Corrections after a Gauss-Newton step, at the few times where contact forces have corners.

Close to the solution nearly all of the remaining cost sits at a handful of times where a contact opens or closes, or
sticks or slips: there the forces turned into another branch than the one that was differentiated, while everywhere
else the step did what it promised. Differentiating those times alone and solving again costs a fifth of an iteration
and settles a corner that otherwise takes one iteration, or several.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.batch import line_search
from contact_estimation.identify.batch.arrow import Factorisation, bounded_newton

#: Share of the times that may be differentiated anew, and the share of the mismatch they have to explain.
_FEW, _MOST = 0.1, 0.95
_CORRECTIONS = 6


def correct(problem, here, before, after, damping, options):
    """Improve the step from ``before`` to ``after``, each (q, p), linearised at ``before`` as ``here``.

    Corrections end where the model is wrong at many times, where it promises nothing, and where none decreases the
    cost. ``here`` is used up.

    Returns:
        (q, p, number of corrections).
    """
    parameters, (q, p), count = problem.scene.parameters, after, 0
    free_p = here.free_p
    last_q, last_p = before
    while count < _CORRECTIONS:
        residuals = problem.residuals(q, p)
        cost = problem.cost_of(residuals, p)
        mismatch = here.mismatch(residuals, problem.coordinates.difference(last_q, q), p - last_p)
        order = np.argsort(-mismatch)
        share = np.cumsum(mismatch[order])
        if not share[-1] > options.tolerance * cost:
            break
        times = np.sort(order[:1 + int(np.searchsorted(share, _MOST * share[-1]))])
        if len(times) > _FEW * len(q):
            break
        problem.renew(here, q, p, times, residuals)
        dq, dp = direction(here.arrow, damping, p, parameters, options, True, free_p)
        slope = float(here.arrow.gradient_q @ dq) + float(here.arrow.gradient_p @ dp)
        if -0.5 * slope < options.tolerance * cost:
            break
        moved, full_p = dq.reshape(len(q), -1), dp if free_p else np.zeros(len(p))

        def point(length, q=q, p=p, moved=moved, full_p=full_p):
            inside = np.clip(p + length * full_p, parameters.lower, parameters.upper)
            return problem.coordinates.add(q, length * moved), inside

        step = line_search.search(lambda length: problem.cost(*point(length)), cost, slope)
        if step is None:
            break
        last_q, last_p = q, p
        (q, p), count = point(step.length), count + 1
    return q, p, count


def direction(arrow, damping, p, parameters, options, free_q, free_p):
    """Damped Newton step (dq (n nv,), dp (c,)) inside the parameters' bounds and largest steps."""
    if free_p:
        lower = np.minimum(np.maximum(parameters.lower - p, -options.parameter_step), -1e-12)
        upper = np.maximum(np.minimum(parameters.upper - p, options.parameter_step), 1e-12)
    else:
        lower = upper = np.zeros(0)
    if not free_q:
        hessian = arrow.corner + damping * np.eye(len(arrow.corner))
        return np.zeros(len(arrow.gradient_q)), bounded_newton(hessian, arrow.gradient_p, lower, upper)
    return Factorisation(arrow, damping, damping).step(lower, upper)
