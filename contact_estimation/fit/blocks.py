"""What the unbiased fit needs of a recording: external torque and friction columns, averaged over blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import butter, sosfiltfilt

from contact_estimation.fit.calibration.regression import integrated_time, robust_scale
from contact_estimation.fit.features import step_features
from contact_estimation.fit.states import FilteredStates
from contact_estimation.robot import Arm
from contact_estimation.robot.friction import apply_deadband, presliding_states

MAX_TIME = 3.0  #: [s] longest autocorrelation time of residuals that is looked for


@dataclass(frozen=True)
class Blocks:
    """Block means of one recording.

    Attributes:
        y: (T, n) external torque [Nm].
        nuisance: (T, n, k) friction columns.
        inputs: (T, 12 + 6 n) of the generated contact: TCP position, rotation and Jacobian, column-major.
        rate: blocks per second [Hz].
    """

    y: np.ndarray
    nuisance: np.ndarray
    inputs: np.ndarray
    rate: float

    @property
    def position(self) -> np.ndarray:
        """TCP position (T, 3) [m]."""
        return np.asarray(self.inputs[:, :3])

    @property
    def rotation(self) -> np.ndarray:
        """TCP rotation (T, 3, 3)."""
        return np.asarray(self.inputs[:, 3:12].reshape(-1, 3, 3).transpose(0, 2, 1))


def block_means(arm: Arm, states: FilteredStates, block: float, presliding: float, friction: bool) -> Blocks:
    """Return block means of filtered states.

    The friction columns are -[1, dq, s]: the torque that friction takes from the motors is missing in y.

    Args:
        arm: the robot.
        states: filtered states.
        block: length of a block [s].
        presliding: breakaway length [rad].
        friction: whether friction columns are wanted.
    """
    f = step_features(arm, states.h, states.q[:-1], states.dq[:-1], states.tau[:-1], states.q[1:], states.dq[1:])
    y = np.linalg.solve(f.inverse, f.error_dq[:, :, None])[:, :, 0] / f.h
    size = max(1, round(block / f.h))
    count = len(y) // size

    def mean(values: np.ndarray) -> np.ndarray:
        return np.asarray(values[: count * size].reshape(count, size, *values.shape[1:]).mean(axis=1))

    smooth = sosfiltfilt(butter(2, min(8.0, 0.2 / f.h), fs=1 / f.h, output="sos"), states.q[:-1], axis=0)
    sliding = presliding_states(apply_deadband(smooth), np.asarray(presliding))
    columns = [-np.ones_like(y), -states.dq[:-1], -sliding] if friction else []
    nuisance = np.stack([mean(c) for c in columns], axis=2) if columns else np.zeros((count, arm.n, 0))
    middle = slice(size // 2, count * size, size)
    inputs = np.hstack(
        [
            f.position[middle],
            f.rotation[middle].transpose(0, 2, 1).reshape(count, -1),
            f.jacobian[middle].transpose(0, 2, 1).reshape(count, -1),
        ]
    )
    return Blocks(mean(y), nuisance, inputs, 1 / f.h / size)


def noise_of(residual: Sequence[np.ndarray], blocks: Sequence[Blocks]) -> tuple[np.ndarray, np.ndarray]:
    """Return standard deviation (n,) of residuals and their integrated autocorrelation time (n,) in blocks.

    Args:
        residual: (T, n) of each recording.
        blocks: of each recording.
    """
    times = [[integrated_time(c, int(MAX_TIME * b.rate)) for c in r.T] for r, b in zip(residual, blocks)]
    return robust_scale(np.concatenate(residual)), np.max(times, axis=0)
