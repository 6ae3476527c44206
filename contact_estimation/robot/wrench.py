"""Wrenches between frames.

A wrench is (..., 6): force [N], then torque [Nm] about the frame's origin, in the frame's axes.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.exceptions import shape_error


def rotate(rotation: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """Express a wrench in other axes, about the same point; ``rotation`` (3, 3) takes the given axes to the wanted."""
    wrench = _checked(wrench)
    return np.concatenate([wrench[..., :3] @ rotation.T, wrench[..., 3:] @ rotation.T], axis=-1)


def shift(offset: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """Move a wrench to a point ``offset`` (3,) [m] away from its present reference point, in the same axes."""
    wrench = _checked(wrench)
    force, torque = wrench[..., :3], wrench[..., 3:]
    return np.concatenate([force, torque - np.cross(np.broadcast_to(offset, force.shape), force)], axis=-1)


def transform(rotation: np.ndarray, origin: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """Express a wrench of frame b in frame a; b has the axes ``rotation`` (3, 3) and the ``origin`` (3,) [m] in a."""
    return shift(-np.asarray(origin, float), rotate(rotation, wrench))


def _checked(wrench: np.ndarray) -> np.ndarray:
    wrench = np.array(wrench, dtype=float)
    if wrench.shape[-1:] != (6,):
        raise shape_error("wrench", "wrench", wrench.shape, ("...", 6))
    return wrench
