"""The first seconds of a world that nobody chose, and what the default observer says of them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from contact_estimation.filters.observer import Estimate

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmark"))
from random_worlds import draw, replay
from rigid_body_recording import Recording


def estimates_of(seed: int, seconds: float) -> tuple[Recording, list[tuple[int, Estimate]]]:
    """Return a UR16e's recording and, for every sample that arrives, its index and the estimate."""
    drawn = draw("ur16e", seed)
    found = replay("ur16e", drawn, seconds)
    return drawn.recording, list(zip(np.flatnonzero(drawn.seen).tolist(), found))
