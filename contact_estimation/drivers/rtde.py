"""A UR arm through the ur_rtde client as a backend; the client runs in a process of its own.

``torque_source`` selects the torque. ``current`` is actual motor current times gear ratio times torque constant; it
includes friction and gravity. ``target_moment`` is the controller's own model torque for its target motion, without
contact. An e-Series controller reports the wrench about the flange, whatever TCP is set there, in the axes of its base,
which is base_link turned by 180 degrees about z (see ``transformForceTorque`` of UR's own ROS driver). A sample has it
about the TCP, in TCP axes.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from contact_estimation.control.impedance import clip_norm
from contact_estimation.drivers import rtde_client as wire
from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.drivers.clock import ClockOffset
from contact_estimation.drivers.rtde_link import RtdeLink
from contact_estimation.drivers.rtde_state import (
    CONTROLLER_BASE,
    ArmState,
    ControlProgram,
    lateness_problem,
    mode_problem,
    tcp_problem,
)
from contact_estimation.exceptions import ConfigError, DriverError, StaleSampleError
from contact_estimation.robot import Arm
from contact_estimation.settings import key, non_negative, positive

#: [s] A controller counts from its start: later stamps (30 years) are invalid.
MAX_STAMP = 1e9
#: [1/s] Angular speed per angle to the equilibrium: a turn takes half a second, slow against the arm's delays.
_TURN_GAIN = 2.0
#: What a lost connection means for commands.
_LOST = "the connection was lost: configure the driver again, which starts its control program"


@dataclass(frozen=True, kw_only=True)
class RtdeSettings:
    """Connection to a UR controller."""

    host: str = key("127.0.0.1", doc="address of the controller")
    rate: float = key(500.0, doc="rate of the stream; 500 on e-Series, 125 on CB3", unit="Hz", check=positive)
    torque_source: str = key(
        "current",
        doc="current: motor current times drive gain; target_moment: the controller's model torque",
        choices=("current", "target_moment"),
    )
    control: bool = key(False, doc="also open the control interface, so that commands can be sent")
    connect_timeout: float = key(10.0, doc="how long connect() tries", unit="s", check=positive)
    stall_timeout: float = key(
        0.5, doc="time without samples after which the driver reconnects", unit="s", check=positive
    )
    realtime_priority: int = key(
        70, doc="SCHED_FIFO priority of the client process, where the system grants it; 0 none", check=non_negative
    )
    max_jump: float = key(
        0.1, doc="position change between samples that is refused as nonsense", unit="rad", check=positive
    )
    max_backlog: float = key(
        0.2,
        doc="samples that waited longer for a reader are dropped and counted; 0 keeps all",
        unit="s",
        check=non_negative,
    )
    impedance_stiffness: list[float] = key(
        [1000.0, 1000.0, 1000.0],
        doc="stiffness the commanded equilibrium is followed with",
        unit="N/m",
        check=positive,
        length=3,
    )
    admittance_damping: float = key(
        4000.0,
        doc="force per commanded speed of the admittance that realises the stiffness",
        unit="Ns/m",
        check=positive,
    )
    max_speed: float = key(0.1, doc="largest commanded speed", unit="m/s", check=positive)
    max_turn_rate: float = key(0.3, doc="largest commanded angular speed", unit="rad/s", check=positive)
    command_timeout: float = key(
        0.05, doc="age of a command or of a sample after which the arm is stopped", unit="s", check=positive
    )


class RtdeBackend:
    """A UR arm.

    Args:
        arm: the robot.
        settings: of the connection.
        link: where samples come from; default a client process of its own.
        now: clock [s] that the link's host times are on.

    Attributes:
        counters: samples, lost (missing stamps), refused ones by reason, reconnects.
        problem: why samples are missing or must not be used, "" if there is no problem.
        force_offset: (3,) [N] of the wrist sensor, TCP axes, which the admittance does not follow. Samples keep it.
    """

    live = True

    def __init__(
        self, arm: Arm, settings: RtdeSettings, link: RtdeLink | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        if arm.n != 6:
            raise ConfigError(f"driver rtde is for UR arms with 6 joints; robot '{arm.name}' has {arm.n}")
        if settings.torque_source == "current" and arm.motor.drive_gain is None:
            raise ConfigError(
                f"torque_source is current, but robot '{arm.name}' has no torque_constant in its YAML; add it, "
                "or choose "
                "torque_source: target_moment"
            )
        self.joint_names, self.commandable = tuple(arm.joint_names), settings.control
        self.settings, self._arm = settings, arm
        self.counters: Counter[str] = Counter()
        self.problem = "not connected"
        self.force_offset = np.zeros(3)
        self._lever = pin.skew(arm.tcp_lever)
        self._link, self._now = link, now
        self._queue: deque[Sample] = deque()
        self._clock = ClockOffset()
        self._begin()
        self._stiffness = np.array(settings.impedance_stiffness)
        self._closing = False

    def _begin(self) -> None:
        """Forget what an earlier connection has told."""
        self._queue.clear()
        self._clock.begin()
        self._program = ControlProgram()
        self._connected = False  # since the first sample of connect()
        self._lost = False  # with it the control program
        self._last_stamp: float | None = None
        self._last_q, self._last_host = np.zeros(self._arm.n), 0
        self._state: ArmState | None = None

    def connect(self) -> None:
        """Start the client process and wait for the first sample; an earlier connection ends.

        With ``control`` this process uploads its control program, which stops the one that plays. A process that is
        started after the first sample does not: then commands are refused until the next :meth:`connect`.

        Raises:
            DriverError: none came in ``connect_timeout``; says what the client said.
        """
        s = self.settings
        if self._connected:
            self.close()
        self._begin()
        if self._link is None:
            self._link = RtdeLink(s.host, s.rate, s.control, s.stall_timeout, s.command_timeout, s.realtime_priority)
        self._closing, end = False, self._now() + s.connect_timeout
        while self._now() < end and not self._queue:
            self._pump(0.1)
            if "is missing" in self._link.status:
                break
        if not self._queue:
            status = self._link.status
            self.close()
            raise DriverError(
                f"no sample from the controller at {s.host} within {s.connect_timeout:g} s ({status}); check "
                "the address, that the "
                "robot is on, and that RTDE (port 30004) is not blocked or taken by another client"
            )
        self._connected = True
        self._link.restart_without_control()

    def read(self) -> Sample | None:
        """Return the next good sample; waits through stalls and restarts (see ``problem``), None after :meth:`close`.

        Raises:
            DriverError: not connected.
        """
        if self._link is None and not self._closing:
            raise DriverError("the RTDE driver is not connected; call connect() first")
        while True:
            try:
                return self._queue.popleft()
            except IndexError:  # it is empty
                if self._closing or self._link is None:
                    return None
                self._pump(0.1)

    def equilibrium(self) -> EquilibriumPose | None:
        """Equilibrium at which the admittance is at rest under the present force: x - f / K."""
        state = self._state  # the reader's thread replaces it
        if state is None:
            return None
        return EquilibriumPose(state.position - state.force / self._stiffness, state.rotation)

    def command(self, pose: EquilibriumPose) -> None:
        """Move towards the equilibrium as an impedance would: speed = (K (x_0 - x) + f - o) / D, sent with speedL.

        The offset o of the sensor is the one told as ``force_offset``: with it the arm would stand away from x_0 by
        o / K, in a press as well as in free space.

        Args:
            pose: equilibrium in the base frame.

        Raises:
            DriverError: commands were not asked for, the robot is not in a state to move (:meth:`stop_reason`), or the
                client process takes none.
            StaleSampleError: the newest sample is older than ``command_timeout``, the time by which it came late
                included, or it was refused.
        """
        if not self.settings.control:
            raise DriverError("commands were not asked for; set control: true for the rtde driver")
        try:
            state, link = self._ready()
        except DriverError as error:
            self.stop()
            raise type(error)(f"nothing is commanded: {error}") from None
        spring = self._stiffness * (np.asarray(pose.position, float) - state.position)
        speed = clip_norm((spring + state.force) / self.settings.admittance_damping, self.settings.max_speed)
        turn = state.rotation @ pin.log3(state.rotation.T @ np.asarray(pose.rotation, float))
        turn = clip_norm(_TURN_GAIN * turn, self.settings.max_turn_rate)
        twist = np.concatenate([CONTROLLER_BASE @ speed, CONTROLLER_BASE @ turn])
        if not np.isfinite(twist).all():
            self.stop()
            raise DriverError(f"nothing is commanded: the equilibrium {pose.position} is not finite")
        if not link.send(wire.TWIST, twist):
            raise DriverError(f"nothing is commanded: the client process takes none, it has ended or hangs; {_LOST}")

    def stop(self) -> None:
        """Stop the arm, if a client process is there to do it (without one the controller's watchdog stops it)."""
        link = self._link
        if link is not None and self.settings.control:
            link.send(wire.STOP, [0.0] * 6)

    def state_problem(self) -> str:
        """Why the arm must not be commanded, "" when it may."""
        try:
            self._ready()
        except DriverError as error:
            return str(error)
        return ""

    def stop_reason(self) -> str:
        """Why commands end until :meth:`connect`, or a new activation, "" where they may go on.

        The reasons are a lost connection, the safety mode, the robot mode, the end of the control program, a TCP that
        is not the model's, and samples that arrive late for longer than a burst. A sample that is missing is none.
        """
        state = self._state  # the reader's thread replaces it
        return _LOST if self._lost else "" if state is None else state.refusal

    def _ready(self) -> tuple[ArmState, RtdeLink]:
        """Return state and client process of an arm that may be commanded now.

        Raises:
            DriverError, StaleSampleError: as :meth:`command`.
        """
        state, link = self._state, self._link  # the reader's thread replaces them
        if self._lost:
            raise DriverError(_LOST)
        if state is None or link is None:
            raise StaleSampleError("the robot's state is unknown")
        silence, limit = self._now() - state.arrived, self.settings.command_timeout
        if silence > limit:
            raise StaleSampleError(f"the last sample is {1000 * silence:.0f} ms old")
        if state.refusal:
            raise DriverError(state.refusal)
        if silence + state.delay > limit:
            age, late = 1000 * (silence + state.delay), 1000 * state.delay
            raise StaleSampleError(f"the last sample is {age:.0f} ms old: it arrived {late:.0f} ms late")
        return state, link

    def close(self) -> None:
        """Stop the arm and end the client process."""
        self._closing = True
        link, self._link = self._link, None
        if link is not None:
            link.close()
        self._begin()
        self.problem = "not connected"

    def _pump(self, timeout: float) -> None:
        link = self._link
        if link is None:
            return
        restarts = link.restarts
        records = link.poll(timeout)
        if link.restarts != restarts:
            self.counters["reconnects"] = max(link.restarts, 0)
            self._clock.restart()
            self._state, self._lost = None, self._connected and self.settings.control
        for record in records:
            self._take(record)
        if not records:
            self.problem = f"no sample for more than {timeout:g} s: {link.status}"

    def _take(self, record: tuple[Any, ...]) -> None:
        stamp, host_ns, wall_ns = record[:3]
        values = np.array(record[3:39]).reshape(6, 6)
        q = values[0]
        reason = self._refusal(stamp, values)
        if reason:
            self.counters["refused: " + reason] += 1
            self.problem = "sample refused: " + reason
            self._state = None
            return
        if self._last_stamp is not None and stamp <= self._last_stamp:  # the controller started anew
            self._clock.restart()
        elif self._last_stamp is not None:
            passed = min(stamp - self._last_stamp, 1e-9 * (host_ns - self._last_host) + self.settings.stall_timeout)
            self.counters["lost"] += max(round(passed * self.settings.rate) - 1, 0)
        self._last_stamp, self._last_q, self._last_host = stamp, q, host_ns
        stamp_ns = self._clock.stamp(round(stamp * 1e9), host_ns, wall_ns)
        self.counters["clock jumps"] = self._clock.jumps
        self.counters["samples"] += 1
        self._program.take(record[-1])
        waited = max(self._now() - 1e-9 * host_ns, 0.0)  # time in the pipe
        if 0 < self.settings.max_backlog < waited:
            self.counters["dropped: waited too long"] += 1
            self.problem = f"the reader is {1000 * waited:.0f} ms behind: samples are dropped"
            return
        self._queue.append(self._sample(stamp_ns, record, waited, values))

    def _sample(self, stamp_ns: int, record: tuple[Any, ...], waited: float, values: np.ndarray) -> Sample:
        """Return a good sample, and take note of the arm's state that it tells."""
        q, dq, current, moment, wrench, _ = values
        position, rotation = self._arm.tcp_pose(q)
        force = CONTROLLER_BASE @ wrench[:3]
        force_tcp, at_flange = rotation.T @ force, rotation.T @ CONTROLLER_BASE @ wrench[3:]
        contact = force - rotation @ self.force_offset
        refusal = self._refusal_of(record, position, rotation)
        self._state = ArmState(self._now() - waited, self._clock.delay, refusal, position, rotation, contact)
        self.problem = refusal
        tau = self._arm.motor.torque_from_current(current) if self.settings.torque_source == "current" else moment
        return Sample(stamp_ns, q, dq, tau, np.concatenate([force_tcp, at_flange - self._lever @ force_tcp]))

    def _refusal_of(self, record: tuple[Any, ...], position: np.ndarray, rotation: np.ndarray) -> str:
        """Return why an arm with its TCP there must not move, "" where it may."""
        robot, safety, _ = record[39:42]
        if self._lost:
            return _LOST
        why = mode_problem(robot, safety)
        if why or not self.settings.control:
            return why
        return (
            self._program.problem
            or tcp_problem(self._arm, position, rotation, np.array(record[33:39]))
            or lateness_problem(self._clock.lateness, self.settings.command_timeout)
        )

    def _refusal(self, stamp: float, values: np.ndarray) -> str:
        q, dq, current, _, wrench, _ = values
        if not (np.isfinite(stamp) and np.isfinite(values).all()):
            return "not finite"
        if not 0.0 <= stamp < MAX_STAMP:
            return "stamp out of range"
        if np.abs(q).max() > 2.1 * np.pi:
            return "joint position beyond a full turn"
        if np.abs(dq).max() > 10.0:
            return "joint speed above 10 rad/s"
        if np.abs(current).max() > 100.0:
            return "motor current above 100 A"
        if np.abs(wrench).max() > 1e4:
            return "TCP force above 10 kN"
        if (
            self._last_stamp is not None
            and 0 < stamp - self._last_stamp < 0.5
            and np.abs(q - self._last_q).max() > self.settings.max_jump
        ):
            return "joint position jumped"
        return ""
