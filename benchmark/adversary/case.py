"""What a world hands to the runner: the command a user would type, and the truth that the user does not have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

CLEAN = "clean"


class Case(NamedTuple):
    """One recording on disk.

    Attributes:
        command: arguments after ``contact-estimation``.
        truth: parameter name -> true value, SI.
        note: what was drawn, for a person who looks at a single row.
    """

    command: list[str]
    truth: dict[str, float]
    note: str


class Interval(NamedTuple):
    """One identified parameter: value and 95 % interval."""

    value: float
    lower: float
    upper: float

    @property
    def std(self) -> float:
        """Standard deviation that a Gaussian interval of this width stands for."""
        return (self.upper - self.lower) / 3.92


class World(Protocol):
    """A module of this package that simulates one system's recordings."""

    FAULTS: dict[str, str]
    CONDITIONS: tuple[str, ...]  # those of FAULTS that the method accepts: answers must be right, not flagged
    MAIN: str
    COLUMNS: dict[str, Callable[[list[dict]], str]]  # further columns of the table, of a fault's rows

    @staticmethod
    def write(folder: Path, fault: str, rng: np.random.Generator) -> Case:
        """Simulate, plant ``fault`` (or :data:`CLEAN`), write the files a user would have into ``folder``."""

    @staticmethod
    def read(output: dict) -> dict[str, Interval]:
        """Intervals by parameter name from what ``--json`` printed."""


def between(rng: np.random.Generator, low: float, high: float, signed: bool = False) -> float:
    """Draw uniformly from [low, high], with a random sign where ``signed``."""
    value = rng.uniform(low, high)
    return float(value * rng.choice([-1.0, 1.0])) if signed else float(value)
