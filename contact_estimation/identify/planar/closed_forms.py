"""Closed forms for one contact whose mode is known: impulses and linear regressions (paper 5, eq. 20-25, 27,
appendices).

Derived anew, because the printed appendices carry slips (M^-1 has 1/m for 1/I, signs of h g, eq. 22's third row). Two
results differ from the paper: multiplied out, the column of m/I^2 vanishes identically in both modes, and sticking
has no column of 1/m, so that theta = (m/I, 1/m, 1/I) is all there is, with the mass from sticking through (m/I) /
(1/I).

Throughout ``lever`` = (r_x, r_y) is the contact's offset from the centre of mass, states are (vx, vy, omega),
``gravity`` (3,) the free acceleration, ``external`` (3,) a known force and moment [N, N, Nm], h the step,
``restitution`` Newton's.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.exceptions import ConfigError, IdentificationError


def sliding_impulse(v, lever, h, mass, inertia, friction, slip_sign, gravity, external=(0.0, 0.0, 0.0),
                    restitution=0.0):
    """Normal and tangential impulse (c_n, c_t) [N s] of a contact that slides along ``slip_sign`` x after the step
    (eq. 20, 21)."""
    rx, ry = lever
    b = _free(v, h, mass, inertia, gravity, external)
    edge = -_sign(slip_sign) * friction
    moment = rx - edge * ry
    gap = b[1] + rx * b[2] + restitution * (v[1] + rx * v[2])
    normal = -gap / (1.0 / mass + rx * moment / inertia)
    return normal, edge * normal


def sticking_impulse(v, lever, h, mass, inertia, gravity, external=(0.0, 0.0, 0.0), restitution=0.0):
    """Normal and tangential impulse (c_n, c_t) [N s] of a contact that sticks (eq. 24, 25)."""
    rx, ry = lever
    b = _free(v, h, mass, inertia, gravity, external)
    rows = np.array([[0.0, 1.0, rx], [1.0, 0.0, -ry]])
    offset = rows @ b + np.array([restitution * (v[1] + rx * v[2]), 0.0])
    normal, tangent = -np.linalg.solve(rows @ np.diag([1 / mass, 1 / mass, 1 / inertia]) @ rows.T, offset)
    return float(normal), float(tangent)


def sliding_regression(v, v_next, lever, h, friction, slip_sign, gravity, external=(0.0, 0.0, 0.0), restitution=0.0):
    """Y (3, 3) and f (3,) with Y (m/I, 1/m, 1/I) = f for a sliding contact (eq. 22, appendix 1)."""
    rx, ry = lever
    direction = np.array([-_sign(slip_sign) * friction, 1.0])
    moment = rx - direction[0] * ry
    change, force = np.asarray(v_next) - v - h * np.asarray(gravity), h * np.asarray(external)
    approach = v[1] + rx * v[2]
    before = approach + h * (gravity[1] + rx * gravity[2]) + restitution * approach
    y = np.zeros((3, 3))
    y[:2, 0] = rx * moment * change[:2]
    y[:2, 1] = force[1] * direction - force[:2]
    y[:2, 2] = rx * force[2] * direction - rx * moment * force[:2]
    y[2] = rx * moment * change[2] + moment * before, 0.0, moment * force[1] - force[2]
    return y, -np.array([*(change[:2] + before * direction), change[2]])


def sticking_regression(v, v_next, lever, h, gravity, external=(0.0, 0.0, 0.0), restitution=0.0):
    """Y (3, 3) and f (3,) with Y (m/I, 1/m, 1/I) = f for a sticking contact (appendix 2); the second column is zero."""
    p = np.array([-lever[1], lever[0]])
    change, force = np.asarray(v_next) - v - h * np.asarray(gravity), h * np.asarray(external)
    slip = np.asarray(v)[:2] + p * v[2] + h * (np.asarray(gravity)[:2] + p * gravity[2])
    slip = slip + np.array([0.0, restitution * (v[1] + lever[0] * v[2])])
    y = np.zeros((3, 3))
    y[:2, 0] = p @ p * (change[:2] + slip) - p * (p @ slip)
    y[:2, 2] = p * force[2] - p * (p @ force[:2])
    y[2] = p @ p * change[2] + p @ slip, 0.0, p @ force[:2] - force[2]
    return y, -np.array([*(change[:2] + slip), change[2]])


def ratio_least_squares(v, v_next, levers, h, gravity) -> float:
    """m/I [1/m^2] of contact steps (n, 3) -> (n, 3) with ``levers`` (n, 2), without external force (eq. 27).

    Raises:
        IdentificationError: no impulse has a moment about the centre of mass (the landing of figure 18a).
    """
    change = np.asarray(v_next) - v - h * np.asarray(gravity)
    moment = np.asarray(levers)[:, 0] * change[:, 1] - np.asarray(levers)[:, 1] * change[:, 0]
    power = float(moment @ moment)
    if power < 1e-12 * max(float((change[:, :2]**2).sum()), 1e-300):
        raise IdentificationError("no impulse has a moment about the centre of mass: m/I is not excited (figure 18a); "
                                  "land tilted")
    return float(moment @ change[:, 2]) / power


def _free(v, h, mass, inertia, gravity, external):
    """Velocity after the step without contact."""
    return np.asarray(v, float) + h * (np.asarray(gravity) + np.asarray(external) / np.array([mass, mass, inertia]))


def _sign(value):
    if value == 0:
        raise ConfigError("slip_sign is 0: a sliding contact has a direction, +1 or -1; else use the sticking form")
    return 1.0 if value > 0 else -1.0
