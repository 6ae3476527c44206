"""Integration rules for a standard normal density in n dimensions: degree 3, 5 and 7 (paper 4, after eq. 21).

Degree 7 matters here: the wrench (3)-(5) is close to a cubic polynomial in the uncertain quantities (stiffness times
deformation times lever), so its covariance needs monomials up to degree six. The rule is spherical-radial: the fully
symmetric degree-7 rule on the sphere (points along one, two and three axes; Stroud 1971) times the two-point Gauss rule
for the radius. It has twice the points of the three-generator rules of McNamee and Stenger (1967), but at n = 9 its
absolute weights sum to 2.8 and its points lie within 4 sigma; theirs sum to more than 10 with points at 9 sigma. Small
weights keep a sample covariance positive.

The sigma-point classes of the maintained filtering libraries stop at degree 3 to 5 (Julier, Merwe, simplex, cubature).
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from contact_estimation.exceptions import ConfigError


@functools.cache
def rule(dimension: int, degree: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Return points (dimension, count) and weights (count,), exact for polynomials up to ``degree`` under N(0, I).

    Raises:
        ConfigError: ``degree`` is not 3, 5 or 7, or ``dimension`` is below 1.
    """
    makers = {3: _degree3, 5: _degree5, 7: _degree7}
    if degree not in makers or dimension < 1:
        raise ConfigError(
            f"there is no integration rule of degree {degree} in {dimension} dimensions; "
            "the degree is 3, 5 or 7 and the dimension at least 1"
        )
    points, weights = makers[degree](dimension)
    points.setflags(write=False)
    weights.setflags(write=False)
    return points, weights


def _axes_points(n: int, count: int) -> np.ndarray:
    """List all points on the unit sphere with ``count`` equal non-zero coordinates of either sign, (n, points)."""
    columns = []
    for axes in itertools.combinations(range(n), count):
        for signs in itertools.product((1.0, -1.0), repeat=count):
            point = np.zeros(n)
            point[list(axes)] = np.array(signs) / np.sqrt(count)
            columns.append(point)
    return np.asarray(np.array(columns).reshape(-1, n).T)


def _degree3(n: int) -> tuple[np.ndarray, np.ndarray]:
    points = np.sqrt(n) * _axes_points(n, 1)
    return np.ascontiguousarray(points), np.full(2 * n, 0.5 / n)


def _degree5(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Sphere rule of degree 5 at the radius sqrt(n + 2), and the centre."""
    scale = 1.0 / (n * (n + 2.0))
    pairs, singles = _axes_points(n, 2), _axes_points(n, 1)
    sphere = np.concatenate([np.full(singles.shape[1], 0.5 * (4.0 - n) * scale), np.full(pairs.shape[1], scale)])
    points = np.hstack([np.zeros((n, 1)), np.sqrt(n + 2.0) * singles, np.sqrt(n + 2.0) * pairs])
    outer = n / (n + 2.0)
    return np.ascontiguousarray(points), np.concatenate([[1.0 - outer], outer * sphere])


def _degree7(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Spherical rules along one, two and three axes at two radii, and the centre."""
    scale = 1.0 / (n * (n + 2.0) * (n + 4.0))
    groups = [_axes_points(n, count) for count in (1, 2, 3)]
    single = 0.5 * scale * (15.0 - (n - 1.0) * (5.0 - n) - 0.5 * (n - 1.0) * (n - 2.0))
    values = (single, 2.0 * scale * (5.0 - n), 27.0 / 8.0 * scale)
    sphere_points = np.hstack(groups)
    sphere_weights = np.concatenate([np.full(g.shape[1], v) for g, v in zip(groups, values)])
    # Centre and two squared radii a, b that give E r^2 = n, E r^4 = n (n + 2) and E r^6 = n (n + 2) (n + 4).
    spread = np.sqrt(2.0 * (n + 2.0))
    a, b = n + 2.0 - spread, n + 2.0 + spread
    # The radius rule leaves out the centre; the weight that its mass misses goes there.
    mass_b = n * (n + 2.0 - a) / (b * (b - a))
    mass_a = n * (b - n - 2.0) / (a * (b - a))
    points = np.hstack([np.zeros((n, 1)), np.sqrt(a) * sphere_points, np.sqrt(b) * sphere_points])
    weights = np.concatenate([[1.0 - mass_a - mass_b], mass_a * sphere_weights, mass_b * sphere_weights])
    return np.ascontiguousarray(points), weights
