"""Wrenches between frames. A wrench is (..., 6): force [N], then torque [Nm] about the frame's origin, in the frame's
axes."""

from __future__ import annotations

import numpy as np

from contact_estimation.exceptions import shape_error


def rotate(rotation: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """The same wrench in other axes: ``rotation`` (3, 3) takes the given axes to the wanted ones; the reference point
    stays."""
    wrench = _checked(wrench)
    return np.concatenate([wrench[..., :3] @ rotation.T, wrench[..., 3:] @ rotation.T], axis=-1)


def shift(offset: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """The wrench about a point ``offset`` (3,) [m] away from its present reference point, in the same axes."""
    wrench = _checked(wrench)
    force, torque = wrench[..., :3], wrench[..., 3:]
    return np.concatenate([force, torque - np.cross(np.broadcast_to(offset, force.shape), force)], axis=-1)


def transform(rotation: np.ndarray, origin: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """Wrench of frame b expressed in frame a, where b's axes are ``rotation`` (3, 3) and its origin ``origin`` (3,) [m]
    in a."""
    return shift(-np.asarray(origin, float), rotate(rotation, wrench))


def _checked(wrench) -> np.ndarray:
    wrench = np.asarray(wrench, float)
    if wrench.shape[-1:] != (6,):
        raise shape_error("wrench", "wrench", wrench.shape, ("...", 6))
    return wrench
