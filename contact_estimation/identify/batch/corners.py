"""Corrections after a Gauss-Newton step, at the few times where contact forces have corners.

Close to the solution nearly all of the remaining cost sits at a handful of times where a contact opens or closes, or
sticks or slips: there the forces turned into another branch than the one that was differentiated, while everywhere
else the step did what it promised. Differentiating those times alone and solving again costs a fifth of an iteration
and settles a corner that otherwise takes one iteration, or several.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.batch.step import NewtonStep

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
    (last_q, last_p), (q, p), count = before, after, 0
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
        step = NewtonStep(problem, q, p, here, damping, options)
        if -0.5 * step.slope < options.tolerance * cost:
            break
        found = step.search(cost)
        if found is None:
            break
        last_q, last_p = q, p
        (q, p), count = step.point(found.length), count + 1
    return q, p, count
