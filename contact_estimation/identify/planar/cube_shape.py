"""A cube's shape: its corners, the 24 namings of its axes, and the contact point of a blunt cube.

The height of a convex body's middle at touch is its support function h(u), with u the downward direction in body axes.
The contact point is the gradient of h. The usual blunt shapes are sums of four norms of u: a sharp cube is |u|_1,
rounding by r adds r (|u|_2 - |u|_1), plates that end t before the edges add t (|u|_inf - |u|_1), and corners chamfered
by t subtract t min|u|. A cube at rest on a face keeps its height: the first three lengths add up to half the side, so
three of the four are free.

The six faces are equal, so a tracker may name the axes differently after each setup. Within one toss only an
off-centre centre of mass distinguishes the 24 namings. A naming lasts for several tosses. Dynamic programming (Viterbi)
finds the sequence of least cost.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from contact_estimation.identify.arrays import Array, Indices

LENGTHS = 3  # free lengths of a shape: rounded, cut, chamfered


def cube_corners(side: float) -> Array:
    """Return the corners (8, 3) [m] of a cube about its middle."""
    return 0.5 * side * np.array(list(product((1.0, -1.0), repeat=3)))


def norms(down: Array, half: float) -> tuple[Array, Array]:
    """Support function of the sharp cube and by how much each of the three lengths changes it.

    Args:
        down: unit vectors (n, 3) that point down, in body axes.
        half: half the side [m].

    Returns:
        Heights (n, 4): the sharp cube [m], then per metre of rounding, cut and chamfer; and their gradients
        (n, 3, 4), the points that touch [m, body axes from the middle]. h and point of a blunt cube are these times
        (1, rounded, cut, chamfered).
    """
    size, sign = np.abs(down), np.where(down >= 0.0, 1.0, -1.0)
    largest, smallest = np.eye(3)[size.argmax(axis=1)], np.eye(3)[size.argmin(axis=1)]
    length = np.linalg.norm(down, axis=1, keepdims=True)
    points = np.stack([half * sign, down / length - sign, sign * (largest - 1.0), -sign * smallest], axis=2)
    return np.einsum("ni,nij->nj", down, points), points


def corner_depth(lengths: Array) -> float:
    """How much nearer the middle a blunt cube touches than a sharp one when a corner points straight down [m]."""
    heights, _ = norms(np.full((1, 3), 1.0 / np.sqrt(3.0)), 0.0)
    return -float(heights[0, 1:] @ lengths)


def cube_turns() -> Array:
    """Return the 24 rotations (24, 3, 3) that map a cube onto itself, identity first."""
    signs = list(product((1.0, -1.0), repeat=3))
    matrices = [np.eye(3)[list(order)] * sign for order in permutations(range(3)) for sign in signs]
    return np.array([matrix for matrix in matrices if np.linalg.det(matrix) > 0.0])


def cheapest_sequence(costs: Array, change: float) -> tuple[Indices, float]:
    """Return the names (n,) [column indices] of least cost, and that cost.

    Args:
        costs: of every name in every row (n, names).
        change: cost of another name than in the row before.
    """
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
