"""A Franka arm through pylibfranka as a backend; the package is imported only when this driver connects.

States have the total link-side joint torque (``tau_J``, which includes gravity). Reading does not take control of the
arm. Commands need the impedance controller of franka_ros2 (driver ``joint_torque``), whose real-time loop is not a
Python process.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.drivers.clock import ClockOffset
from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.robot import Arm
from contact_estimation.settings import key

#: [s] Pause before a lost connection is tried again.
_PAUSE = 0.5


@dataclass(frozen=True, kw_only=True)
class FrankaSettings:
    """Connection to a Franka controller."""

    host: str = key("127.0.0.1", doc="address of the controller")


class FrankaBackend:
    """A Franka arm, read only.

    Args:
        arm: the robot.
        settings: of the driver.

    Attributes:
        problem: why samples are missing, "" if there is no problem.

    Raises:
        ConfigError: the arm has not 7 joints.
    """

    commandable, live = False, True

    def __init__(self, arm: Arm, settings: FrankaSettings) -> None:
        if arm.n != 7:
            raise ConfigError(f"driver franka is for arms with 7 joints; robot '{arm.name}' has {arm.n}")
        self.joint_names = tuple(arm.joint_names)
        self._host = settings.host
        self.problem = "not connected"
        self._robot: Any = None  # pylibfranka's own class; None between two connections
        self._clock = ClockOffset()
        self._closed = threading.Event()
        self._closed.set()

    def connect(self) -> None:
        """Connect.

        Raises:
            DriverError: the optional package is missing, or the arm does not answer.
        """
        self._open()
        self._closed.clear()

    def _open(self) -> None:
        """Open a connection; its states' clock begins anew."""
        try:
            import pylibfranka
        except ImportError as error:
            raise DriverError(
                "driver franka needs the optional package pylibfranka: pip install pylibfranka (it must match the "
                "arm's system version); or run franka_ros2 and choose driver joint_torque"
            ) from error
        try:
            self._robot = pylibfranka.Robot(self._host)
        except Exception as error:  # the library's own exception types differ by version
            raise DriverError(
                f"the Franka arm at {self._host} does not answer: {error}; is FCI active and the address right?"
            ) from error
        self._clock.restart()
        self.problem = ""

    def read(self) -> Sample | None:
        """Return the next state, at the arm's 1 kHz; connects again after a lost connection, None after :meth:`close`.

        Raises:
            DriverError: not connected, the state is not finite, or the connection broke; the next call tries again.
        """
        if self._closed.is_set():
            raise DriverError("the Franka driver is not connected; call connect() first")
        if self._robot is None:
            if self._closed.wait(_PAUSE):
                return None
            self._open()
        try:
            state = self._robot.read_once()
        except Exception as error:
            self._robot = None
            if self._closed.is_set():
                return None
            self.problem = f"the connection to the Franka arm at {self._host} broke: {error}"
            raise DriverError(self.problem) from error
        arrived, wall = time.monotonic_ns(), time.time_ns()
        q, dq, tau = (np.array(values, float) for values in (state.q, state.dq, state.tau_J))
        if not (np.isfinite(q).all() and np.isfinite(dq).all() and np.isfinite(tau).all()):
            raise DriverError(f"the Franka arm at {self._host} reports a state that is not finite")
        return Sample(self._clock.stamp(round(1e9 * state.time.to_sec()), arrived, wall), q, dq, tau)

    def equilibrium(self) -> EquilibriumPose | None:
        """Unknown here."""
        return None

    def command(self, pose: EquilibriumPose) -> None:
        """Refuse: this driver only reads.

        Args:
            pose: equilibrium in the base frame.

        Raises:
            DriverError: always.
        """
        raise DriverError("driver franka only reads; command the arm through franka_ros2 and driver joint_torque")

    def close(self) -> None:
        """Close the connection."""
        self._closed.set()
        self._robot, self.problem = None, "not connected"
