"""Gauss-Newton with Levenberg-Marquardt damping and a Wolfe line search (paper 3, section IV).

Three modes: trajectory only, parameters only, both. The damping is the paper's H + mu I, with mu raised when a step
fails and lowered when it succeeds. The run ends with a sentence that says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.bordered import BorderedSystem
from contact_estimation.identify.batch.contact_events import correct
from contact_estimation.identify.batch.line_search import Step
from contact_estimation.identify.batch.linearisation import Linearisation
from contact_estimation.identify.batch.newton_step import NewtonStep
from contact_estimation.identify.batch.problem import Problem

_SHORT, _STALLED = 0.06, 2  # length of a step that counts as short; so many in a row are a stall
#: A minimum may lie where a contact changes its state and the model on either side promises a decrease that is not
#: there. Where steps promise less than this share of the cost and give less than that share of what they promise, the
#: run is at such a minimum.
_EVENT, _GIVEN = 0.005, 0.5
_DAMPINGS = 12  # raises of the damping before a step is given up
MODES = ("both", "trajectory", "parameters")


@dataclass(frozen=True)
class Options:
    """Settings of a run."""

    mode: str = "both"  # what is free: "both", "trajectory" or "parameters"
    max_iterations: int = 40  # of Newton's method
    tolerance: float = 1e-4  # stop when the quadratic model promises less than this share of the cost
    damping: float = 1e-3  # first mu, per (rad or m)^2 of the trajectory and per unit^2 of the parameter vector
    parameter_step: float = 1.1  # largest change of an optimiser's parameter (1.1: a factor of 3 for a logarithm)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise IdentificationError(f"mode '{self.mode}' is not known; use one of {', '.join(MODES)}")


class Iteration(NamedTuple):
    """One line of the trace."""

    cost: float  # after the iteration
    promised: float  # decrease
    length: float  # of the step
    damping: float
    parameters: Array  # SI values (c,)
    seconds: float
    corrections: int = 0  # at contact events, after the step


class Solution(NamedTuple):
    """Where the solver stopped."""

    q: Array  # positions (n, nq)
    p: Array  # optimiser's parameters (c,)
    cost: float
    start_cost: float
    trace: list[Iteration]
    system: BorderedSystem  # derivatives at the solution (for intervals)
    converged: bool  # whether a tolerance was met
    reason: str
    stalled: bool = False  # at a contact event, where steps cannot shrink the cost though its model says so


class _Trial(NamedTuple):
    """One damped Newton step and line search; ``step`` is None where nothing was accepted."""

    step: Step | None
    q: Array
    p: Array
    promised: float  # decrease, by the first direction
    damping: float


def solve(
    problem: Problem,
    q: Array,
    p: ArrayLike,
    options: Options | None = None,
    progress: Callable[[Iteration], None] = lambda iteration: None,
) -> Solution:
    """Minimise the problem's cost.

    Args:
        problem: what is solved.
        q: first positions (n, nq).
        p: first optimiser's parameters (c,).
        options: settings of the run.
        progress: called with each :class:`Iteration`.

    Raises:
        IdentificationError: start outside the bounds, or a cost that is not finite there.
    """
    options, p = options or Options(), np.array(p, float)
    parameters = problem.scene.parameters
    free_q, free_p = options.mode != "parameters", options.mode != "trajectory" and len(parameters) > 0
    if p.shape != (len(parameters),) or np.any(p < parameters.lower - 1e-9) or np.any(p > parameters.upper + 1e-9):
        raise IdentificationError(f"start parameters {p} must be {len(parameters)} numbers inside their bounds")
    here = problem.linearise(q, p, free_q, free_p)
    start_cost, damping, short = here.cost, options.damping, 0
    trace: list[Iteration] = []
    if not np.isfinite(start_cost):
        raise IdentificationError("the cost at the start is not finite: measurements or the start trajectory hold NaN")
    ending = (False, f"the limit of {options.max_iterations} iterations was reached", False)
    for _ in range(options.max_iterations):
        began, before = time.perf_counter(), here.cost
        trial = _iterate(problem, q, p, here, damping, options)
        if trial.step is None:
            ending = _no_step(trial.promised, here.cost, options.tolerance)
            break
        (q_new, p_new), corrections, damping = (trial.q, trial.p), 0, trial.damping
        if free_q:
            q_new, p_new, corrections = correct(problem, here, (q, p), (q_new, p_new), damping, options)
        q, p = q_new, p_new
        del here  # its derivatives make room for the next ones
        here = problem.linearise(q, p, free_q, free_p)
        seconds, length = time.perf_counter() - began, trial.step.length
        trace.append(Iteration(here.cost, trial.promised, length, damping, parameters.values(p), seconds, corrections))
        progress(trace[-1])
        short = short + 1 if length < _SHORT else 0
        if trial.promised < _EVENT * here.cost and before - here.cost < _GIVEN * trial.promised:
            ending = (True, _at_event(trial.promised, here.cost), False)
            break
        if short == _STALLED:
            ending = (False, f"stalled: {_STALLED} steps in a row shorter than {_SHORT}, at a contact event", True)
            break
        damping = max(damping / 10.0, 1e-12)
    return Solution(q, p, here.cost, start_cost, trace, here.system, *ending)


def _iterate(problem: Problem, q: Array, p: Array, here: Linearisation, damping: float, options: Options) -> _Trial:
    """Raise the damping until a step is accepted.

    None is where the first direction promises less than the tolerance, or where no damping gives an acceptable step.
    """
    promised: float | None = None
    for _ in range(_DAMPINGS):
        step = NewtonStep(problem, q, p, here, damping, options.parameter_step)
        if promised is None:
            promised = -0.5 * step.slope
            if promised < options.tolerance * here.cost:
                break
        found = step.search(here.cost)
        if found is not None:
            return _Trial(found, *step.point(found.length), promised, damping)
        damping = max(damping, 1e-9) * 10.0
    return _Trial(None, q, p, promised or 0.0, damping)


def _no_step(promised: float, cost: float, tolerance: float) -> tuple[bool, str, bool]:
    """Whether a run without an acceptable step converged, why it ended, and whether it stalled."""
    if promised < tolerance * cost:
        share = promised / max(cost, 1e-300)
        return True, f"the next step promises {share:.1e} of the cost, less than the tolerance {tolerance:.0e}", False
    if promised < _EVENT * cost:
        return True, _at_event(promised, cost), False
    return False, "no step decreases the cost, whatever the damping: the contact changes its state here", True


def _at_event(promised: float, cost: float) -> str:
    share = promised / max(cost, 1e-300)
    return f"a minimum at a contact event: steps promise {share:.1e} of the cost and give little of it"
