"""Continuation from a rough start to the estimate: ever harder problems, each started from the last (paper 3, V-A).

A contact that is a millimetre away exerts no force and has no gradient, so an optimiser cannot close it. The first
stages therefore let contacts act from a distance and allow more unexplained force. The last stage is the real problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.solver import Iteration, Options, Solution, solve


class Stage(NamedTuple):
    """One problem of the continuation."""

    remote_distance: float = 0.0  # from which contacts act [m]; above 0, strings are two-way springs
    softening: float = 1.0  # factor on the standard deviation of the dynamics
    tolerance: float = 1e-3  # see Options
    max_iterations: int = 25  # see Options


CONTINUATION = (Stage(1e-3, 30.0, 0.05, 3), Stage())
#: Detours taken in turn: a little easier first, as easy as the first stage if that was not enough.
_DETOURS = (Stage(2e-4, 5.0, 0.05, 3), Stage(1e-3, 30.0, 0.05, 3))

Note = Callable[[int, Iteration], None]
#: Makes positions (n, nq) to start the next stage from, of positions and optimiser's parameters.
WarmStart = Callable[[Array, Array], Array]


@dataclass
class Estimate:
    """Outcome of all stages."""

    solution: Solution  # of the last stage
    trace: list[tuple[int, Iteration]]  # (stage index, iteration) of every stage in order
    mode: str = "both"  # what was free

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


def estimate(
    problem: Problem,
    q: Array,
    p: Array,
    mode: str = "both",
    stages: tuple[Stage, ...] = CONTINUATION,
    progress: Note | None = None,
    warm_start: WarmStart = lambda q, p: q,
) -> Estimate:
    """Run the stages from the start (q, p).

    Where the last stage stalls at a contact event (stick or slip, touch or not, at a few times) it takes up to two
    detours over a softened problem; the best solution of the last stage counts.

    Args:
        problem: what is solved.
        q: first positions (n, nq).
        p: first optimiser's parameters (c,).
        mode: ``both``, ``trajectory`` or ``parameters``.
        stages: the continuation.
        progress: called with (stage index, :class:`Iteration`).
        warm_start: makes another start of every stage but the first, where the trajectory is free; the better one
            counts.
    """
    plan, detours, final = list(stages), list(_DETOURS), stages[-1]
    trace: list[tuple[int, Iteration]] = []
    solutions: list[Solution] = []
    k = 0
    while k < len(plan):
        stage = plan[k]
        problem.ease(stage.remote_distance, stage.softening)
        if k > 0 and mode != "parameters":
            q = min((q, warm_start(q, p)), key=lambda start: problem.cost(start, p))

        def note(iteration: Iteration, index: int = k) -> None:
            trace.append((index, iteration))
            if progress is not None:
                progress(index, iteration)

        solution = solve(problem, q, p, Options(mode, stage.max_iterations, stage.tolerance), note)
        q, p, k = solution.q, solution.p, k + 1
        if stage == final:
            solutions.append(solution)
            if solution.stalled and detours:
                plan += [detours.pop(0), stage]
    return Estimate(min(solutions, key=lambda solution: solution.cost), trace, mode)
