"""Rotations as rotation vectors: logarithm and exponential of unit quaternions (w, x, y, z), and their Jacobians.

Everything works on stacks: the last axis holds the quaternion or the vector. Rotation vectors are body-fixed, as
MuJoCo's angular velocities of ball and free joints are, so that q_next = q * exp(v h).
"""

from __future__ import annotations

import numpy as np

_SMALL = 1e-6


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quaternion product a * b, (..., 4)."""
    aw, av = a[..., :1], a[..., 1:]
    bw, bv = b[..., :1], b[..., 1:]
    scalar = aw * bw - np.sum(av * bv, axis=-1, keepdims=True)
    return np.concatenate([scalar, aw * bv + bw * av + np.cross(av, bv)], axis=-1)


def conjugate(a: np.ndarray) -> np.ndarray:
    """Conjugate, the inverse of a unit quaternion, (..., 4)."""
    return a * np.array([1.0, -1.0, -1.0, -1.0])


def exp(rotation: np.ndarray) -> np.ndarray:
    """Unit quaternion (..., 4) of a rotation vector (..., 3) [rad]."""
    half = 0.5 * np.linalg.norm(rotation, axis=-1, keepdims=True)
    return np.concatenate([np.cos(half), 0.5 * np.sinc(half / np.pi) * rotation], axis=-1)


def log(quaternion: np.ndarray) -> np.ndarray:
    """Shortest rotation vector (..., 3) [rad] of a unit quaternion (..., 4)."""
    sign = np.where(quaternion[..., :1] < 0, -1.0, 1.0)
    w, v = sign * quaternion[..., :1], sign * quaternion[..., 1:]
    n = np.linalg.norm(v, axis=-1, keepdims=True)
    return v * np.where(
        n > _SMALL, 2.0 * np.arctan2(n, w) / np.where(n > _SMALL, n, 1.0), 2.0 / np.where(w > 0, w, 1.0)
    )


def log_jacobian(quaternion: np.ndarray) -> np.ndarray:
    """Derivative (..., 3, 4) of :func:`log` with respect to the four quaternion numbers."""
    sign = np.where(quaternion[..., :1] < 0, -1.0, 1.0)
    w, v = sign * quaternion[..., :1], sign * quaternion[..., 1:]
    n = np.linalg.norm(v, axis=-1, keepdims=True)
    small = n <= _SMALL
    safe = np.where(small, 1.0, n)
    angle, square = 2.0 * np.arctan2(n, w), n**2 + w**2
    by_w = np.where(small, -2.0 * v / np.where(w > 0, w, 1.0)**2, -2.0 * v / square)
    along = np.where(small, 2.0 / np.where(w > 0, w, 1.0), angle / safe)
    radial = np.where(small, 0.0, (2.0 * w / square - angle / safe) / safe**2)
    by_v = along[..., None] * np.eye(3) + radial[..., None] * v[..., :, None] * v[..., None, :]
    return sign[..., None] * np.concatenate([by_w[..., None], by_v], axis=-1)


def skew(v: np.ndarray) -> np.ndarray:
    """Cross-product matrices (..., 3, 3) of vectors (..., 3)."""
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    zero = np.zeros_like(x)
    rows = [np.stack(row, axis=-1) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))]
    return np.stack(rows, axis=-2)


def right_jacobian_inverse(rotation: np.ndarray) -> np.ndarray:
    """Jr^-1 (..., 3, 3): log(exp(r) exp(d)) = r + Jr^-1(r) d + O(d^2); the left one is its transpose."""
    angle = np.linalg.norm(rotation, axis=-1)[..., None, None]
    small = angle < 1e-4
    safe = np.where(small, 1.0, angle)
    factor = np.where(small, 1.0 / 12.0 + angle**2 / 720.0, 1.0 / safe**2 - 0.5 / (safe * np.tan(0.5 * safe)))
    cross = skew(rotation)
    return np.eye(3) + 0.5 * cross + factor * (cross @ cross)
