"""Commands on their way from topics to a backend: through the safety filter, watched by the deadman, only while
active."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pinocchio as pin

from contact_estimation.control.safety import SafetyFilter, SafetySettings, SafetyState
from contact_estimation.drivers.backend import Backend, EquilibriumPose, Sample
from contact_estimation.exceptions import DriverError
from contact_estimation.robot import Arm


class CommandGate:
    """Limits wanted equilibria and hands them to ``backend``.

    Args:
        arm, backend: the robot. settings: limits. stiffness: of the impedance that follows the equilibrium (3,) [N/m].

    Attributes:
        state: what the gate does. reason: why nothing passes, "" when all is well. counters: commands passed (and
            of those limited, by limit), held, and stops, since the gate was made.
    """

    def __init__(
        self, arm: Arm, backend: Backend, settings: SafetySettings, stiffness: np.ndarray, clock=time.monotonic
    ):
        self._arm, self._backend, self._clock = arm, backend, clock
        self._filter = SafetyFilter(settings, stiffness)
        self._sample: Sample | None = None
        self._sampled = 0.0
        self.state, self.reason = SafetyState.INACTIVE, "not active"
        self.counters: Counter[str] = Counter()

    def sample(self, sample: Sample) -> None:
        """The newest measurement."""
        self._sample, self._sampled = sample, self._clock()

    def estimate(self, valid: bool) -> None:
        """An estimate came; only a valid one keeps the deadman happy."""
        if valid:
            self._filter.deadman.fresh(self._clock())

    def activate(self) -> None:
        """Let commands pass, from the equilibrium the arm has now (or, where that is unknown, from its pose).

        Raises:
            DriverError: the backend takes none, the arm's pose is unknown, old or outside the workspace, or no valid
            estimate comes in.
        """
        if not self._backend.commandable:
            raise DriverError("this driver takes no commands; choose driver sim, or rtde with control")
        now = self._clock()
        if self._sample is None or now - self._sampled > self._filter.settings.hold_after:
            raise DriverError("cannot activate commands: there is no fresh sample of the arm")
        if self._filter.deadman.state(now) is not SafetyState.ACTIVE:
            raise DriverError(
                "cannot activate commands: no fresh, valid estimate comes in; start the estimator, or name its topic "
                "(estimate_topic)"
            )
        present = self._backend.equilibrium()
        if present is None:
            present = EquilibriumPose(*self._arm.tcp_pose(self._sample.q))
        self._filter.activate(now, present.position, present.rotation)
        self.state, self.reason = SafetyState.ACTIVE, ""

    def deactivate(self) -> None:
        """Let nothing pass; the arm's controller keeps what it has."""
        self._filter.deactivate()
        self.state, self.reason = SafetyState.INACTIVE, "not active"

    def want(self, position, quaternion) -> None:
        """A wanted equilibrium: position (3,) [m], quaternion (x, y, z, w), base frame. Sends what the limits leave of
        it."""
        if not self._filter.active:
            return
        now = self._clock()
        if self._sample is None or now - self._sampled > self._filter.settings.hold_after:
            self._fail(SafetyState.HOLD, "no fresh sample of the arm")
            return
        quaternion = np.array(quaternion, float)
        norm = np.linalg.norm(quaternion)
        if not np.isfinite(norm) or abs(norm - 1.0) > 1e-3:
            self._fail(SafetyState.HOLD, f"the wanted attitude is no unit quaternion: {quaternion}")
            return
        rotation = pin.Quaternion(quaternion / norm).toRotationMatrix()
        command = self._filter.filter(now, np.array(position, float), rotation, self._arm.tcp_pose(self._sample.q)[0])
        if command is None:
            self._fail(SafetyState.STOP, "no fresh, valid estimate: stopped; activate again")
            return
        self.state = command.state
        self.reason = (
            "no fresh, valid estimate: held" if command.state is SafetyState.HOLD else ", ".join(command.limited)
        )
        self.counters["commands held" if command.state is SafetyState.HOLD else "commands passed"] += 1
        self.counters.update(f"commands limited in {name}" for name in command.limited)
        try:
            self._backend.command(EquilibriumPose(command.position, command.rotation))
        except DriverError as error:
            self._filter.deactivate()
            self._fail(SafetyState.STOP, str(error))

    def watch(self) -> None:
        """Call often: without commands too, an estimator that died stops the gate; the arm is held where it is."""
        if not self._filter.active:
            return
        state = self._filter.deadman.state(self._clock())
        if state is SafetyState.STOP and self._sample is not None:
            self._filter.deactivate()
            present = self._backend.equilibrium() or EquilibriumPose(*self._arm.tcp_pose(self._sample.q))
            try:
                self._backend.command(present)
            except DriverError:
                pass  # a backend that refuses commands holds the arm by itself
            self._fail(SafetyState.STOP, "no fresh, valid estimate: stopped; activate again")

    def _fail(self, state: SafetyState, reason: str) -> None:
        self.counters["commands stopped" if state is SafetyState.STOP else "commands held"] += 1
        self.state, self.reason = state, reason
