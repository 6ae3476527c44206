"""Tangential impulse of a rigid planar impact with Coulomb friction (Routh 1860; Wang and Mason 1992).

The normal impulse P grows from 0 to its end. Friction opposes the slip u until u is 0. From there on the contact sticks
where friction suffices, or slides the other way. With J_t and J_n of :mod:`shapes` and m/I = k, per unit mass,

    du = (1 + k r_y^2) dP_t - k r_x r_y dP,    sticking: dP_t = kappa dP,    kappa = k r_x r_y / (1 + k r_y^2).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.contact_geometry import Correction, Impacts
from contact_estimation.identify.planar.gyration import Scan


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
    way = 1.0 if slip >= 0.0 else -1.0
    tangent = 1.0 + ratio * lever[1] ** 2
    sticking = ratio * lever[0] * lever[1] / tangent  # kappa
    sliding = -way * friction  # dP_t / dP while the first slip lasts
    braking = way * tangent * (sticking - sliding)  # rate at which |slip| falls with P
    until = np.where(braking > 0.0, abs(slip) / np.maximum(braking, 1e-12), np.inf)
    first = np.minimum(until, normal)
    return np.asarray(sliding * first + np.clip(sticking, -friction, friction) * (normal - first))


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
