"""A joint-torque arm that publishes ``sensor_msgs/JointState`` with effort (franka_ros2, ros2_control) as a backend.

The meaning of the effort differs by driver. It is stated, never guessed: ``total`` (includes gravity),
``gravity_compensated`` (the driver has subtracted gravity, but not friction and contact) or ``external`` (the driver's
own estimate of the environment's torque). The backend converts it to total torque. The signal monitor in front of every
observer reports an effort that contradicts the stated meaning (``filters/plausibility``).
"""

from __future__ import annotations

import queue
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.exceptions import DriverError, StaleSampleError
from contact_estimation.robot import Arm
from contact_estimation.settings import key, non_negative, positive

MEANINGS = ("total", "gravity_compensated", "external")


@dataclass(frozen=True, kw_only=True)
class JointTorqueSettings:
    """Settings: what the arm's driver publishes."""

    torque_meaning: str = key(doc="what effort is: total, gravity_compensated or external", choices=MEANINGS)
    timeout: float = key(1.0, doc="how long a read waits for a sample", unit="s", check=positive)
    max_sample_age: float = key(
        0.2,
        doc="samples older than this, or as far in the future, are refused; 0: none are",
        unit="s",
        check=non_negative,
    )
    max_jump: float = key(
        0.1,
        doc="position change between samples, beyond what the joint's velocity limit allows, that is refused as "
        "nonsense",
        unit="rad",
        check=positive,
    )


