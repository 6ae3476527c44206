"""A recording as a source of samples."""

from __future__ import annotations

from dataclasses import dataclass

from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.io.open import open_recording
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm
from contact_estimation.settings import key


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """Settings of the replay."""

    recording: str = key("", doc="path of the rosbag2 or .npz to play")
    loop: bool = key(False, doc="start again at the end; the stamps jump back then")


class ReplayBackend:
    """Plays a recording of ``arm``.

    Args:
        arm: the robot.
        settings: of the driver.
    """

    commandable = False

    def __init__(self, arm: Arm, settings: ReplaySettings) -> None:
        self.joint_names = tuple(arm.joint_names)
        self.recording: Recording | None = None
        self._arm, self._settings = arm, settings
        self._row = 0

    def connect(self) -> None:
        """Read the recording.

        Raises:
            ConfigError: none is named.
            RecordingError: it cannot be used.
        """
        if not self._settings.recording:
            raise ConfigError("no recording to play: set the parameter 'recording' to a rosbag2 or .npz")
        self.recording = open_recording(
            self._settings.recording,
            self.joint_names,
            base_frame=self._arm.base_frame,
            rotation=lambda q: self._arm.tcp_poses(q)[1],
        )
        self._row = 0

    def read(self) -> Sample | None:
        """Return the next sample.

        Raises:
            DriverError: the backend is not connected.
        """
        recording = self.recording
        if recording is None:
            raise DriverError("the recording is not open; call connect() first")
        if self._row == len(recording):
            if not self._settings.loop:
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
        """Refuse: nothing here moves.

        Args:
            pose: equilibrium in the base frame.

        Raises:
            DriverError: always.
        """
        raise DriverError("a recording cannot be commanded; choose driver simulated or rtde")

    def close(self) -> None:
        """Forget the recording."""
        self.recording = None
