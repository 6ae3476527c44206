"""From a rough start to the estimate: a continuation of ever harder problems, each started from the last (paper 3, V-A).

A contact that is a millimetre away exerts no force and has no gradient, so an optimiser that starts there stays there. The
first stages therefore let contacts act from a distance and allow more unexplained force; the last stage is the real problem.
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
_RETRIES = 2
_DETOUR = Stage(2e-4, 5.0, 0.05, 3)


@dataclasses.dataclass
class Estimate:
    """Outcome of all stages.

    Attributes:
        solution: of the last stage.
        trace: (stage index, iteration) of every stage in order.
        converged, reason: of the last stage.
    """

    solution: Solution
    trace: list[tuple[int, Iteration]]

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

    Where the last stage stalls in a corner of the contact forces (stick or slip, touch or not, at a few times) it takes up to two
    detours over a softened problem.

    Args:
        mode: ``both``, ``trajectory`` or ``parameters``.
        progress: called with (stage index, :class:`Iteration`).
    """
    trace, plan, k, retries = [], list(stages), 0, _RETRIES
    while k < len(plan):
        stage = plan[k]
        problem.ease(stage.remote_distance, stage.softening)

        def note(iteration, index=k):
            trace.append((index, iteration))
            if progress is not None:
                progress(index, iteration)

        solution = solve(problem, q, p, Options(mode, stage.max_iterations, stage.tolerance), note)
        q, p = solution.q, solution.p
        if k == len(plan) - 1 and solution.reason.startswith("stalled") and retries > 0:
            plan += [_DETOUR, stage]
            retries -= 1
        k += 1
    return Estimate(solution, trace)
