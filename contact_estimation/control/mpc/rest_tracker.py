"""Where the contacts' rests move: an alpha-beta tracker of each rest along its normal (Bar-Shalom et al. 2001, 6.5).

A rest moves with a surface, and where the tool slides along a slope. The plan extrapolates it at its velocity, and
follows without lag. For a rest r measured every dt, predicted h, velocity v and e = r - h:

    h + alpha e,  v + alpha e / T_v,        alpha = dt / (dt + T_r),   T_r = 2 age,   T_v = max(T, 4 T_r)

A loop through a delay is well damped by a filter of twice that delay, hence T_r. T_v = 4 T_r damps the tracker
critically.

What is known of a pressed contact is its force F. Its rest is told as F / K above the point that presses. A new
estimate of the stiffness K moves that rest, but no surface: h is first moved by F / K_new - F / K_old.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class _Track:
    """State of the tracker, along the normals: time [s], heights [m], speeds [m/s], forces [N]; (I,) each."""

    t: float
    height: np.ndarray
    speed: np.ndarray
    stiffness: np.ndarray
    force: np.ndarray


class RestTracker:
    """Tracks the rests of some contacts.

    Args:
        time: least time constant T of the velocity [s].
        limit: largest speed [m/s]; faster is a rest that jumped.
    """

    def __init__(self, time: float, limit: float) -> None:
        self._time, self._limit = time, limit
        self.reset()

    def reset(self) -> None:
        """Forget what was seen: the contacts stand still."""
        self._track: _Track | None = None

    def update(
        self, t: float, age: float, rests: np.ndarray, normals: np.ndarray, points: np.ndarray, stiffness: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return rests (I, 3) [m] and their velocities (I, 3) [m/s] at the time of the sample.

        Args:
            t: time of the sample [s].
            age: of the estimate [s].
            rests: (I, 3) [m], base frame.
            normals: (I, 3) unit normals; motion across them is not tracked.
            points: (I, 3) points of the tool that touch [m], base frame.
            stiffness: (I,) [N/m].
        """
        measured = np.sum(rests * normals, axis=1)  # (I,) [m]
        force = stiffness * np.maximum(np.sum((rests - points) * normals, axis=1), 0.0)  # (I,) [N]
        if self._track is None:
            self._track = _Track(t, measured, np.zeros(len(rests)), stiffness, force)
        track, step = self._track, t - self._track.t
        if step > 0.0:
            smoothing = 2.0 * age
            alpha = step / (step + smoothing)
            restated = track.force / stiffness - track.force / track.stiffness  # (I,) [m]
            predicted = track.height + restated + step * track.speed
            error = measured - predicted
            speed = track.speed + alpha * error / max(self._time, 4.0 * smoothing, step)
            speed = np.clip(speed, -self._limit, self._limit)
            track = self._track = _Track(t, predicted + alpha * error, speed, stiffness, force)
        moved = rests + (track.height - measured)[:, None] * normals
        return moved, track.speed[:, None] * normals
