"""Which names the axes of a cube have: six equal faces, so a tracker may name them anew whenever it is set up.

Nothing in one toss tells the 24 ways of naming apart but the centre of mass, if it is off the middle. Names last for
some tosses; the sequence of least cost is found by dynamic programming (Viterbi).
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np


def cube_turns() -> np.ndarray:
    """The 24 rotations (24, 3, 3) that map a cube onto itself, identity first."""
    matrices = [np.eye(3)[list(order)] * signs for order in permutations(range(3))
                for signs in product((1.0, -1.0), repeat=3)]
    return np.array([matrix for matrix in matrices if np.linalg.det(matrix) > 0.0])


def cheapest_sequence(costs: np.ndarray, change: float) -> tuple[np.ndarray, float]:
    """Names (n,) [column indices] that minimise the sum of ``costs`` (n, names) plus ``change`` for every change of
    name between one row and the next, and that minimum."""
    total, came_from = costs[0], []
    for row in costs[1:]:
        best = int(np.argmin(total))
        stay = total <= total[best] + change
        came_from.append(np.where(stay, np.arange(len(total)), best))
        total = np.where(stay, total, total[best] + change) + row
    names = [int(np.argmin(total))]
    for origin in reversed(came_from):
        names.append(int(origin[names[-1]]))
    return np.array(names[::-1]), float(total.min())
