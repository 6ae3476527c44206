"""Sensor channels: measurements at their own rate, and their prediction by the model.

Channels may be missing, have gaps (NaN) and different rates. On the trajectory's grid a channel has one value and one
multiplicity per time. The value is the mean of the samples in the time's window bin, or an interpolation if the sensor
is slower than the grid. The multiplicity is the number of samples of that bin. The cost is therefore an integral over
time that does not depend on the grid.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import mujoco
import numpy as np
import scipy.ndimage

from contact_estimation.exceptions import IdentificationError, RecordingError
from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.batch.names import unknown

TORQUE = "torque"
_SAME = 1e-3  # share of a sample's period within which a time is that sample's
MODELS = ("sensor", "orientation", TORQUE)


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Raw samples of one channel: t (k,) [s] increasing, values (k, m); rows with NaN are gaps."""

    t: Array
    values: Array

    def __post_init__(self) -> None:
        values = np.asarray(self.values, float)
        values = values[:, None] if values.ndim == 1 else values
        object.__setattr__(self, "t", np.asarray(self.t, float))
        object.__setattr__(self, "values", values)
        if self.t.ndim != 1 or len(self.t) != len(values) or len(self.t) < 2:
            raise RecordingError(
                f"a channel needs at least 2 samples at increasing times, given times {self.t.shape} and "
                f"values {values.shape}"
            )
        increasing = np.diff(self.t) > 0
        if not np.all(increasing):
            at = int(np.argmin(increasing))
            raise RecordingError(
                f"the times of a channel must increase, sample {at} is at {self.t[at]:.6g} s and the next at "
                f"{self.t[at + 1]:.6g} s; sort the samples and drop repeated ones"
            )

    def earlier(self, delay: float) -> Measurement:
        """Return the samples as those of a clock that was late by ``delay`` [s]."""
        return Measurement(self.t - delay, self.values)

    def slope(self, width: float, unit_quaternion: bool = False) -> Measurement:
        """Return the rate of change of the samples, smoothed by a Gaussian.

        Args:
            width: its standard deviation [s].
            unit_quaternion: whether the values are unit quaternions, whose sign is free.
        """
        keep = np.all(np.isfinite(self.values), axis=1)
        even = np.arange(self.t[0], self.t[-1], 1.0 / self.rate)
        values = _aligned(self.values[keep]) if unit_quaternion else self.values[keep]
        filled = np.column_stack([np.interp(even, self.t[keep], column) for column in values.T])
        by_sample = scipy.ndimage.gaussian_filter1d(filled, width * self.rate, axis=0, order=1, mode="nearest")
        return Measurement(even, by_sample * self.rate)

    @property
    def rate(self) -> float:
        """Median sample rate [Hz]."""
        return 1.0 / float(np.median(np.diff(self.t)))


@dataclasses.dataclass(frozen=True)
class Channel:
    """Kind of a measurement in the cost.

    ``sensor`` compares with MuJoCo sensors, ``orientation`` with a frame-quaternion sensor (residual: rotation vector
    of the error), ``torque`` is the motors' generalised force u.
    """

    name: str  # of the measurement
    model: str  # one of MODELS
    targets: tuple[str, ...]  # MuJoCo sensors in order, or actuated joints
    std: float | tuple[float, ...]  # noise per number, in the sensor's unit (rad for an orientation)
    barrier: float | None = None  # scale of the exponential barrier, same unit; None for the quadratic norm
    weight: float = 1.0  # factor on the channel's cost; 0 predicts the channel without using it

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise IdentificationError(f"channel '{self.name}': model '{self.model}' is not one of {', '.join(MODELS)}")
        if np.any(np.asarray(self.std) <= 0) or self.weight < 0 or (self.barrier is not None and self.barrier <= 0):
            raise IdentificationError(
                f"channel '{self.name}': std and barrier must be positive and weight not negative"
            )


