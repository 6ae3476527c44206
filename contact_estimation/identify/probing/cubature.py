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
from typing import NamedTuple

import numpy as np

from contact_estimation.exceptions import ConfigError


class Rule(NamedTuple):
    """A rule that is symmetric about its centre: points +-radius direction on every shell.

    Attributes:
        directions: (dimension, m) unit vectors, of which no two are opposite.
        radii: (shells,).
        weights: (1 + 2 shells m,) of the points, in their order.
    """

    directions: np.ndarray
    radii: np.ndarray
    weights: np.ndarray

    @property
    def points(self) -> np.ndarray:
        """Points (dimension, 1 + 2 shells m): the centre, then per shell the directions and their opposites."""
        shells = [sign * radius * self.directions for radius in self.radii for sign in (1.0, -1.0)]
        return np.hstack([np.zeros((len(self.directions), 1)), *shells])


@functools.cache
def rule(dimension: int, degree: int = 7) -> Rule:
    """Return the rule that is exact for polynomials up to ``degree`` under N(0, I).

    Raises:
        ConfigError: ``degree`` is not 3, 5 or 7, or ``dimension`` is below 1.
    """
    makers = {3: _degree3, 5: _degree5, 7: _degree7}
    if degree not in makers or dimension < 1:
        raise ConfigError(
            f"there is no integration rule of degree {degree} in {dimension} dimensions; "
            "the degree is 3, 5 or 7 and the dimension at least 1"
        )
    made = makers[degree](dimension)
    for array in made:
        array.setflags(write=False)
    return made


def _directions(n: int, count: int) -> np.ndarray:
    """List all unit vectors with ``count`` equal non-zero coordinates, the first of them positive, (n, m)."""
    columns = []
    for axes in itertools.combinations(range(n), count):
        for signs in itertools.product((1.0, -1.0), repeat=count - 1):
            column = np.zeros(n)
            column[list(axes)] = np.array([1.0, *signs]) / np.sqrt(count)
            columns.append(column)
    return np.asarray(np.array(columns).reshape(-1, n).T)


def _spherical_radial(groups: list[np.ndarray], values: tuple[float, ...], shells: dict[float, float]) -> Rule:
    """Combine directions, their weights on the sphere per group, and the mass of every radius; the rest is central."""
    sphere = np.concatenate([np.full(group.shape[1], value) for group, value in zip(groups, values)])
    masses = np.array(list(shells.values()))
    weights = np.concatenate([[1.0 - masses.sum()], np.outer(np.repeat(masses, 2), sphere).ravel()])
    return Rule(np.ascontiguousarray(np.hstack(groups)), np.array(list(shells)), weights)


def _degree3(n: int) -> Rule:
    return _spherical_radial([_directions(n, 1)], (0.5 / n,), {np.sqrt(n): 1.0})


def _degree5(n: int) -> Rule:
    """Sphere rule of degree 5 at the radius sqrt(n + 2), and the centre."""
    scale = 1.0 / (n * (n + 2.0))
    groups = [_directions(n, count) for count in (1, 2)]
    return _spherical_radial(groups, (0.5 * (4.0 - n) * scale, scale), {np.sqrt(n + 2.0): n / (n + 2.0)})


def _degree7(n: int) -> Rule:
    """Spherical rules along one, two and three axes at two radii, and the centre."""
    scale = 1.0 / (n * (n + 2.0) * (n + 4.0))
    groups = [_directions(n, count) for count in (1, 2, 3)]
    single = 0.5 * scale * (15.0 - (n - 1.0) * (5.0 - n) - 0.5 * (n - 1.0) * (n - 2.0))
    values = (single, 2.0 * scale * (5.0 - n), 27.0 / 8.0 * scale)
    # Centre and two squared radii a, b that give E r^2 = n, E r^4 = n (n + 2) and E r^6 = n (n + 2) (n + 4).
    spread = np.sqrt(2.0 * (n + 2.0))
    a, b = n + 2.0 - spread, n + 2.0 + spread
    # The radius rule leaves out the centre; the weight that its mass misses goes there.
    mass_b = n * (n + 2.0 - a) / (b * (b - a))
    mass_a = n * (b - n - 2.0) / (a * (b - a))
    return _spherical_radial(groups, values, {np.sqrt(a): mass_a, np.sqrt(b): mass_b})
