"""A joint-torque arm that publishes ``sensor_msgs/JointState`` with effort (franka_ros2, ros2_control) as a backend.

The meaning of the effort differs by driver. It is stated, never guessed: ``total`` (includes gravity),
``gravity_compensated`` (the driver has subtracted gravity, but not friction and contact) or ``external`` (the driver's
own estimate of the environment's torque). The backend converts it to total torque. The signal monitor in front of every
observer reports an effort that contradicts the stated meaning (``filters/plausibility``).
"""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.exceptions import DriverError
from contact_estimation.robot import Arm
from contact_estimation.settings import key, positive

MEANINGS = ("total", "gravity_compensated", "external")


@dataclass(frozen=True, kw_only=True)
class JointTorqueSettings:
    """Settings: what the arm's driver publishes."""

    torque_meaning: str = key(doc="what effort is: total, gravity_compensated or external", choices=MEANINGS)
    timeout: float = key(1.0, doc="how long a read waits for a sample", unit="s", check=positive)


class JointTorqueBackend:
    """A backend whose samples come from a caller that receives the joint states, for example a subscription.

    Args:
        arm: the robot.
        settings: meaning and timeout.
        send: called with every commanded equilibrium; None refuses commands.

    Attributes:
        problem: why samples are refused, "" when all is well.
        counters: samples and refusals by reason.
    """

    live = True

    def __init__(
        self, arm: Arm, settings: JointTorqueSettings, send: Callable[[EquilibriumPose], None] | None = None
    ) -> None:
        self.joint_names, self.commandable = tuple(arm.joint_names), send is not None
        self._arm, self._settings, self._send = arm, settings, send
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
        self._samples: queue.Queue[Sample | None] = queue.Queue(maxsize=1000)
        self._columns: tuple[tuple[str, ...], list[int]] | None = None
        self._last: int | None = None

    def feed(
        self,
        stamp_ns: int,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
    ) -> None:
        """Take the content of a joint state message; a bad one is counted and described in ``problem``.

        Args:
            stamp_ns: when it was taken [ns].
            names: joints, in any order.
            position: [rad], one per name.
            velocity: [rad/s], one per name.
            effort: [Nm], one per name.
        """
        if not self._connected:
            return
        problem = self._feed(stamp_ns, tuple(names), position, velocity, effort)
        if problem:
            self.counters["refused"] += 1
            self.problem = problem
        else:
            self.problem = ""

    def _feed(
        self,
        stamp_ns: int,
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
        if self._last is not None and stamp_ns == self._last:
            return "the stamp repeats the one before"
        self._last = stamp_ns
        sample = Sample(stamp_ns, q, dq, total_torque(self._arm, self._settings.torque_meaning, q, raw))
        if self._samples.full():
            self._samples.get_nowait()
            self.counters["dropped"] += 1
        self._samples.put_nowait(sample)
        self.counters["samples"] += 1
        return ""

    def read(self) -> Sample | None:
        """Return the next sample; None after :meth:`close`.

        Raises:
            DriverError: not connected, or none came in ``timeout``; says why.
        """
        if not self._connected:
            raise DriverError("the joint_torque driver is not connected; call connect() first")
        try:
            return self._samples.get(timeout=self._settings.timeout)
        except queue.Empty:
            raise DriverError(
                f"no joint state within {self._settings.timeout:g} s: {self.problem or 'the topic fell silent'}"
            ) from None

    def equilibrium(self) -> EquilibriumPose | None:
        """Unknown here."""
        return None

    def command(self, pose: EquilibriumPose) -> None:
        """Hand the equilibrium to the arm's impedance controller.

        Args:
            pose: equilibrium in the base frame.

        Raises:
            DriverError: there is none, or the samples are refused, so that the arm's state is unknown.
        """
        if self._send is None:
            raise DriverError("this joint_torque driver has no way to command the arm; set control: true")
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
            self._samples.put_nowait(None)
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
