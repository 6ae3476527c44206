"""Commands from topics to a backend: within limits, checked by the deadman, and only while the node is active."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pinocchio as pin

from contact_estimation.control.safety import SafetyFilter, SafetySettings, SafetyState
from contact_estimation.drivers.backend import Backend, EquilibriumPose, Sample
from contact_estimation.exceptions import DriverError, StaleSampleError
from contact_estimation.robot import Arm
from contact_estimation.ros.arrival import JUST_NOW, Arrival, OnePublisher

#: Limits that keep an equilibrium from where it is wanted; the others only delay it.
_LASTING = ("workspace", "force", "torque")
#: [s] Commands that such a limit changes for longer ask for more than the limits allow.
_LONG = 1.0


class CommandGate:
    """Limits wanted equilibria and hands them to ``backend``.

    A command counts where it is of the present and of the planner that commands so far. When none has counted for
    ``release_after`` the planner is taken for gone, and the equilibrium goes to where the arm is. The next command, of
    any planner, goes on from there. An arm that nobody has commanded since the activation is left as it is.

    Args:
        arm: the robot.
        backend: connection to it.
        settings: limits.
        stiffness: of the impedance that follows the equilibrium: (3,) [N/m] and (3,) [Nm/rad].

    Attributes:
        state: what the gate does.
        reason: why nothing passes, "" when all is well.
        counters: commands passed (and of those limited, by limit), held, of a second planner, stops, and silent
            planners, since the gate was made.
        planner: of which publisher commands count.
    """

    def __init__(
        self,
        arm: Arm,
        backend: Backend,
        settings: SafetySettings,
        stiffness: tuple[np.ndarray, np.ndarray],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._arm = arm.for_another_thread()  # than the one that reads the samples
        self._backend, self._clock = backend, clock
        self._filter = SafetyFilter(settings, *stiffness)
        self._sample: Sample | None = None
        self._sampled, self._stamp_ns = 0.0, 0
        self._complaint = ""
        self._commanded: float | None = None  # when the last command that counts was issued [s]; None: nobody commands
        self._limited: tuple[float, float, str] | None = None  # first and last of such commands [s], and by what
        self.planner = OnePublisher(settings.release_after)
        self.state, self.reason = SafetyState.INACTIVE, "not active"
        self.counters: Counter[str] = Counter()

    def sample(self, sample: Sample, stamp_ns: int) -> None:
        """Take note of the newest measurement, published under ``stamp_ns`` [ns]."""
        self._sample, self._sampled, self._stamp_ns = sample, self._clock(), stamp_ns

    @property
    def silence(self) -> float:
        """Time since the last sample [s]; infinite before the first."""
        return math.inf if self._sample is None else self._clock() - self._sampled

    @property
    def now_ns(self) -> int:
        """The present on the clock of the samples' stamps [ns], whatever the wall clock does."""
        return self._stamp_ns + round(1e9 * (self._clock() - self._sampled))

    @property
    def limited(self) -> str:
        """Which limits have changed every command for long, so that what is wanted is never reached; else ""."""
        if self._limited is None or not self._filter.active or self._commanded is None:
            return ""
        begun, last, names = self._limited
        if last - begun <= _LONG:
            return ""
        return (
            f"every command of the last {last - begun:.0f} s was limited in {names}: the planner wants more than the "
            "limits allow, and does not reach it; want less, or name other limits (parameter safety)"
        )

    def estimate(self, age: float, problem: str) -> None:
        """Note an estimate; only one without a problem keeps the deadman happy, and only until it is too old.

        Args:
            age: of the sample it was made from [s].
            problem: why it does not count, or an empty string.
        """
        self._complaint = problem
        if problem:
            self.counters["estimates not counted"] += 1
        else:
            self._filter.deadman.fresh(self._clock() - max(age, 0.0))

    def activate(self) -> None:
        """Let commands pass, from the equilibrium the arm has now (or, where that is unknown, from its pose).

        Raises:
            DriverError: the backend takes none, the arm or its controller would execute none, the arm's pose is
                unknown, old or outside the workspace, or no valid estimate comes in.
        """
        if not self._backend.commandable:
            raise DriverError(
                "this driver takes no commands; choose driver simulated, or rtde or joint_torque with control: true"
            )
        now = self._clock()
        if self._sample is None or now - self._sampled > self._filter.settings.hold_after:
            raise DriverError("cannot activate commands: there is no fresh sample of the arm")
        if why := getattr(self._backend, "state_problem", str)():
            raise DriverError(f"cannot activate commands: {why}")
        if self._filter.deadman.state(now) is not SafetyState.ACTIVE:
            raise DriverError(
                f"cannot activate commands: no fresh, valid estimate comes in ({self._complaint or 'none came'}); "
                "start the estimator, or name its topic (estimate_topic)"
            )
        present = self._backend.equilibrium()
        if present is None:
            present = EquilibriumPose(*self._arm.tcp_pose(self._sample.q))
        self._filter.activate(now, present.position, present.rotation)
        self._commanded = self._limited = None
        self.state, self.reason = SafetyState.ACTIVE, ""

    def deactivate(self) -> None:
        """Block commands; the arm's controller keeps its last equilibrium."""
        self._filter.deactivate()
        self.state, self.reason = SafetyState.INACTIVE, "not active"

    def set_target(
        self, position: Sequence[float], quaternion: Sequence[float], stamp_ns: int = 0, arrival: Arrival = JUST_NOW
    ) -> None:
        """Send an equilibrium within the limits.

        Args:
            position: of the TCP (3,) [m], base frame.
            quaternion: its attitude (x, y, z, w).
            stamp_ns: time that the command is for, on the clock of the samples' stamps [ns]; 0: as it was received.
            arrival: of its message.
        """
        if not self._filter.active:
            return
        now = self._clock()
        if past := self._of_another_time(stamp_ns, arrival):
            self._fail(SafetyState.HOLD, past)
            return
        if not self.planner.follows(arrival.number, now - arrival.waited):
            self.counters["commands of a second planner"] += 1
            return
        if self._sample is None or now - self._sampled > self._filter.settings.hold_after:
            self._fail(SafetyState.HOLD, "no fresh sample of the arm")
            return
        attitude = np.array(quaternion, float)
        norm = np.linalg.norm(attitude)
        if not np.isfinite(norm) or abs(norm - 1.0) > 1e-3:
            self._fail(SafetyState.HOLD, f"the wanted attitude is no unit quaternion: {quaternion}")
            return
        rotation = pin.Quaternion(attitude / norm).toRotationMatrix()
        command = self._filter.filter(now, np.array(position, float), rotation, *self._arm.tcp_pose(self._sample.q))
        if command is None:
            self._stop(self._missing("stopped; activate again"), self._sample)
            return
        if "not finite" not in command.limited:
            self._commanded = now - arrival.waited
        self.state = command.state
        self.reason = self._missing("held") if command.state is SafetyState.HOLD else ", ".join(command.limited)
        self.counters["commands held" if command.state is SafetyState.HOLD else "commands passed"] += 1
        self.counters.update(f"commands limited in {name}" for name in command.limited)
        names = ", ".join(name for name in command.limited if name in _LASTING)
        self._limited = (now if self._limited is None else self._limited[0], now, names) if names else None
        try:
            self._backend.command(EquilibriumPose(command.position, command.rotation))
        except StaleSampleError as error:  # if no sample comes, the deadman stops
            self._fail(SafetyState.HOLD, str(error))
        except DriverError as error:
            self.stop(str(error))
        except Exception as error:  # a defect of the driver
            self.stop(f"commanding the arm failed: {type(error).__name__}: {error}")

    def _of_another_time(self, stamp_ns: int, arrival: Arrival) -> str:
        """Return why a command is not of the present, or an empty string."""
        limits = self._filter.settings
        if arrival.waited > limits.release_after:
            return f"a command waited {arrival.waited:.2f} s for this node, at most {limits.release_after:g} s"
        age = 1e-9 * (self.now_ns - stamp_ns)
        if stamp_ns and not abs(age) <= limits.stop_after:
            return (
                f"a command is for {abs(age):.2f} s {'ago' if age > 0 else 'ahead'} by the samples' clock, at most "
                f"{limits.stop_after:g} s: plan from the newest estimate, or correct the clocks; a log may be playing"
            )
        return ""

    def watch(self) -> bool:
        """Call often: an estimator that died, or an arm that must not move, stops the gate also without commands.

        Returns:
            Whether the planner has just been taken for gone.
        """
        if not self._filter.active:
            return False
        now = self._clock()
        state = self._filter.deadman.state(now)
        if state is SafetyState.STOP and self._sample is not None:
            self._stop(self._missing("stopped; activate again"), self._sample)
            return False
        if why := self._stop_reason():
            self.stop(why)
            return False
        limit = self._filter.settings.release_after
        if self._sample is None or self._commanded is None or now - self._commanded <= limit:
            return False
        self.release(f"no command for more than {limit:g} s: the equilibrium is where the arm is, until the next one")
        self.counters["planners fell silent"] += 1
        return True

    def _stop_reason(self) -> str:
        """Return why the backend forbids motion until a new activation, "" where it does not."""
        try:
            return str(getattr(self._backend, "stop_reason", str)())
        except Exception as error:  # a defect of the driver
            return f"the arm's state cannot be told: {type(error).__name__}: {error}"

    def release(self, reason: str) -> None:
        """Put the equilibrium where the arm is, if somebody has commanded it; the next command goes on from there.

        Args:
            reason: why, for the diagnostics.
        """
        if not self._filter.active or self._commanded is None or self._sample is None:
            return
        self._commanded = self._limited = None
        present = self._command_where_it_is(self._sample)
        if present is None:
            return
        self._filter.move_to(self._clock(), present.position, present.rotation)
        self.state, self.reason = SafetyState.HOLD, reason

    def _command_where_it_is(self, sample: Sample) -> EquilibriumPose | None:
        """Command the equilibrium at the arm, and return it; None where the driver has a defect, which stops."""
        try:
            standing = getattr(self._backend, "standing", self._backend.equilibrium)
            present = standing() or EquilibriumPose(*self._arm.tcp_pose(sample.q))
            hold: Callable[[EquilibriumPose], None] = getattr(self._backend, "hold", self._backend.command)
            with contextlib.suppress(DriverError):  # a backend without commands holds the arm by itself
                hold(present)
        except Exception as error:
            self._filter.deactivate()
            self.counters["holds failed"] += 1
            self.state, self.reason = SafetyState.STOP, f"holding the arm failed: {type(error).__name__}: {error}"
            return None
        return present

    def stop(self, reason: str) -> None:
        """Let nothing pass until activated again, and say why; the equilibrium goes to where the arm was last."""
        self._stop(reason, self._sample if self._filter.active else None)

    def _stop(self, reason: str, sample: Sample | None) -> None:
        """Stop, with the equilibrium at the arm if ``sample`` tells where it is: the last one may lie ahead of it."""
        self._filter.deactivate()
        if sample is not None and self._command_where_it_is(sample) is None:
            reason = f"{reason}; {self.reason}"
        self._fail(SafetyState.STOP, reason)

    def _missing(self, consequence: str) -> str:
        """Say why no estimate counts: of an arm that sends no samples there is none."""
        if (silence := self.silence) > self._filter.settings.hold_after:
            problem = getattr(self._backend, "problem", "")
            why = f"the arm has sent no sample for {silence:.2f} s" + (f" ({problem})" if problem else "")
        else:
            why = "no fresh, valid estimate" + (f" ({self._complaint})" if self._complaint else "")
        return f"{why}: {consequence}"

    def _fail(self, state: SafetyState, reason: str) -> None:
        self.counters["commands stopped" if state is SafetyState.STOP else "commands held"] += 1
        self.state, self.reason = state, reason
