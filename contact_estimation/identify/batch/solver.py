"""Gauss-Newton with Levenberg-Marquardt damping and a Wolfe line search (paper 3, section IV).

Three modes: trajectory only, parameters only, both. The damping is the paper's H + mu I, with mu raised when a step
fails and lowered when it succeeds. The run ends with a sentence that says why.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.batch.arrow import Arrow
from contact_estimation.identify.batch.corners import correct
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.step import NewtonStep

_SHORT, _STALLED = 0.06, 2
#: A minimum may lie on a corner of the contact forces, where the model on either side promises a decrease that is not
#: there. Where steps give nothing and promise less than this share of the cost, the run is at such a minimum.
_CORNER = 0.005
MODES = ("both", "trajectory", "parameters")


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of a run.

    Attributes:
        mode: what is free: ``both``, ``trajectory`` or ``parameters``.
        max_iterations: iterations of Newton's method.
        tolerance: stop when the quadratic model promises less than this share of the cost.
        damping: first mu, per (rad or m)^2 of trajectory and per unit^2 of the parameter vector.
        parameter_step: largest change of an optimiser's parameter in one iteration (1.1: a factor of 3 for a
            logarithm).
    """

    mode: str = "both"
    max_iterations: int = 40
    tolerance: float = 1e-4
    damping: float = 1e-3
    parameter_step: float = 1.1

    def __post_init__(self):
        if self.mode not in MODES:
            raise IdentificationError(f"mode '{self.mode}' is not known; use one of {', '.join(MODES)}")


@dataclasses.dataclass(frozen=True)
class Iteration:
    """One line of the trace: cost after the iteration, promised decrease, step length, damping, parameters, seconds,
    and the corner corrections that followed the step."""

    cost: float
    promised: float
    length: float
    damping: float
    parameters: np.ndarray
    seconds: float
    corrections: int = 0


@dataclasses.dataclass
class Solution:
    """Where the solver stopped.

    Attributes:
        q: (n, nq) positions; p: (c,) optimiser's parameters; cost: final cost.
        start_cost: cost at the start.
        trace: one entry per iteration.
        arrow: derivatives at the solution (for intervals).
        converged, reason: whether a tolerance was met, and a sentence.
        stalled: stopped in a corner of the contact forces, where steps cannot shrink the cost though its model says so.
    """

    q: np.ndarray
    p: np.ndarray
    cost: float
    start_cost: float
    trace: list[Iteration]
    arrow: Arrow
    converged: bool
    reason: str
    stalled: bool = False


def solve(problem: Problem, q: np.ndarray, p: np.ndarray, options: Options = Options(), progress=None) -> Solution:
    """Minimise the problem's cost from (q, p).

    Args:
        progress: called with each :class:`Iteration`.

    Raises:
        IdentificationError: start outside the bounds, or a cost that is not finite there.
    """
    parameters = problem.scene.parameters
    free_q, free_p = options.mode != "parameters", options.mode != "trajectory" and len(parameters) > 0
    p = np.array(p, float)
    if p.shape != (len(parameters),) or np.any(p < parameters.lower - 1e-9) or np.any(p > parameters.upper + 1e-9):
        raise IdentificationError(f"start parameters {p} must be {len(parameters)} numbers inside their bounds")
    here = problem.linearise(q, p, free_q, free_p)
    start_cost, damping, trace, short = here.cost, options.damping, [], 0
    if not np.isfinite(start_cost):
        raise IdentificationError("the cost at the start is not finite: measurements or the start trajectory hold NaN")

    def ended(converged, reason, stalled=False):
        return Solution(q, p, here.cost, start_cost, trace, here.arrow, converged, reason, stalled)

    for _ in range(options.max_iterations):
        began = time.perf_counter()
        step, q_new, p_new, promised, damping = _iterate(problem, q, p, here, damping, options)
        if step is None and promised < options.tolerance * here.cost:
            return ended(True, f"the next step promises {promised / max(here.cost, 1e-300):.1e} of the cost, less than "
                               f"the tolerance {options.tolerance:.0e}")
        if step is None and promised < _CORNER * here.cost:
            return ended(True, _at_corner(promised, here.cost))
        if step is None:
            return ended(False, "no step decreases the cost, whatever the damping: a corner of the contact forces",
                         True)
        corrections = 0
        if free_q:
            q_new, p_new, corrections = correct(problem, here, (q, p), (q_new, p_new), damping, options)
        q, p = q_new, p_new
        here = None  # its derivatives make room for the next ones
        here = problem.linearise(q, p, free_q, free_p)
        trace.append(Iteration(here.cost, promised, step.length, damping, parameters.values(p),
                               time.perf_counter() - began, corrections))
        if progress is not None:
            progress(trace[-1])
        short = short + 1 if step.length < _SHORT else 0
        if short and not corrections and promised < _CORNER * here.cost:
            return ended(True, _at_corner(promised, here.cost))
        if short == _STALLED:
            return ended(False, f"stalled: {_STALLED} steps in a row shorter than {_SHORT}, a corner of the contact "
                                "forces", True)
        damping = max(damping / 10.0, 1e-12)
    return ended(False, f"the limit of {options.max_iterations} iterations was reached")


def _iterate(problem, q, p, here, damping, options):
    """One damped Newton step and line search; raises the damping until a step is accepted.

    Returns:
        (step, q, p, decrease that the first direction promised, damping) with step None where that is less than the
        tolerance, and where no damping gives an acceptable step.
    """
    promised = None
    for _ in range(12):
        step = NewtonStep(problem, q, p, here, damping, options)
        if promised is None:
            promised = -0.5 * step.slope
            if promised < options.tolerance * here.cost:
                break
        found = step.search(here.cost)
        if found is not None:
            return found, *step.point(found.length), promised, damping
        damping = max(damping, 1e-9) * 10.0
    return None, q, p, promised, damping


def _at_corner(promised, cost):
    return (f"a minimum on a corner of the contact forces: steps promise {promised / max(cost, 1e-300):.1e} of the "
            "cost and give nothing")
