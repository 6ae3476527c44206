"""From a rough start to the estimate: ever harder problems, each started from the last (paper 3, V-A).

A contact that is a millimetre away exerts no force and has no gradient, so an optimiser that starts there stays
there. The first stages therefore let contacts act from a distance and allow more unexplained force; the last stage is
the real problem.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.solver import Iteration, Options, Solution, solve


@dataclasses.dataclass(frozen=True)
class Stage:
    """One problem of the continuation.

    Attributes:
        remote_distance: distance [m] from which contacts act; above 0, strings are two-way springs.
        softening: factor on the standard deviation of the dynamics.
        tolerance, max_iterations: as in :class:`~contact_estimation.identify.batch.solver.Options`.
    """

    remote_distance: float = 0.0
    softening: float = 1.0
    tolerance: float = 1e-3
    max_iterations: int = 25


CONTINUATION = (Stage(1e-3, 30.0, 0.05, 3), Stage())
#: Detours taken in turn: a little easier first, as easy as the first stage if that was not enough.
_DETOURS = (Stage(2e-4, 5.0, 0.05, 3), Stage(1e-3, 30.0, 0.05, 3))


@dataclasses.dataclass
class Estimate:
    """Outcome of all stages.

    Attributes:
        solution: of the last stage.
        trace: (stage index, iteration) of every stage in order.
        mode: what was free.
        converged, reason: of the last stage.
    """

    solution: Solution
    trace: list[tuple[int, Iteration]]
    mode: str = "both"

    @property
    def iterations(self) -> int:
        """Newton iterations of all stages together."""
        return len(self.trace)

    @property
    def converged(self) -> bool:
        """Whether the last stage met its tolerance."""
        return self.solution.converged

    @property
    def reason(self) -> str:
        """Why the last stage ended."""
        return self.solution.reason


def estimate(problem: Problem, q: np.ndarray, p: np.ndarray, mode: str = "both",
             stages: tuple[Stage, ...] = CONTINUATION, progress=None) -> Estimate:
    """Run the stages from the start (q, p).

    Where the last stage stalls in a corner of the contact forces (stick or slip, touch or not, at a few times) it
    takes up to two detours over a softened problem; the best solution of the last stage counts.

    Args:
        mode: ``both``, ``trajectory`` or ``parameters``.
        progress: called with (stage index, :class:`Iteration`).
    """
    trace, plan, detours, best, k = [], list(stages), list(_DETOURS), None, 0
    while k < len(plan):
        stage, final = plan[k], plan[k] == stages[-1]
        problem.ease(stage.remote_distance, stage.softening)

        def note(iteration, index=k):
            trace.append((index, iteration))
            if progress is not None:
                progress(index, iteration)

        solution = solve(problem, q, p, Options(mode, stage.max_iterations, stage.tolerance), note)
        q, p = solution.q, solution.p
        if final and (best is None or solution.cost < best.cost):
            best = solution
        if final and solution.stalled and detours:
            plan += [detours.pop(0), stage]
        k += 1
    return Estimate(best, trace, mode)
