"""Where the contacts' rests move: an alpha-beta tracker of each rest along its normal (Bar-Shalom et al. 2001, 6.5).

A rest moves with a surface, and where the tool slides along a slope that the estimate does not know. The plan
extrapolates it at its velocity, and follows without lag. For a rest r measured every dt along the normal n, the last
one r', their predicted distance h = v dt, velocity v and e = n^T (r - r') - h:

    r - (1 - alpha) e n,  v + alpha e / T_v,        alpha = dt / (dt + T_r),   T_r = 2 age,   T_v = max(T, 4 T_r)

A loop through a delay is well damped by a filter of twice that delay, hence T_r. T_v = 4 T_r damps the tracker
critically. A normal that turns moves no rest: heights are those above the last rest, not above the base.

What is known of a pressed contact is its force F. Its rest is told as F / K above the point that presses. A new
estimate of the stiffness K moves that rest, but no surface: h is first moved by F / K_new - F / K_old.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class _Track:
    """State of the tracker: time [s], rests (I, 3) [m]; along the normals speeds [m/s], stiffness [N/m], force [N]."""

    t: float
    rests: np.ndarray
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
        force = stiffness * np.maximum(np.sum((rests - points) * normals, axis=1), 0.0)  # (I,) [N]
        if self._track is None:
            self._track = _Track(t, rests.copy(), np.zeros(len(rests)), stiffness, force)
        track, step = self._track, t - self._track.t
        if step > 0.0:
            smoothing = 2.0 * age
            alpha = step / (step + smoothing)
            restated = track.force / stiffness - track.force / track.stiffness  # (I,) [m]
            moved = np.sum((rests - track.rests) * normals, axis=1)  # (I,) [m]
            error = moved - restated - step * track.speed
            speed = track.speed + alpha * error / max(self._time, 4.0 * smoothing, step)
            speed = np.clip(speed, -self._limit, self._limit)
            filtered = rests - (1.0 - alpha) * error[:, None] * normals
            track = self._track = _Track(t, filtered, speed, stiffness, force)
        return track.rests.copy(), track.speed[:, None] * normals
