"""Backends by name: what the nodes choose from."""

from __future__ import annotations

import difflib

from contact_estimation.drivers.backend import Backend
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm

KINDS = ("simulated", "replay")


def make_backend(kind: str, arm: Arm, *, recording: str = "", loop: bool = False, duration: float = 10.0,
                 seed: int = 0) -> Backend:
    """The backend ``kind`` for ``arm``; each takes the options it knows.

    Raises:
        ConfigError: unknown kind; the nearest known one is named.
    """
    if kind == "replay":
        from contact_estimation.drivers.replay import ReplayBackend

        return ReplayBackend(arm, recording, loop)
    if kind == "simulated":
        from contact_estimation.drivers.simulated import SimulatedBackend

        return SimulatedBackend(arm, duration, seed)
    raise ConfigError(f"there is no driver '{kind}' (nearest: '{difflib.get_close_matches(kind, KINDS, n=1, cutoff=0.0)[0]}'); "
                      f"known: {', '.join(KINDS)}")