class JointTorqueBackend:
    """A backend whose samples come from a caller that receives the joint states, for example a subscription.

    Args:
        arm: the robot.
        settings: meaning, timeout and age.
        send: called with every commanded equilibrium; None refuses commands.
        now: clock [s] that only advances.

    Attributes:
        problem: why samples are refused, "" when all is well.
        counters: samples and refusals by reason.
    """

    live = True

    def __init__(
        self,
        arm: Arm,
        settings: JointTorqueSettings,
        send: Callable[[EquilibriumPose], None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.joint_names, self.commandable = tuple(arm.joint_names), send is not None
        self._joints = frozenset(arm.joint_names)
        self._arm, self._settings, self._send, self._now = arm, settings, send, now
        self._connected = False
        self._begin()
        self.counters: Counter[str] = Counter()
        self.problem = "not connected"

    def attach(self, send: Callable[[EquilibriumPose], None]) -> None:
        """Take commands, and hand each to ``send``."""
        self._send, self.commandable = send, True

    def connect(self) -> None:
        """Begin to take samples; those of an earlier connection are forgotten."""
        self._begin()
        self._connected, self.problem = True, "no sample yet"

    def _begin(self) -> None:
        #: When each sample was taken [s], and the sample; None ends the reader.
        self._samples: queue.Queue[tuple[float, Sample | None]] = queue.Queue(maxsize=1000)
        self._columns: tuple[tuple[str, ...], list[int]] | None = None
        self._last: int | None = None  # stamp of the last message [ns]
        self._good: tuple[int, np.ndarray] | None = None  # stamp [ns] and positions (n,) [rad] of the last sample
        self._late = ""  # why the last message is none of the present

    def feed(
        self,
        stamp_ns: int,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
        age: float = 0.0,
    ) -> None:
        """Take the content of a joint state message; a bad one is counted and described in ``problem``.

        Once a sample was taken, one with none of the robot's joints is nobody's fault: a gripper may publish on the
        same topic.

        Args:
            stamp_ns: when it was taken [ns].
            names: joints, in any order.
            position: [rad], one per name.
            velocity: [rad/s], one per name.
            effort: [Nm], one per name.
            age: now, by the clock of the stamps [s].
        """
        given = tuple(names)
        if not self._connected or (self._good is not None and self._joints.isdisjoint(given)):
            return
        self._late = self._lateness(age)
        taken = self._now() - max(age, 0.0)
        problem = self._late or self._feed(stamp_ns, taken, given, position, velocity, effort)
        if problem:
            self.counters["refused"] += 1
            self.problem = problem
        else:
            self.problem = ""

    def _lateness(self, age: float) -> str:
        """Say why a sample of this age [s] is none of the present, or return an empty string."""
        limit = self._settings.max_sample_age
        if not limit or abs(age) <= limit:
            return ""
        return (
            f"a joint state is {abs(age):.2f} s {'old' if age > 0 else 'in the future'}, allowed is max_sample_age "
            f"{limit:g} s: the network, the arm's driver or this node is too slow, or the computers' clocks differ"
        )

    def _feed(
        self,
        stamp_ns: int,
        taken: float,
        names: tuple[str, ...],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
    ) -> str:
        if self._columns is None or self._columns[0] != names:
            missing = [name for name in self.joint_names if name not in names]
            if missing:
                return f"joint states lack {', '.join(missing)}; they have {', '.join(names) or 'no names'}"
            self._columns = names, [names.index(name) for name in self.joint_names]
        for what, values in (("position", position), ("velocity", velocity), ("effort", effort)):
            if len(values) != len(names):
                return (
                    f"joint states carry {len(values)} numbers of {what} for {len(names)} joints; the driver "
                    "must publish it"
                )
        columns = self._columns[1]
        q, dq, raw = (np.array(values, float)[columns] for values in (position, velocity, effort))
        if not (np.isfinite(q).all() and np.isfinite(dq).all() and np.isfinite(raw).all()):
            return "joint states are not finite"
        last, self._last = self._last, stamp_ns
        if last is not None and stamp_ns == last:
            return "the stamp repeats the one before"
        if last is not None and stamp_ns < last:
            return f"the stamp is {1e-9 * (last - stamp_ns):.3f} s before the one before"
        if jumped := self._jump(stamp_ns, q):
            return jumped
        self._good = stamp_ns, q
        sample = Sample(stamp_ns, q, dq, total_torque(self._arm, self._settings.torque_meaning, q, raw))
        if self._samples.full():
            self._samples.get_nowait()
            self.counters["dropped"] += 1
        self._samples.put_nowait((taken, sample))
        self.counters["samples"] += 1
        return ""

    def _jump(self, stamp_ns: int, q: np.ndarray) -> str:
        """Say which joint cannot have come to ``q`` (n,) [rad] since the last sample, or return an empty string."""
        if self._good is None:
            return ""
        passed = 1e-9 * (stamp_ns - self._good[0])
        way = np.abs(q - self._good[1])
        beyond = way - self._arm.velocity_limit * passed - self._settings.max_jump
        j = int(np.argmax(beyond))
        if not beyond[j] > 0:
            return ""
        return (
            f"{self.joint_names[j]} jumped by {way[j]:.2f} rad in {1e3 * passed:.0f} ms: the arm's driver sends wrong "
            "positions, or has left out samples"
        )

    def read(self) -> Sample | None:
        """Return the next sample; None after :meth:`close`.

        Raises:
            DriverError: not connected, or none came in ``timeout``; says why.
        """
        if not self._connected:
            raise DriverError("the joint_torque driver is not connected; call connect() first")
        s = self._settings
        while True:
            try:
                taken, sample = self._samples.get(timeout=s.timeout)
            except queue.Empty:
                raise DriverError(
                    f"no joint state within {s.timeout:g} s: {self.problem or 'the topic fell silent'}"
                ) from None
            if sample is None or not 0 < s.max_sample_age < self._now() - taken:
                return sample
            self.counters["dropped: waited too long"] += 1

    def equilibrium(self) -> EquilibriumPose | None:
        """Unknown here."""
        return None

    def command(self, pose: EquilibriumPose) -> None:
        """Hand the equilibrium to the arm's impedance controller.

        Args:
            pose: equilibrium in the base frame.

        Raises:
            DriverError: there is none, or the samples are refused, so that the arm's state is unknown.
            StaleSampleError: the last sample is too old.
        """
        if self._send is None:
            raise DriverError("this joint_torque driver has no way to command the arm; set control: true")
        if self._connected and self._late:
            raise StaleSampleError(f"nothing is commanded: {self._late}")
        if not self._connected or self.problem:
            raise DriverError(f"nothing is commanded: {self.problem or 'not connected'}")
        self._send(pose)

    def hold(self, pose: EquilibriumPose) -> None:
        """Hand over the equilibrium that ends a motion, also while samples are refused: the last one may push.

        Raises:
            DriverError: there is no impedance controller.
        """
        if self._send is None:
            raise DriverError("this joint_torque driver has no way to command the arm")
        self._send(pose)

    def close(self) -> None:
        """Take no more samples; wakes a waiting reader."""
        if self._connected:
            self._connected = False
            if self._samples.full():
                self._samples.get_nowait()
            self._samples.put_nowait((0.0, None))
        self.problem = "not connected"


def total_torque(arm: Arm, meaning: str, q: np.ndarray, effort: np.ndarray) -> np.ndarray:
    """Return the total joint torque (n,) [Nm], gravity inside, from effort of a stated meaning.

    ``gravity_compensated``: total = effort + G. ``external``: effort is the environment's torque, tau = G - tau_ext;
    such an effort lacks the inertial torque of the moving arm.

    Args:
        arm: the robot.
        meaning: ``total``, ``gravity_compensated`` or ``external``.
        q: (n,) [rad].
        effort: (n,) [Nm].

    Raises:
        DriverError: unknown meaning.
    """
    if meaning == "total":
        return np.array(effort, float)
    if meaning == "gravity_compensated":
        return np.array(effort + arm.gravity(q))
    if meaning == "external":
        return np.array(arm.gravity(q) - effort)
    raise DriverError(f"torque_meaning '{meaning}' is unknown; state one of {', '.join(MEANINGS)}")
