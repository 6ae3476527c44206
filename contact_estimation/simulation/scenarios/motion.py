"""The reference motion of a scenario: poses of the TCP over time from segments of the first tool point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_estimation.simulation.scenarios.settings import SegmentSettings


@dataclass(frozen=True)
class Reference:
    """Wanted TCP pose and twist (6,) in base axes, and what the segment says about force."""

    position: np.ndarray
    rotation: np.ndarray
    twist: np.ndarray
    segment: SegmentSettings


class Motion:
    """Reference over time; before the first segment and after the last one it stands still.

    Args:
        segments: the segments.
        position: of the TCP at the start (3,) [m], base frame.
        rotation: of the TCP at the start (3, 3), base frame.
        point_tcp: tool point (3,) that moves, TCP frame.
    """

    #: Time in which a linear segment reaches its speed [s], as a jogging robot does.
    RAMP = 0.1

    def __init__(
        self, segments: list[SegmentSettings], position: np.ndarray, rotation: np.ndarray, point_tcp: np.ndarray
    ) -> None:
        self._segments = list(segments)
        self._rotation, self._local = np.array(rotation), np.array(point_tcp, float)
        self._origin = np.array(position) + self._rotation @ self._local
        self._goals = [np.zeros(6)] + [np.concatenate([segment.move, segment.turn]) for segment in segments]
        self._ends = np.cumsum([segment.duration for segment in segments])

    def at(self, t: float) -> Reference:
        """Compute the reference at time ``t`` [s]."""
        i = min(int(np.searchsorted(self._ends, t, side="right")), len(self._segments) - 1)
        segment = self._segments[i]
        start, goal = self._goals[i], self._goals[i + 1]
        begin = self._ends[i] - segment.duration
        share, rate = _blend(segment, t - begin, self.RAMP)
        now, speed = start + share * (goal - start), rate * (goal - start)
        turn = pin.exp3(now[3:])
        # d/dt exp(a(t)) for a(t) on a line through a fixed direction is that of its rate; segments bend only at rest.
        omega = pin.Jexp3(-now[3:]) @ speed[3:]
        rotation = turn @ self._rotation
        lever = rotation @ self._local
        a, b, c = omega
        x, y, z = lever  # np.cross costs as much as all the rest of this function
        velocity = speed[:3] - np.array([b * z - c * y, c * x - a * z, a * y - b * x])
        return Reference(self._origin + now[:3] - lever, rotation, np.concatenate([velocity, omega]), segment)


def _blend(segment: SegmentSettings, t: float, ramp: float) -> tuple[float, float]:
    """Share of the way and its rate [1/s] at time ``t`` [s] in the segment."""
    total = segment.duration
    t = min(max(t, 0.0), total)
    if segment.shape == "smooth":
        s = t / total
        return s**3 * (10 - 15 * s + 6 * s * s), 30 * s * s * (1 - s) ** 2 / total
    ramp = min(ramp, 0.5 * total)
    speed = 1.0 / (total - ramp)
    if t < ramp:
        return 0.5 * speed * t * t / ramp, speed * t / ramp
    if t > total - ramp:
        left = total - t
        return 1.0 - 0.5 * speed * left * left / ramp, speed * left / ramp
    return speed * (t - 0.5 * ramp), speed
