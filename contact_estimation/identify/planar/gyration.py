"""Posterior of m/I from the impacts of a drop, over the radii of gyration that the outline allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.contact_geometry import Impacts
from contact_estimation.identify.planar.shapes import gyration_radii

_FINE = 61  # radii scanned around the best


@dataclass(frozen=True)
class Scan:
    """Posterior of m/I, all radii of gyration that the outline allows being equally likely beforehand.

    Attributes:
        ratio: median [1/m^2].
        interval: 95 % interval.
        minima: m/I of the likelihood's local optima, best first, and their chi-squares (n, 2).
        flat: share of the radii within 95 % of the best.
    """

    ratio: float
    interval: tuple[float, float]
    minima: Array
    flat: float


def scan_gyration(impacts: Impacts) -> Scan:
    """Scan the likelihood over the radii of gyration, finely where it is highest."""
    radius, coarse = impacts.shape.radius, gyration_radii(impacts.shape)
    costs = impacts.chi_squares(coarse**-2.0)
    minima, flat = _minima(impacts, coarse, costs), float(np.mean(costs < costs.min() + 3.84))
    best = minima[0, 0] ** -0.5
    step = 1e-3 * best
    around = impacts.chi_squares(np.array([best - step, best + step]) ** -2.0)
    curvature = max((around[0] + around[1] - 2.0 * minima[0, 1]) / step**2, 1e-12)
    reach = min(6.0 * np.sqrt(2.0 / curvature), radius)
    fine = best + reach * np.linspace(-1.0, 1.0, _FINE)
    fine = fine[(fine > coarse[0]) & (fine < radius)]
    radii = np.concatenate([coarse, fine])
    costs = np.concatenate([costs, impacts.chi_squares(fine**-2.0)])
    order = np.argsort(radii)
    return _posterior(radii[order], costs[order], minima, flat)


def _minima(impacts: Impacts, radii: Array, costs: Array) -> Array:
    """Local optima (n, 2) of m/I and chi-square, best first."""
    padded = np.concatenate([[np.inf], costs, [np.inf]])
    at = radii[(costs <= padded[:-2]) & (costs <= padded[2:])]
    spacing = radii[1] - radii[0]
    low, high = np.maximum(at - spacing, radii[0]), np.minimum(at + spacing, radii[-1])  # one per optimum
    for _ in range(24):
        a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
        at_a, at_b = impacts.chi_squares(np.concatenate([a, b]) ** -2.0).reshape(2, -1)
        low, high = np.where(at_a < at_b, low, a), np.where(at_a < at_b, b, high)
    ratios = (0.5 * (low + high)) ** -2.0
    found = np.column_stack([ratios, impacts.chi_squares(ratios)])
    return found[np.argsort(found[:, 1], kind="stable")]


def _posterior(radii: Array, costs: Array, minima: Array, flat: float) -> Scan:
    """Median and 95 % interval of m/I = 1 / radius^2 with density exp(-chi_square / 2) over the radii."""
    density = np.exp(-0.5 * (costs - costs.min()))
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(radii))])
    low, middle, high = 1.0 / np.interp([0.975, 0.5, 0.025], cumulative / cumulative[-1], radii) ** 2
    return Scan(float(middle), (float(low), float(high)), minima, flat)
