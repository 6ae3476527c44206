"""One channel on the trajectory's grid, with the delay, gain and bias that the sensor adds to the truth.

measured(t) = gain true(t - delay) + bias
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.batch import rotations
from contact_estimation.identify.batch.channels import TORQUE, Channel, Measurement, resample
from contact_estimation.identify.batch.parameters import CHANNEL_KINDS, ParameterVector

#: Standard deviation [s] of the Gaussian that smooths a channel for its slope. Noise in the slope would look like
#: information on the delay, because the trajectory follows every smooth slope.
_SMOOTHING = 5e-3
_ASIDE = (1e-5, -1e-5)  # delays [s] that are differenced
_KEPT = 32  # delays in whole periods whose samples are kept; an optimum is surrounded by few


class Correction(NamedTuple):
    """What a channel does to the truth."""

    delay: float = 0.0  # [s]
    gain: float = 1.0
    bias: Array | float = 0.0


class GridChannel:
    """A channel's samples on the grid.

    Args:
        channel: kind of the measurement.
        columns: of the sensor data, or of the degrees of freedom for a torque.
        raw: samples.
        grid: (n,) times [s].
        breaks: indices of the grid at which another recording begins.

    Attributes:
        raw: samples.
        values: (n, m) on the grid.
        worth: (n,) samples per window bin; 0 where there is none.
        part: columns of the residuals that the channel fills; empty for a torque.
    """

    def __init__(
        self, channel: Channel, columns: Indices, raw: Measurement, grid: Array, breaks: Sequence[int]
    ) -> None:
        self.channel, self.columns, self.part = channel, columns, slice(0, 0)
        self.raw, self._grid, self._breaks = raw, grid, breaks
        self._shifted: dict[int, tuple[Array, Array]] = {}
        self.values, self.worth = resample(raw, grid, self.turns, breaks)

    @property
    def name(self) -> str:
        """Name of the measurement."""
        return self.channel.name

    @property
    def turns(self) -> bool:
        """Whether the channel is an orientation."""
        return self.channel.model == "orientation"

    @property
    def is_torque(self) -> bool:
        """Whether the channel is the motors' torque."""
        return self.channel.model == TORQUE

    @property
    def width(self) -> int:
        """Number of residuals per time."""
        return 3 if self.turns else len(self.columns)

    @property
    def kinds(self) -> Sequence[str]:
        """Kinds of parameters that the channel may have."""
        return ("delay",) if self.turns else tuple(CHANNEL_KINDS)

    def numbers(self, kind: str) -> int:
        """Return how many numbers a parameter of a kind has."""
        return len(self.columns) if kind == "bias" else 1

    def residual_columns(self, number: int) -> slice:
        """Return the columns of the problem's residuals that a number of the samples enters."""
        if self.turns:
            return self.part
        first = int(self.columns[number]) if self.is_torque else self.part.start + number
        return slice(first, first + 1)

    def worth_at(self, delay: float) -> Array:
        """Return the samples per window bin (n,) if the channel were late by ``delay`` [s]."""
        return resample(self.raw.earlier(delay), self._grid, self.turns, self._breaks)[1]

    def correction(self, parameters: ParameterVector, p: Array) -> Correction:
        """Return delay, gain and bias at the optimiser's parameters (c,)."""
        found = {
            parameter.kind: value
            for parameter, value, _ in parameters.of_channels(p)
            if self.channel.name in parameter.channels
        }
        delay, gain = (
            float(found[kind][0]) if kind in found else start for kind, start in (("delay", 0.0), ("gain", 1.0))
        )
        return Correction(delay, gain, found.get("bias", 0.0))

    def delayed(self, delay: float) -> Array:
        """Values (n, m), on the grid, of a channel whose clock is late by ``delay`` [s].

        The samples move by whole periods and along their slope for the rest. Interpolation by a part of a period
        would average the noise, and the cost would prefer it.
        """
        return self._moved(delay, 0.0)

    def true(self, correction: Correction) -> Array:
        """Return the values (n, m) that delay, gain and bias leave."""
        return np.asarray((self.delayed(correction.delay) - correction.bias) / correction.gain)

    def residual(self, sensors: Array, times: Indices | slice, correction: Correction) -> Array:
        """Return predicted less measured (k, width) from the sensor data (k, s) at some times."""
        return self._against(self.delayed(correction.delay)[times], sensors, correction)

    def chain(self, sensors: Array, times: Indices | slice, correction: Correction, by: Array) -> Array:
        """Turn derivatives (k, s, nv) of the sensor data into those of the residuals (k, width, nv)."""
        part = by[:, self.columns]
        if not self.turns:
            return correction.gain * part
        measured = self.delayed(correction.delay)[times]
        return _orientation_jacobian(measured, sensors[:, self.columns]) @ part

    def by_delay(self, sensors: Array, times: Indices | slice, correction: Correction) -> Array:
        """Differentiate the residuals by the delay: (k, width)."""
        ends = (self._against(self._moved(correction.delay, step)[times], sensors, correction) for step in _ASIDE)
        return np.asarray(np.subtract(*ends) / np.subtract(*_ASIDE))

    def slope(self, delay: float) -> Array:
        """Differentiate the values (n, m) by the delay."""
        return np.asarray(np.subtract(*(self._moved(delay, step) for step in _ASIDE)) / np.subtract(*_ASIDE))

    def _against(self, measured: Array, sensors: Array, correction: Correction) -> Array:
        predicted = sensors[:, self.columns]
        if self.turns:
            return rotations.log(rotations.multiply(rotations.conjugate(measured), predicted))
        return correction.gain * predicted + correction.bias - measured

    def _moved(self, delay: float, beyond: float) -> Array:
        """Values (n, m) of a clock that is late by ``delay + beyond`` [s]; whole periods are those of ``delay``."""
        period = 1.0 / self.raw.rate
        whole = round(delay / period)
        rest = delay - whole * period + beyond
        if whole == 0 and rest == 0.0:
            return self.values
        if whole not in self._shifted:
            if len(self._shifted) > _KEPT:
                self._shifted.clear()
            moved = self.raw.earlier(whole * period)
            slope = moved.slope(max(_SMOOTHING, 2.0 * period), self.turns)
            self._shifted[whole] = (
                resample(moved, self._grid, self.turns, self._breaks)[0],
                resample(slope, self._grid, False, self._breaks)[0],
            )
        at, rising = self._shifted[whole]
        values = at + rest * rising
        return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True) if self.turns else values)


def _orientation_jacobian(measured: Array, predicted: Array) -> Array:
    """Find the derivative (n, 3, 4) of the error's rotation vector by the predicted quaternion."""
    inverse = rotations.conjugate(measured)
    error = rotations.multiply(inverse, predicted)
    units = [rotations.multiply(inverse, np.broadcast_to(unit, inverse.shape)) for unit in np.eye(4)]
    return rotations.log_jacobian(error) @ np.stack(units, axis=-1)
