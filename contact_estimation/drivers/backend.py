"""The backend protocol of a robot, real, simulated or recorded: connect, read, command, close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from contact_estimation.robot.sample import Sample

__all__ = ["Backend", "EquilibriumPose", "Sample"]


@dataclass(frozen=True, eq=False)
class EquilibriumPose:
    """Equilibrium of the impedance controller in the base frame.

    Attributes:
        position: of the TCP (3,) [m].
        rotation: of the TCP (3, 3).
    """

    position: np.ndarray
    rotation: np.ndarray


@runtime_checkable
class Backend(Protocol):
    """A robot; made as ``Class(arm, settings)``, the settings' class being the annotation of that argument.

    A live backend stamps its samples by the wall clock of this computer; ``drivers/clock.py`` maps a controller's own
    stamps to it. The stamps of others are of any clock.

    :meth:`read` runs in a thread of its own; everything else is called by another one.

    Attributes:
        joint_names: its joints, in the order of its arrays.
        commandable: whether :meth:`command` works.
        live: optional; its samples come in real time, not on demand (default False).
        problem: optional; why samples are missing or must not be used, "" if there is no problem (default "").
        counters: optional ``Counter``; what the diagnostics count, by name (default none).
        force_offset: optional; (3,) [N] of its wrist sensor, TCP axes, told where its own control law follows that
            sensor, which shall then subtract it.
        standing: optional method; the equilibrium that leaves the arm where it is without its push, where that is
            another than :meth:`equilibrium` (default :meth:`equilibrium`).
        hold: optional method; takes the equilibrium that ends a motion also where :meth:`command` refuses because the
            arm's samples are bad (default :meth:`command`).
        state_problem: optional method; why the arm must not be commanded now, "" when it may (default "").
        stop_reason: optional method, asked often, also where nobody commands; why commands must end until the next
            activation: what the robot's state or its connection forbids (default ""). A sample that is late or missing
            is none: :meth:`command` refuses it by StaleSampleError, and a deadman judges how long that may last.
        feed: optional method ``(stamp_ns, names, position, velocity, effort, age)``; takes the joint states of a topic,
            which are ``age`` [s] old when they come, where samples come from there.
        attach: optional method ``(send)``; takes a function to which :meth:`command` hands each equilibrium, where the
            arm's own controller is commanded through a topic.
    """

    joint_names: tuple[str, ...]
    commandable: bool

    def connect(self) -> None:
        """Get ready to read.

        Raises:
            DriverError, RecordingError: that is impossible.
        """

    def read(self) -> Sample | None:
        """Wait for the next sample; None after the last one of a finite source."""

    def equilibrium(self) -> EquilibriumPose | None:
        """Return the equilibrium that commands what the arm does now, so that commands begin without a jump."""

    def command(self, pose: EquilibriumPose) -> None:
        """Take a new equilibrium, already limited by :class:`~contact_estimation.control.safety.SafetyFilter`.

        Args:
            pose: equilibrium in the base frame.

        Raises:
            DriverError: this backend takes no commands, or the robot's state forbids them.
            StaleSampleError: the newest sample is too old; the command may be repeated with the next one.
        """

    def close(self) -> None:
        """Release all resources; may be called twice."""
