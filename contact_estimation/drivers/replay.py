"""A recording as a source of samples."""

from __future__ import annotations

from pathlib import Path

from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.io.open import open_recording
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm


class ReplayBackend:
    """Plays the recording at ``path`` for ``arm``; over and over with ``loop`` (the stamps jump back then)."""

    commandable = False

    def __init__(self, arm: Arm, path: str | Path, loop: bool = False):
        self.joint_names = tuple(arm.joint_names)
        self.recording: Recording | None = None
        self._arm, self._path, self._loop = arm, path, loop
        self._row = 0

    def connect(self) -> None:
        """Read the recording; raises ConfigError where none is named, RecordingError where it cannot be used."""
        if not str(self._path):
            raise ConfigError("no recording to play: set the parameter 'recording' to a rosbag2 or .npz")
        self.recording = open_recording(
            self._path, self.joint_names, base_frame=self._arm.base_frame, rotation=lambda q: self._arm.tcp_poses(q)[1]
        )
        self._row = 0

    def read(self) -> Sample | None:
        """The next sample."""
        recording = self.recording
        if self._row == len(recording):
            if not self._loop:
                return None
            self._row = 0
        row, self._row = self._row, self._row + 1
        return Sample(
            int(recording.stamps_ns[row]),
            recording.q[row],
            recording.dq[row],
            recording.tau[row],
            None if recording.wrench_tcp is None else recording.wrench_tcp[row],
            {name: values[row] for name, values in recording.truth.items()},
        )

    def equilibrium(self) -> EquilibriumPose | None:
        """Unknown here."""
        return None

    def command(self, pose: EquilibriumPose) -> None:
        """Refused: nothing here moves."""
        raise DriverError("a recording cannot be commanded; choose driver sim or rtde")

    def close(self) -> None:
        """Forget the recording."""
        self.recording = None
