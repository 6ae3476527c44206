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
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_estimation.control.impedance import clip_norm
from contact_estimation.drivers import rtde_client as wire
from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.drivers.clock import ClockOffset
from contact_estimation.drivers.rtde_link import RtdeLink
from contact_estimation.exceptions import ConfigError, DriverError, StaleSampleError
from contact_estimation.robot import Arm
from contact_estimation.settings import key, non_negative, positive

#: [s] A controller counts from its start: later stamps (30 years) are invalid.
MAX_STAMP = 1e9
#: [1/s] Angular speed per angle to the equilibrium: a turn takes half a second, slow against the arm's delays.
_TURN_GAIN = 2.0
#: Rotation from the controller's base frame to base_link.
CONTROLLER_BASE = np.diag([-1.0, -1.0, 1.0])

SAFETY_MODES = {
    0: "unknown",
    1: "normal",
    2: "reduced",
    3: "protective stop",
    4: "recovery",
    5: "safeguard stop",
    6: "system emergency stop",
    7: "robot emergency stop",
    8: "violation",
    9: "fault",
    10: "validate joint id",
    11: "undefined",
}
ROBOT_MODES = {
    -1: "no controller",
    0: "disconnected",
    1: "confirm safety",
    2: "booting",
    3: "power off",
    4: "power on",
    5: "idle",
    6: "backdrive",
    7: "running",
    8: "updating firmware",
}
PROGRAM_STATES = {0: "stopping", 1: "stopped", 2: "playing", 3: "pausing", 4: "paused", 5: "resuming"}


class _State(NamedTuple):
    """What the last good sample says of the arm.

    Attributes:
        taken: when [s].
        robot_mode: of the controller.
        safety_mode: of the controller.
        program: state of the program that runs on the controller.
        position: (3,) of the TCP [m], base frame.
        rotation: (3, 3) of the TCP.
        force: (3,) [N] on the robot without the sensor's offset, base axes.
    """

    taken: float
    robot_mode: int
    safety_mode: int
    program: int
    position: np.ndarray
    rotation: np.ndarray
    force: np.ndarray


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

    def connect(self) -> None:
        """Start the client process and wait for the first sample.

        Raises:
            DriverError: none came in ``connect_timeout``; says what the client said.
        """
        s = self.settings
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

    def _begin(self) -> None:
        """Forget what an earlier connection has told."""
        self._queue.clear()
        self._clock.restart()
        self._last_stamp: float | None = None
        self._last_q, self._last_host = np.zeros(self._arm.n), 0
        self._state: _State | None = None

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
            DriverError: commands were not asked for, or the robot is not in a state to move.
            StaleSampleError: the newest sample is older than ``command_timeout``, or there is none since a connection
                was lost.
        """
        if not self.settings.control:
            raise DriverError("commands were not asked for; set control: true for the rtde driver")
        state, link = self._state, self._link  # the reader's thread replaces them
        why = self._staleness_of(state)
        if why or state is None or link is None:
            self.stop()
            raise StaleSampleError(f"nothing is commanded: {why}")
        if why := self._refusal_of(state.robot_mode, state.safety_mode, state.program):
            self.stop()
            raise DriverError(f"nothing is commanded: {why}")
        spring = self._stiffness * (np.asarray(pose.position, float) - state.position)
        speed = clip_norm((spring + state.force) / self.settings.admittance_damping, self.settings.max_speed)
        turn = state.rotation @ pin.log3(state.rotation.T @ np.asarray(pose.rotation, float))
        turn = clip_norm(_TURN_GAIN * turn, self.settings.max_turn_rate)
        twist = np.concatenate([CONTROLLER_BASE @ speed, CONTROLLER_BASE @ turn])
        if not np.isfinite(twist).all():
            self.stop()
            raise DriverError(f"nothing is commanded: the equilibrium {pose.position} is not finite")
        if not link.send(wire.TWIST, twist):
            raise DriverError("nothing is commanded: the client process is gone; it is being started again")

    def stop(self) -> None:
        """Stop the arm, if a client process is there to do it (without one the controller's watchdog stops it)."""
        link = self._link
        if link is not None and self.settings.control:
            link.send(wire.STOP, [0.0] * 6)

    def state_problem(self) -> str:
        """Why the arm must not be commanded, "" when it may."""
        state = self._state
        if (why := self._staleness_of(state)) or state is None:
            return why
        return self._refusal_of(state.robot_mode, state.safety_mode, state.program)

    def _staleness_of(self, state: _State | None) -> str:
        """Why nothing is known of the arm's present state, "" where it is known."""
        if state is None or self._link is None:
            return "the robot's state is unknown"
        age = self._now() - state.taken
        return f"the last sample is {1000 * age:.0f} ms old" if age > self.settings.command_timeout else ""

    def _refusal_of(self, robot: int, safety: int, program: int) -> str:
        """Why an arm in these modes, with its control program in this state, does not move, "" where it does."""
        if safety not in (wire.NORMAL, wire.REDUCED):
            return f"safety mode is '{SAFETY_MODES.get(safety, safety)}'"
        if robot != wire.RUNNING:
            return f"robot mode is '{ROBOT_MODES.get(robot, robot)}'"
        if self.settings.control and program != wire.PLAYING:
            return (
                f"the control program on the controller is '{PROGRAM_STATES.get(program, program)}': it was stopped "
                "there, by a protective stop or by its watchdog; configure the driver again, which starts it"
            )
        return ""

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
            self._state = None
        for record in records:
            self._take(record)
        if not records:
            self.problem = f"no sample for more than {timeout:g} s: {link.status}"

    def _take(self, record: tuple[Any, ...]) -> None:
        stamp, host_ns, wall_ns = record[:3]
        values = np.array(record[3:33]).reshape(5, 6)
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
        waited = max(self._now() - 1e-9 * host_ns, 0.0)  # time in the pipe
        if 0 < self.settings.max_backlog < waited:
            self.counters["dropped: waited too long"] += 1
            self.problem = f"the reader is {1000 * waited:.0f} ms behind: samples are dropped"
            return
        self._queue.append(self._sample(stamp_ns, record, waited, values))

    def _sample(self, stamp_ns: int, record: tuple[Any, ...], waited: float, values: np.ndarray) -> Sample:
        """Return a good sample, and take note of the arm's state that it tells."""
        q, dq, current, moment, wrench = values
        position, rotation = self._arm.tcp_pose(q)
        force = CONTROLLER_BASE @ wrench[:3]
        force_tcp, at_flange = rotation.T @ force, rotation.T @ CONTROLLER_BASE @ wrench[3:]
        robot, safety, program = record[33:36]
        contact = force - rotation @ self.force_offset
        self._state = _State(self._now() - waited, robot, safety, program, position, rotation, contact)
        self.problem = self._refusal_of(robot, safety, program)
        tau = self._arm.motor.torque_from_current(current) if self.settings.torque_source == "current" else moment
        return Sample(stamp_ns, q, dq, tau, np.concatenate([force_tcp, at_flange - self._lever @ force_tcp]))

    def _refusal(self, stamp: float, values: np.ndarray) -> str:
        q, dq, current, _, wrench = values
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
