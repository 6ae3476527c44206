"""What the time grid does to the parameters: the estimate again with every second time, from where it is.

Velocities and accelerations are differences of positions, and a force that jumps where a contact begins jumps within
a cell. An error that grows as h^k moves the parameters by 2^k - 1 times itself when the spacing doubles: the whole
move bounds it for k >= 1.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.estimate import Estimate
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.solver import Options, solve

_ITERATIONS = 6  # of the coarser problem, which starts next to its solution


def grid_shift(problem: Problem, estimate: Estimate) -> Array:
    """Return by how much the optimiser's parameters (c,) move on a grid of twice the spacing.

    Args:
        problem: what was solved.
        estimate: its outcome, trajectory and parameters free.
    """
    coarser, kept = problem.every_second()
    p = estimate.solution.p
    found = solve(coarser, estimate.solution.q[kept], p, Options("both", _ITERATIONS, 1e-3))
    return np.asarray(found.p - p)
