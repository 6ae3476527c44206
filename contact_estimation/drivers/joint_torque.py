"""A joint-torque arm that publishes ``sensor_msgs/JointState`` with effort (franka_ros2, ros2_control) as a backend.

What the effort means differs by driver and is stated, never guessed: ``total`` (gravity inside),
``gravity_compensated`` (gravity taken out by the driver, friction and contact inside) or ``external`` (the driver's
own estimate of what the environment does). The backend turns it into total torque; at standstill it is checked against
gravity, and what contradicts the stated meaning is refused.
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
    """What the arm's driver publishes, and when to believe it."""

    torque_meaning: str = key(doc="what effort is: total, gravity_compensated or external", choices=MEANINGS)
    timeout: float = key(1.0, doc="how long a read waits for a sample", unit="s", check=positive)
    standstill_speed: float = key(
        0.01, doc="largest joint speed that counts as standstill", unit="rad/s", check=positive
    )
    standstill_time: float = key(
        0.5, doc="time at standstill over which the torque is compared with gravity", unit="s", check=positive
    )
    tolerance: float = key(
        0.35,
        doc="largest difference from what the meaning predicts at standstill, as a share of the norm of gravity",
        check=positive,
    )
    floor: float = key(
        8.0, doc="difference that is always allowed (friction, tool, contact)", unit="Nm", check=positive
    )


class GravityCheck:
    """Compares torque at standstill with what its stated meaning predicts; one verdict, given once.

    Attributes:
        verdict: "" while open, "agrees", or a sentence that says what does not fit and which meaning would.
    """

    def __init__(self, arm: Arm, settings: JointTorqueSettings) -> None:
        self._arm, self._settings = arm, settings
        self._sum, self._count = np.zeros(arm.n), 0
        self._since: int | None = None
        self.verdict = ""

    @property
    def refused(self) -> bool:
        """Whether the torque contradicts its meaning."""
        return self.verdict not in ("", "agrees")

    def push(self, stamp_ns: int, q: np.ndarray, dq: np.ndarray, effort: np.ndarray) -> None:
        """Take a sample; (n,) each, [rad], [rad/s], [Nm]."""
        if self.verdict:
            return
        s = self._settings
        if np.abs(dq).max() > s.standstill_speed:
            self._since = None
            return
        if self._since is None:
            self._since, self._count = stamp_ns, 0
            self._sum[:] = 0.0
        self._sum += effort
        self._count += 1
        if (stamp_ns - self._since) * 1e-9 < s.standstill_time:
            return
        gravity, mean = self._arm.gravity(q), self._sum / self._count
        misfit = {"total": float(np.linalg.norm(mean - gravity)), "zero": float(np.linalg.norm(mean))}
        wanted = "total" if s.torque_meaning == "total" else "zero"
        limit = max(s.floor, s.tolerance * float(np.linalg.norm(gravity)))
        if misfit[wanted] <= limit:
            self.verdict = "agrees"
            return
        other = "zero" if wanted == "total" else "total"
        hint = (
            " It fits "
            + ("total" if other == "total" else "gravity_compensated or external")
            + ": correct torque_meaning."
            if misfit[other] <= limit
            else " It fits no meaning: is it in Nm, are the joints in the right order, is the tool's mass known?"
        )
        predicted = "gravity" if wanted == "total" else "zero"
        self.verdict = (
            f"effort is stated to be '{s.torque_meaning}', but at standstill it reads {np.round(mean, 1)} Nm "
            f"where {predicted}"
            f"{f' {np.round(gravity, 1)} Nm' if wanted == 'total' else ''} is expected (off by "
            f"{misfit[wanted]:.1f} Nm, allowed "
            f"{limit:.1f}).{hint}"
        )


class JointTorqueBackend:
    """A backend fed by whoever receives the joint states, for example a subscription.

    Args:
        arm: the robot. settings: meaning and limits. send: called with every commanded equilibrium; None refuses
            commands.

    Attributes:
        problem: why samples are refused, "" when all is well. counters: samples and refusals by reason.
    """

    live = True

    def __init__(
        self, arm: Arm, settings: JointTorqueSettings, send: Callable[[EquilibriumPose], None] | None = None
    ) -> None:
        self.joint_names, self.commandable = tuple(arm.joint_names), send is not None
        self._arm, self._settings, self._send = arm, settings, send
        self._samples: queue.Queue[Sample | None] = queue.Queue(maxsize=1000)
        self._check = GravityCheck(arm, settings)
        self._columns: tuple[tuple[str, ...], list[int]] | None = None
        self._connected = False
        self._last: int | None = None
        self.counters: Counter[str] = Counter()
        self.problem = "not connected"

    def attach(self, send: Callable[[EquilibriumPose], None]) -> None:
        """Take commands, and hand each to ``send``."""
        self._send, self.commandable = send, True

    def connect(self) -> None:
        """Begin to take samples."""
        self._connected, self._check, self.problem = True, GravityCheck(self._arm, self._settings), "no sample yet"

    def feed(
        self,
        stamp_ns: int,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
    ) -> None:
        """Take a joint state message's content; what cannot be used is counted and told in ``problem``.

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
        elif not self._check.refused:
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
        self._check.push(stamp_ns, q, dq, raw)
        if self._check.refused:
            return self._check.verdict
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

        Raises:
            DriverError: there is none, or the samples are refused, so that the arm's state is unknown.
        """
        if self._send is None:
            raise DriverError("this joint_torque driver has no way to command the arm")
        if not self._connected or self.problem:
            raise DriverError(f"nothing is commanded: {self.problem or 'not connected'}")
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
    """Total joint torque (n,) [Nm], gravity inside, from effort of the stated ``meaning``.

    ``gravity_compensated``: total = effort + G. ``external``: effort is what the environment does, tau = G - tau_ext;
    at speed the arm's own inertia is missing from it, as it is from such an effort.

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
