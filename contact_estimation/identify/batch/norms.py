"""The two residual norms of paper 3, section III-A: quadratic, and the exponential barrier.

Each is the convex function f of ``cost = sum w f(r)``. The solver needs f, f' and f'' and nothing else: Gauss-Newton
with J^T diag(w f'') J, which stays positive because f is convex.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.arrays import Array

#: The barrier follows exp up to this multiple of its scale and continues as a parabola with the same value, slope and
#: curvature: a bad start (ten scales away, exp(100)) must not overflow nor dwarf every other term.
KNEE = 2.0


def quadratic(r: Array) -> tuple[Array, Array, Array]:
    """F = r^2 with f' and f''."""
    return r**2, 2.0 * r, np.full_like(r, 2.0)


def barrier(r: Array, scale: Array) -> tuple[Array, Array, Array]:
    """F = s^2 (exp(r^2/s^2) - 1), which equals r^2 near 0 and rises like a wall beyond s; with f' and f''."""
    size = np.abs(r) / scale
    inside = np.minimum(size, KNEE)
    growth = np.exp(inside**2)
    f, slope, curvature = growth - 1.0, 2.0 * inside * growth, 2.0 * growth * (1.0 + 2.0 * inside**2)
    beyond = size - inside
    f = f + slope * beyond + 0.5 * curvature * beyond**2
    slope = slope + curvature * beyond
    return scale**2 * f, scale * slope * np.sign(r), curvature


def huber(r: Array, limit: Array) -> tuple[Array, Array, Array]:
    """F = r^2 up to ``limit`` and 2 limit |r| - limit^2 beyond (Huber 1964), with f' and the curvature f' / r."""
    size = np.abs(r)
    inside = np.minimum(size, limit)
    growth = np.where(size > limit, inside / np.maximum(size, 1e-300), 1.0)
    return inside * (2.0 * size - inside), 2.0 * growth * r, 2.0 * growth


def evaluate(r: Array, scale: Array, limit: Array | None = None) -> tuple[Array, Array, Array]:
    """F, f', f'' for residuals r (..., m).

    Args:
        r: residuals.
        scale: of the barrier, one per column; inf for none.
        limit: of Huber's norm where there is no barrier, one per column; inf or None for the quadratic norm.
    """
    f, slope, curvature = quadratic(r) if limit is None else huber(r, limit)
    walls = np.isfinite(scale)
    if np.any(walls):
        f[..., walls], slope[..., walls], curvature[..., walls] = barrier(r[..., walls], scale[walls])
    return f, slope, curvature
