"""The two residual norms of paper 3, section III-A: quadratic, and the exponential barrier.

Each is the convex function f of ``cost = sum w f(r)``; the solver needs f' and f'' and nothing else (Gauss-Newton with
J^T diag(w f'') J, which stays positive because f is convex).
"""

from __future__ import annotations

import numpy as np

#: The barrier follows exp up to this multiple of its scale and continues as a parabola with the same value, slope and
#: curvature: a bad start (ten scales away, exp(100)) must not overflow nor dwarf every other term.
KNEE = 2.0


def quadratic(r: np.ndarray):
    """f = r^2 with f' and f''."""
    return r**2, 2.0 * r, np.full_like(r, 2.0)


def barrier(r: np.ndarray, scale: np.ndarray):
    """f = s^2 (exp(r^2/s^2) - 1), which equals r^2 near 0 and rises like a wall beyond s; with f' and f''."""
    size = np.abs(r) / scale
    inside = np.minimum(size, KNEE)
    growth = np.exp(inside**2)
    f, slope, curvature = growth - 1.0, 2.0 * inside * growth, 2.0 * growth * (1.0 + 2.0 * inside**2)
    beyond = size - inside
    f = f + slope * beyond + 0.5 * curvature * beyond**2
    slope = slope + curvature * beyond
    return scale**2 * f, scale * slope * np.sign(r), curvature


def evaluate(r: np.ndarray, scale: np.ndarray):
    """f, f', f'' for residuals r (..., m) with one scale per column; a scale of inf means quadratic."""
    f, slope, curvature = quadratic(r)
    walls = np.isfinite(scale)
    if np.any(walls):
        f[..., walls], slope[..., walls], curvature[..., walls] = barrier(r[..., walls], scale[walls])
    return f, slope, curvature
