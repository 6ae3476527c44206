"""Test a friction by the tangential impulses of a drop, those of rigid impacts (:mod:`impact_laws`).

With J_t and J_n of :mod:`shapes` and m/I = k the slip changes by du = (1 + k r_y^2) dP_t - k r_x r_y dP, per unit mass.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.contact_geometry import Correction, Impacts
from contact_estimation.identify.planar.gyration import Scan
from contact_estimation.identify.planar.impact_laws import ContactSpace, SlipPath


def tangential_impulse(friction: Array, slip: float, lever: tuple[float, float], ratio: float, normal: float) -> Array:
    """Return the change of the centre of mass's tangential velocity.

    Args:
        friction: Coulomb coefficients (n,).
        slip: tangential velocity of the contact point before the impact [m/s].
        lever: (r_x, r_y) of the contact point from the centre of mass [m].
        ratio: m/I [1/m^2].
        normal: change of the normal velocity [m/s].

    Returns:
        dv_x (n,) [m/s].
    """
    (x, y), one = lever, np.ones_like(friction)
    space = ContactSpace(slip * one, 0 * one, 1 + ratio * y**2 * one, 1 + ratio * x**2 * one, -ratio * x * y * one)
    return SlipPath(space, friction).impulses(normal * one)[:, 0]


def friction_costs(impacts: Impacts, frictions: Array, best: Correction, scan: Scan) -> Array:
    """Compare the tangential impulses with those of rigid impacts.

    The spread of a difference comes from its values at one standard deviation along each root of the covariance.

    Args:
        impacts: of a drop; those that may be on two contacts are left out.
        frictions: Coulomb coefficients (n,) to compare.
        best: the impacts' numbers, corrected.
        scan: m/I.

    Returns:
        chi-square (n,) of each coefficient.
    """
    costs = np.zeros(len(frictions))
    ratio_std = (scan.interval[1] - scan.interval[0]) / 3.92
    for j, touch in enumerate(impacts.touches):
        if touch.double:
            continue
        block = impacts.spread[5 * j + 1 : 5 * j + 5, 5 * j + 1 : 5 * j + 5]
        slip, slip_std = impacts.slip(j)
        spread = block_diag(block, slip_std**2, ratio_std**2)
        middle = np.array([*best.values[j, 1:], slip, scan.minima[0, 0]])  # theta, dv_x, dv_y, d omega, slip, m/I
        miss = _friction_miss(impacts, j, frictions, middle)
        roots = np.linalg.cholesky(spread + 1e-18 * np.eye(len(spread))).T
        ends = [
            _friction_miss(impacts, j, frictions, middle + root) - _friction_miss(impacts, j, frictions, middle - root)
            for root in roots
        ]
        costs += miss**2 / (0.25 * np.sum(np.square(ends), axis=0))
    return costs


def _friction_miss(impacts: Impacts, j: int, frictions: Array, numbers: Array) -> Array:
    """Return dv_x of impact ``j`` less that of a rigid impact (n,), at its mean angle."""
    theta, vx, vy, turn, slip, ratio = numbers.tolist()
    angle = theta + turn * impacts.durations[j] / 6.0
    lever = impacts.shape.lever(angle, impacts.touches[j].contact)[:2]
    return np.asarray(vx - tangential_impulse(frictions, slip, lever, ratio, max(vy, 0.0)))
