"""Where the contacts' rests move: an alpha-beta tracker of each rest along its normal (Bar-Shalom et al. 2001, 6.5).

A rest moves with a surface, and where the tool slides along a slope that the estimate does not know. The plan
extrapolates it at its velocity, and follows without lag. For a rest r measured every dt along the normal n, the last
one r', their predicted distance h = v dt, velocity v and e = n^T (r - r') - h:

    r - (1 - alpha) e n,  v + alpha e / T_v,   alpha = dt / (dt + T_r),   T_r = max(T_s, 2 age),   T_v = max(T_K, 4 T_r)

A loop through a delay is well damped by a filter of twice that delay, hence 2 age. T_v = 4 T_r damps the tracker
critically. An error of the force moves the rest by its K-th part, so on soft contacts the noise of the rest is large:
the best time constant of such a tracker grows with the root of its noise, T_K = T sqrt(max(K_0 / K, 1)) for a contact
of stiffness K. T_s smooths fresh estimates: an observer takes a part of a commanded step of torque for a contact force,
the plan takes that part back, and without T_s the loop may ring from tick to tick. A normal that turns moves no rest:
heights are those above the last rest, not above the base.

What is known of a pressed contact is its force F. Its rest is told as F / K above the point that presses. A new
estimate of the stiffness K or of the point p on the tool moves that rest, but no surface: h is first moved by
F / K_new - F / K_old + n^T R (p_new - p_old).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: [N/m] K_0, above which the noise of a rest is small beside what smoothing (T_s) leaves of it.
_FIRM = 1e3


@dataclass
class _Track:
    """State of the tracker: time [s]; rests and points (I, 3) [m]; speeds [m/s], stiffness [N/m], force [N] (I,)."""

    t: float
    rests: np.ndarray
    points: np.ndarray
    speed: np.ndarray
    stiffness: np.ndarray
    force: np.ndarray


class RestTracker:
    """Tracks the rests of some contacts.

    Args:
        smoothing: least time constant T_s of the rest [s].
        time: least time constant T of the velocity [s], on contacts of 1 kN/m and more.
        limit: largest speed [m/s]; faster is a rest that jumped.
    """

    def __init__(self, smoothing: float, time: float, limit: float) -> None:
        self._smoothing, self._time, self._limit = smoothing, time, limit
        self.reset()

    def reset(self) -> None:
        """Forget what was seen: the contacts stand still."""
        self._track: _Track | None = None

    def update(
        self,
        t: float,
        age: float,
        rests: np.ndarray,
        normals: np.ndarray,
        tool: tuple[np.ndarray, np.ndarray],
        points: np.ndarray,
        stiffness: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return rests (I, 3) [m] and their velocities (I, 3) [m/s] at the time of the sample.

        Args:
            t: time of the sample [s].
            age: of the estimate [s].
            rests: (I, 3) [m], base frame.
            normals: (I, 3) unit normals; motion across them is not tracked.
            tool: position (3,) [m] and rotation (3, 3) of the TCP, base frame.
            points: (I, 3) points of the tool that touch [m], TCP frame.
            stiffness: (I,) [N/m].
        """
        x, rotation = tool
        depth = np.sum((rests - x - points @ rotation.T) * normals, axis=1)  # (I,) [m]
        force = stiffness * np.maximum(depth, 0.0)  # (I,) [N]
        if self._track is None:
            self._track = _Track(t, rests.copy(), points, np.zeros(len(rests)), stiffness, force)
        track, step = self._track, t - self._track.t
        if step > 0.0:
            smoothing = max(self._smoothing, 2.0 * age)
            alpha = step / (step + smoothing)
            restated = track.force / stiffness - track.force / track.stiffness  # (I,) [m]
            restated += np.sum((points - track.points) @ rotation.T * normals, axis=1)
            moved = np.sum((rests - track.rests) * normals, axis=1)  # (I,) [m]
            error = moved - restated - step * track.speed
            time = self._time * np.sqrt(np.maximum(_FIRM / stiffness, 1.0))  # (I,) [s]
            speed = track.speed + alpha * error / np.maximum(time, max(4.0 * smoothing, step))
            speed = np.clip(speed, -self._limit, self._limit)
            filtered = rests - (1.0 - alpha) * error[:, None] * normals
            track = self._track = _Track(t, filtered, points, speed, stiffness, force)
        return track.rests.copy(), track.speed[:, None] * normals
