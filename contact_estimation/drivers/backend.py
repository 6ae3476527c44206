"""What every robot, real, simulated or recorded, is to the rest: connect, read, command, close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from contact_estimation.robot.sample import Sample

__all__ = ["Backend", "EquilibriumPose", "Sample"]


@dataclass(frozen=True, eq=False)
class EquilibriumPose:
    """Equilibrium of the impedance controller: TCP ``position`` (3,) [m] and ``rotation`` (3, 3) in the base frame."""

    position: np.ndarray
    rotation: np.ndarray


@runtime_checkable
class Backend(Protocol):
    """A robot. ``joint_names`` are its joints, in the order of its arrays; ``commandable`` says whether
    :meth:`command` works."""

    joint_names: tuple[str, ...]
    commandable: bool

    def connect(self) -> None:
        """Get ready to read; raises DriverError or RecordingError where that is impossible."""

    def read(self) -> Sample | None:
        """The next sample; waits for it. None after the last one of a finite source."""

    def equilibrium(self) -> EquilibriumPose | None:
        """The equilibrium that commands what the arm does now, where commands begin without a jump; None if unknown."""

    def command(self, pose: EquilibriumPose) -> None:
        """Take a new equilibrium, already limited by :class:`~contact_estimation.control.safety.SafetyFilter`.

        Raises:
            DriverError: this backend takes no commands, or the robot's state forbids them.
        """

    def close(self) -> None:
        """Let go of everything; may be called twice."""