def columns(model: mujoco.MjModel, channel: Channel) -> tuple[Indices, bool]:
    """Sensor-data columns (or dof addresses for torque), and whether all need the motion (velocity or acceleration).

    Raises:
        IdentificationError: a sensor or joint that the model does not have.
    """
    found: list[int] = []
    stages: list[bool] = []
    for target in channel.targets:
        kind = mujoco.mjtObj.mjOBJ_JOINT if channel.model == TORQUE else mujoco.mjtObj.mjOBJ_SENSOR
        index = mujoco.mj_name2id(model, kind, target)
        if index < 0:
            what, count = ("joint", model.njnt) if channel.model == TORQUE else ("sensor", model.nsensor)
            known = [mujoco.mj_id2name(model, kind, k) or "" for k in range(count)]
            raise IdentificationError(f"channel '{channel.name}', key 'targets': {unknown(what, target, known)}")
        if channel.model == TORQUE:
            found.append(int(model.jnt_dofadr[index]))
            stages.append(True)
        else:
            found += range(model.sensor_adr[index], model.sensor_adr[index] + model.sensor_dim[index])
            stages.append(model.sensor_needstage[index] != mujoco.mjtStage.mjSTAGE_POS)
    return np.array(found, int), any(stages)


def resample(
    measurement: Measurement, grid: Array, unit_quaternion: bool = False, breaks: Sequence[int] = ()
) -> tuple[Array, Array]:
    """Values (n, m) on the grid and their multiplicity (n,); 0 where the channel has no sample near.

    Args:
        measurement: raw samples (k, m).
        grid: (n,) times [s].
        unit_quaternion: renormalise after averaging (signs are aligned first).
        breaks: indices of the grid at which another recording begins.
    """
    keep = np.all(np.isfinite(measurement.values), axis=1)
    t, values = measurement.t[keep], measurement.values[keep]
    if len(t) < 2:
        return np.zeros((len(grid), measurement.values.shape[1])), np.zeros(len(grid))
    if unit_quaternion:
        values = _aligned(values)
    halves = [0.5 * np.diff(part) for part in np.split(grid, breaks)]  # the outer cells are symmetric
    left = grid - np.concatenate([np.append(half[0], half) for half in halves])
    right = grid + np.concatenate([np.append(half, half[-1]) for half in halves])
    first, last = np.searchsorted(t, left), np.searchsorted(t, right)
    count = (last - first).astype(float)
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    times = np.concatenate([[0.0], np.cumsum(t)])
    density = (right - left) * measurement.rate
    several = (density >= 1.5) & (count > 0)
    out, at = np.column_stack([np.interp(grid, t, column) for column in values.T]), grid.astype(float)
    out[several] = (sums[last] - sums[first])[several] / count[several, None]
    at[several] = (times[last] - times[first])[several] / count[several]
    # A window bin's mean belongs to the mean of its sample times; the slope between cells moves it to the grid time.
    slopes = [np.gradient(*part, axis=0) for part in zip(np.split(out, breaks), np.split(at, breaks))]
    out += np.concatenate(slopes) * (grid - at)[:, None]
    worth = np.where(several, count, density)
    gap = 1.5 / measurement.rate
    after = np.clip(np.searchsorted(t, grid), 1, len(t) - 1)
    nearest = np.minimum(abs(grid - t[after]), abs(grid - t[after - 1]))
    far = (t[after] - t[after - 1] > 2.0 * gap) & (nearest > _SAME * gap) & ~several
    outside = (grid < t[0] - gap) | (grid > t[-1] + gap)
    worth[far | outside] = 0.0
    if unit_quaternion:
        out /= np.linalg.norm(out, axis=1, keepdims=True)
    return out, worth


def _aligned(values: Array) -> Array:
    """Give quaternions (k, 4) the sign of the one before."""
    flips = np.cumprod(np.where(np.sum(values[1:] * values[:-1], axis=1) < 0, -1.0, 1.0))
    return np.asarray(values * np.concatenate([[1.0], flips])[:, None])
