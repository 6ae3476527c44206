"""A Franka arm through pylibfranka as a backend; the package is imported only when this driver connects.

States have the total link-side joint torque (``tau_J``, which includes gravity). Reading does not take control of the
arm. Commands need the impedance controller of franka_ros2 (driver ``joint_torque``), whose real-time loop is not a
Python process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.robot import Arm
from contact_estimation.settings import key


@dataclass(frozen=True, kw_only=True)
class FrankaSettings:
    """Connection to a Franka controller."""

    host: str = key("127.0.0.1", doc="address of the controller")


class FrankaBackend:
    """A Franka arm, read only.

    Args:
        arm: the robot.
        settings: of the driver.

    Raises:
        ConfigError: the arm has not 7 joints.
    """

    commandable, live = False, True

    def __init__(self, arm: Arm, settings: FrankaSettings) -> None:
        if arm.n != 7:
            raise ConfigError(f"driver franka is for arms with 7 joints; robot '{arm.name}' has {arm.n}")
        self.joint_names = tuple(arm.joint_names)
        self._host = settings.host
        self._robot: Any = None  # pylibfranka's own class

    def connect(self) -> None:
        """Connect.

        Raises:
            DriverError: the optional package is missing, or the arm does not answer.
        """
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

    def read(self) -> Sample | None:
        """Return the next state, at the arm's 1 kHz.

        Raises:
            DriverError: not connected, the state is not finite, or the connection broke.
        """
        if self._robot is None:
            raise DriverError("the Franka driver is not connected; call connect() first")
        try:
            state = self._robot.read_once()
        except Exception as error:
            raise DriverError(f"the connection to the Franka arm at {self._host} broke: {error}") from error
        q, dq, tau = (np.array(values, float) for values in (state.q, state.dq, state.tau_J))
        if not (np.isfinite(q).all() and np.isfinite(dq).all() and np.isfinite(tau).all()):
            raise DriverError(f"the Franka arm at {self._host} reports a state that is not finite")
        return Sample(round(state.time.to_sec() * 1e9), q, dq, tau)

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
        self._robot = None
