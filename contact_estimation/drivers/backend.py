"""What every source of samples is: connect, read, close; and what a sample carries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True)
class Sample:
    """One measurement of an arm with n joints.

    ``stamp_ns`` [ns] is in the source's own time (since the epoch for a robot or a bag, since the start for a simulation).
    ``q`` [rad], ``dq`` [rad/s], ``tau`` [Nm] are (n,). ``wrench_tcp`` (6,) [N, Nm] is a measured wrench of the environment ON the
    robot in TCP axes, None without a sensor. ``truth`` maps names of :data:`contact_estimation.io.recording.TRUTH_COLUMNS` to
    what a simulation knows.
    """

    stamp_ns: int
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    wrench_tcp: np.ndarray | None = None
    truth: dict[str, np.ndarray] = field(default_factory=dict)


@runtime_checkable
class Backend(Protocol):
    """A source of samples. ``joint_names`` are its joints, in the order of its arrays."""

    joint_names: tuple[str, ...]

    def connect(self) -> None:
        """Get ready to read; raises DriverError or RecordingError where that is impossible."""

    def read(self) -> Sample | None:
        """The next sample, None after the last."""

    def close(self) -> None:
        """Let go of everything; may be called twice."""
