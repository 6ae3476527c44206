"""The solver protocol of the MPC (reset, solve) and its solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from contact_estimation.control.mpc.problem import MpcProblem


@dataclass(frozen=True)
class Solution:
    """Result of one solve.

    Attributes:
        states: (H + 1, nx) of the plan.
        controls: (H, nu) of the plan.
        cost: where the last iteration began: of a converged plan its own; with one iteration per tick, of the plan of
            the tick before at the present state.
        ok: whether the plan may be used.
        status: how the solve ended; where not ``ok``, why.
        iterations: of the optimiser.
        seconds: that the solve took [s].
    """

    states: np.ndarray
    controls: np.ndarray
    cost: float
    ok: bool
    status: str
    iterations: int
    seconds: float


class Solver(Protocol):
    """A solver of one :class:`~contact_estimation.control.mpc.problem.MpcProblem`.

    It reads the problem's parameters at every solve.
    """

    #: Word it is chosen by.
    name: str

    def reset(self, x: np.ndarray) -> None:
        """Forget the last plan; start from rest at the state ``x`` (nx,)."""

    def solve(self, x: np.ndarray) -> Solution:
        """Plan from the state ``x`` (nx,), starting from the last plan."""

    def guess(self, controls: np.ndarray) -> None:
        """Start the next solve from ``controls`` (H, nu) and the states they lead to."""


def make_solver(problem: MpcProblem, name: str | None = None) -> Solver:
    """Make the solver ``rti`` or ``sqp``, which converges, for ``problem`` (default: the settings' own).

    Raises:
        ConfigError: unknown name.
        CodegenError: there is no C compiler, or CasADi lacks the solver's library.
    """
    from contact_estimation.control.mpc.sqp import SqpSolver

    return SqpSolver(problem, name or problem.settings.solver)
