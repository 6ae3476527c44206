"""Rotations as rotation vectors: logarithm and exponential of unit quaternions (w, x, y, z), and their Jacobians.

Everything works on stacks: the last axis holds the quaternion or the vector. Rotation vectors are body-fixed, as
MuJoCo's angular velocities of ball and free joints are, so that q_next = q * exp(v h).
"""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.arrays import Array

_SMALL = 1e-6  # length of the vector part below which the angle is taken to first order


def multiply(a: Array, b: Array) -> Array:
    """Quaternion product a * b, (..., 4)."""
    aw, av = a[..., :1], a[..., 1:]
    bw, bv = b[..., :1], b[..., 1:]
    scalar = aw * bw - np.sum(av * bv, axis=-1, keepdims=True)
    return np.concatenate([scalar, aw * bv + bw * av + np.cross(av, bv)], axis=-1)


def conjugate(a: Array) -> Array:
    """Conjugate, the inverse of a unit quaternion, (..., 4)."""
    return np.asarray(a * np.array([1.0, -1.0, -1.0, -1.0]))


def exp(rotation: Array) -> Array:
    """Return the unit quaternion (..., 4) of a rotation vector (..., 3) [rad]."""
    half = 0.5 * np.linalg.norm(rotation, axis=-1, keepdims=True)
    return np.concatenate([np.cos(half), 0.5 * np.sinc(half / np.pi) * rotation], axis=-1)


def log(quaternion: Array) -> Array:
    """Shortest rotation vector (..., 3) [rad] of a unit quaternion (..., 4)."""
    w, v, n = _shortest(quaternion)
    angle = np.where(n > _SMALL, 2.0 * np.arctan2(n, w) / np.where(n > _SMALL, n, 1.0), 2.0 / np.where(w > 0, w, 1.0))
    return v * angle


def log_jacobian(quaternion: Array) -> Array:
    """Return the derivative (..., 3, 4) of :func:`log` with respect to the four quaternion numbers."""
    w, v, n = _shortest(quaternion)
    sign, small = np.where(quaternion[..., :1] < 0, -1.0, 1.0), n <= _SMALL
    safe = np.where(small, 1.0, n)
    angle, square = 2.0 * np.arctan2(n, w), n**2 + w**2
    by_w = np.where(small, -2.0 * v / np.where(w > 0, w, 1.0) ** 2, -2.0 * v / square)
    along = np.where(small, 2.0 / np.where(w > 0, w, 1.0), angle / safe)
    radial = np.where(small, 0.0, (2.0 * w / square - angle / safe) / safe**2)
    by_v = along[..., None] * np.eye(3) + radial[..., None] * v[..., :, None] * v[..., None, :]
    return np.asarray(sign[..., None] * np.concatenate([by_w[..., None], by_v], axis=-1))


def _shortest(quaternion: Array) -> tuple[Array, Array, Array]:
    """Scalar and vector part of the quaternion with positive scalar, and the vector's length."""
    sign = np.where(quaternion[..., :1] < 0, -1.0, 1.0)
    v = sign * quaternion[..., 1:]
    return sign * quaternion[..., :1], v, np.linalg.norm(v, axis=-1, keepdims=True)


def skew(v: Array) -> Array:
    """Cross-product matrices (..., 3, 3) of vectors (..., 3)."""
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    zero = np.zeros_like(x)
    rows = [np.stack(row, axis=-1) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))]
    return np.stack(rows, axis=-2)


def right_jacobian_inverse(rotation: Array) -> Array:
    """Jr^-1 (..., 3, 3): log(exp(r) exp(d)) = r + Jr^-1(r) d + O(d^2); the left one is its transpose."""
    angle = np.linalg.norm(rotation, axis=-1)[..., None, None]
    small = angle < 1e-4
    safe = np.where(small, 1.0, angle)
    factor = np.where(small, 1.0 / 12.0 + angle**2 / 720.0, 1.0 / safe**2 - 0.5 / (safe * np.tan(0.5 * safe)))
    cross = skew(rotation)
    return np.eye(3) + 0.5 * cross + factor * (cross @ cross)
