"""The task's path: there and back, minimum jerk at both ends (Flash and Hogan 1985)."""

from __future__ import annotations

import numpy as np

#: Peak speed of a minimum-jerk motion over its mean speed.
PEAK_SPEED = 1.875


def path_share(passes: np.ndarray, back: bool = True) -> np.ndarray:
    """Return the share (0 to 1) of the way after ``passes`` passages.

    Args:
        passes: passages since the task began.
        back: there and back; otherwise it ends at the end of the way.
    """
    passes = passes if back else np.minimum(passes, 1.0)
    s = np.abs((np.asarray(passes) + 1.0) % 2.0 - 1.0)
    return np.asarray(s**3 * (10.0 - 15.0 * s + 6.0 * s * s))


def turned_back(passes: float, share: float) -> float:
    """Return the passages after which a task at ``share`` of its way goes on in the other direction.

    Args:
        passes: passages up to now.
        share: of the way, 0 to 1, where the tool is.
    """
    s = np.linspace(0.0, 1.0, 201)
    part = float(np.interp(share, path_share(s), s))
    begun = np.floor(passes / 2.0) * 2.0
    return float(begun + 2.0 - part) if passes - begun < 1.0 else float(begun + 2.0 + part)


def detour(way: float, lift: np.ndarray, back: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the displacement (3,) [m] after ``way`` [m] of a detour, and whether it sinks: up, back, and down again.

    Args:
        way: gone so far [m].
        lift: (3,) first leg [m]; the last one is against it, without end.
        back: (3,) second leg [m].
    """
    up, across = float(np.linalg.norm(lift)), float(np.linalg.norm(back))
    if way < up:
        return lift * (way / up), False
    if way < up + across:
        return lift + back * ((way - up) / across), False
    return lift + back - lift * ((way - up - across) / up), True
