"""Errors of friction and deflection that grow while something touches the arm: a consider covariance.

An unknown contact keeps the friction of when the arm was last free. What has changed since then is not estimated: its
variance is added to that of the external torque (Schmidt, Application of state-space methods to navigation problems,
1966). It is the sum of

- what motion has changed of the friction, with the error of its model, up to the variance of all that is within bounds;
- the process noise of the friction disturbance that the contact's filters leave out, up to the variance between two
  draws, where the disturbance changes with motion only;
- the square of the lag of a push that changes fast.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from contact_estimation.filters.imm.state import LEAST_DEFLECTION, StateLayout


class FrictionDrift:
    """What has changed since the arm was last free.

    Args:
        layout: parts of the filters' state.
        signals: buffers by name: what a block has measured, and ``hysteresis``.

    Attributes:
        published: (n,) [Nm^2] variance by which an unknown contact's torque may be off, its lag included (one buffer).
    """

    def __init__(self, layout: StateLayout, signals: Mapping[str, np.ndarray]) -> None:
        self._layout, self._signals = layout, signals
        self.published, self._change, self._disturbance = np.zeros((3, layout.n))
        self._q_free, self._deflected = np.zeros(layout.n), np.zeros(layout.m)

    @property
    def variance(self) -> np.ndarray:
        """Variance (n,) [Nm^2] of what has changed of the friction."""
        return self._change + self._disturbance

    def reset(self) -> None:
        """Begin anew: nothing has changed."""
        self._change[:] = self._disturbance[:] = self.published[:] = self._deflected[:] = 0.0

    def follow_free(self) -> None:
        """Take a block in which the arm was free."""
        self.reset()
        self._q_free[:] = self._signals["q_mean"]

    def follow_contact(self, deflection: np.ndarray, left_out: np.ndarray, lag: np.ndarray | float) -> None:
        """Take a block in which something touched the arm.

        Args:
            deflection: (m,) [rad] of the elastic joints by it.
            left_out: (n,) [Nm^2] process noise of the friction disturbance that its filters leave out.
            lag: (n,) [Nm] by which the torque of an unknown contact lags.
        """
        layout, signals = self._layout, self._signals
        np.maximum(self._deflected, np.abs(deflection), out=self._deflected)
        self._change += (1 - layout.frozen_share) * signals["friction_change"]
        np.minimum(self._change, layout.largest_drift, out=self._change)
        if layout.disturbance_moves:
            self._disturbance += left_out * signals["friction_moves"]
            most = 2 * layout.variance[layout.parts["disturbance"]]
            np.minimum(self._disturbance, most, out=self._disturbance)
        np.add(self._change, self._disturbance, out=self.published)
        self.published += lag**2

    def slid(self) -> np.ndarray:
        """Return the variance (n,) [Nm^2] of the change of friction since the arm was last free, by sliding alone.

        Small motion of a joint may be its bending by the push, which changes no friction.
        """
        if self._layout.motor_side:
            return self._change
        moved = (self._signals["q_mean"] - self._q_free) / self._layout.sliding_way
        return np.asarray(-np.expm1(-(moved**2)) * self._change)

    def slack(self) -> np.ndarray:
        """Return what is left (m,) [rad] of the deflections since the arm was last free: hysteresis of the gears."""
        hysteresis = self._signals["hysteresis"]
        return np.asarray(hysteresis * self._deflected / np.hypot(self._deflected, hysteresis + LEAST_DEFLECTION))
