"""What a killed driver of a joint-torque arm leaves: its last equilibrium, put to where the arm is."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pinocchio as pin

from contact_estimation.control.safety import SafetySettings
from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.robot import Arm

#: [s] Beyond the longest time for which a driver that lives keeps an equilibrium without a word.
_MARGIN = 0.3
#: [m], [rad] An equilibrium that is so close to the arm when it comes leaves no spring to speak of: 3 N at 1 kN/m.
_CLOSE, _ALIGNED = 3e-3, 0.03


class EquilibriumGuard:
    """Watches the equilibria of a driver, and ends the last one where the driver has fallen silent.

    A driver that lives follows every command, and puts the equilibrium to where the arm is before it falls silent. One
    that was killed does not: the arm's own controller keeps the last equilibrium, and a press goes on.

    Args:
        arm: the robot.
        limits: of the driver's commands.
        max_sample_age: of the sample that shows where the arm is [s].
        send: publishes an equilibrium in the driver's place.
        clock: [s], one that only advances; replaceable for tests.

    Attributes:
        silence: time without an equilibrium after which the driver counts as dead [s].
    """

    def __init__(
        self,
        arm: Arm,
        limits: SafetySettings,
        max_sample_age: float,
        send: Callable[[EquilibriumPose], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._arm, self._max_sample_age, self._send, self._clock = arm, max_sample_age, send, clock
        self.silence = max(limits.hold_after, limits.stop_after, limits.release_after) + _MARGIN
        self._sample: tuple[Sample, float] | None = None  # the newest, and when it came [s]
        self._stretched: float | None = None  # when the last equilibrium came, if it is away from the arm [s]

    @property
    def watches(self) -> bool:
        """Whether the last equilibrium would stretch the springs of an arm whose driver is dead."""
        return self._stretched is not None

    def sample(self, sample: Sample) -> None:
        """Take a sample of the arm."""
        self._sample = sample, self._clock()

    def equilibrium(self, pose: EquilibriumPose) -> None:
        """Take an equilibrium that the arm's controller was sent, also by this guard."""
        self._stretched = self._clock() if self._is_away(pose) else None

    def watch(self) -> str:
        """Put the equilibrium to where the arm is, if its driver is silent; return what was done, "" for nothing."""
        if self._stretched is None:
            return ""
        silent = self._clock() - self._stretched
        if silent < self.silence:
            return ""
        if self._sample is None or self._clock() - self._sample[1] > self._max_sample_age:
            return f"the driver has sent no equilibrium for {silent:.1f} s, and the arm no sample: nothing can be sent"
        self._stretched = None
        self._send(EquilibriumPose(*self._arm.tcp_pose(self._sample[0].q)))
        return (
            f"the driver has sent no equilibrium for {silent:.1f} s and left a stretched spring: the equilibrium is "
            "where the arm is"
        )

    def _is_away(self, pose: EquilibriumPose) -> bool:
        """Return whether an equilibrium is away from the arm, as far as that is known."""
        if self._sample is None:
            return True
        position, rotation = self._arm.tcp_pose(self._sample[0].q)
        turned = float(np.linalg.norm(pin.log3(rotation.T @ pose.rotation)))
        return bool(np.linalg.norm(pose.position - position) > _CLOSE or turned > _ALIGNED)
