"""Where a blunt cube touches the ground: a support function of four lengths, and its gradient.

The height of a convex body's middle when it touches is its support function h(u) of the direction u that points down
in body axes, and the point that touches is the gradient of h. All usual ways of being blunt are sums of four norms of
u: a sharp cube is |u|_1, rounding by r adds r (|u|_2 - |u|_1), plates that end t before the edges add
t (|u|_inf - |u|_1), and corners chamfered by t take off t min|u|. A cube that rests on a face keeps its height: the
first three lengths add up to half the side, which leaves three of them.
"""

from __future__ import annotations

import numpy as np

LENGTHS = 3  # free lengths of a shape: rounded, cut, chamfered


def norms(down: np.ndarray, half: float) -> tuple[np.ndarray, np.ndarray]:
    """Support function of the sharp cube and by how much each of the three lengths changes it.

    Args:
        down: unit vectors (n, 3) that point down, in body axes. half: half the side [m].

    Returns:
        Heights (n, 4): the sharp cube [m], then per metre of rounding, cut and chamfer; and their gradients
        (n, 3, 4), the points that touch [m, body axes from the middle]. h and point of a blunt cube are these times
        (1, rounded, cut, chamfered).
    """
    size, sign = np.abs(down), np.where(down >= 0.0, 1.0, -1.0)
    rows = np.arange(len(down))
    largest, smallest = np.zeros_like(down), np.zeros_like(down)
    largest[rows, size.argmax(axis=1)] = smallest[rows, size.argmin(axis=1)] = 1.0
    length = np.linalg.norm(down, axis=1, keepdims=True)
    points = np.stack([half * sign, down / length - sign, sign * (largest - 1.0), -sign * smallest], axis=2)
    return np.einsum("ni,nij->nj", down, points), points


def corner_depth(lengths: np.ndarray) -> float:
    """How much nearer the middle a blunt cube touches than a sharp one when a corner points straight down [m]."""
    heights, _ = norms(np.full((1, 3), 1.0 / np.sqrt(3.0)), 0.0)
    return -float(heights[0, 1:] @ lengths)
