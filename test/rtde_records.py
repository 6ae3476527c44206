"""What the client process sends of a UR arm, without a controller: records, and links that hand them over."""

from __future__ import annotations

import time

import numpy as np
import pinocchio as pin

from contact_estimation.drivers import rtde_client as wire
from contact_estimation.drivers.backend import EquilibriumPose
from contact_estimation.drivers.rtde import RtdeBackend, RtdeSettings
from contact_estimation.drivers.rtde_state import CONTROLLER_BASE
from contact_estimation.exceptions import DriverError

#: A posture [rad].
Q = np.array([0.0, -1.5, 1.5, -1.5, -1.5, 0.0])
#: Modes of an arm that is ready to move.
READY = {"robot_mode": wire.RUNNING, "safety_mode": wire.NORMAL, "runtime_state": wire.PLAYING}


class FakeLink:
    """A client process that hands over the given batches of records, and then is silent."""

    status, restarts, control = "nobody there", 0, True

    def __init__(self, *batches: list[tuple]) -> None:
        self._batches = list(batches)
        self.sent: list[int] = []

    def poll(self, timeout: float) -> list[tuple]:
        return self._batches.pop(0) if self._batches else []

    def send(self, kind: int, twist) -> bool:
        self.sent.append(kind)
        return True

    def restart_without_control(self) -> None:
        self.control = False

    def close(self) -> None:
        pass


def record(stamp: float, arrived: float | None = None, **values) -> tuple:
    """What the client process sends of an arm that is ready to move; values are zero where none are given."""
    names = wire.VARIABLES[1 : wire.VARIABLES.index("robot_mode")]
    numbers = np.concatenate([values.get(name, np.zeros(6)) for name in names])
    ns = time.monotonic_ns() if arrived is None else round(1e9 * arrived)
    return (stamp, ns, time.time_ns() if arrived is None else ns, *numbers, *({**READY, **values}[n] for n in READY))


def controller_pose(arm, q: np.ndarray = Q) -> np.ndarray:
    """The pose (6,) of the TCP of ``arm``, as a controller tells it: in its base, with a rotation vector."""
    position, rotation = arm.tcp_pose(q)
    return np.concatenate([CONTROLLER_BASE @ position, pin.log3(CONTROLLER_BASE @ rotation)])


class VirtualArm:
    """The driver of an arm that stands still, with a stream of 500 Hz on a clock of its own.

    Args:
        arm: of the driver.
        delay: of the first sample [s].
        values: of the records, where they differ from an arm that is ready to move.
    """

    def __init__(self, arm, delay: float = 0.0, **values) -> None:
        self.now, self.link = 100.0, FakeLink()
        self.values = {"actual_q": Q, "actual_TCP_pose": controller_pose(arm), **values}
        self.driver = RtdeBackend(arm, RtdeSettings(control=True), self.link, lambda: self.now)
        self.goal = EquilibriumPose(*arm.tcp_pose(Q))
        self.link._batches.append([self.record(delay)])
        self.driver.connect()

    def record(self, delay: float = 0.0, **values) -> tuple:
        """What has arrived now, and was measured ``delay`` [s] before."""
        return record(self.now - delay, self.now, **{**self.values, **values})

    def take(self, *records: tuple) -> None:
        """Let the driver read."""
        self.link._batches.append(list(records))
        self.driver._pump(0.0)

    def wait(self, seconds: float, **values) -> None:
        """Let time [s] pass with a good stream."""
        for _ in range(round(seconds / 0.002)):
            self.now += 0.002
            self.take(self.record(**values))

    def refusal(self) -> str:
        """Why a command is refused; "" where it is sent."""
        try:
            self.driver.command(self.goal)
        except DriverError as error:
            assert self.link.sent[-1] == wire.STOP
            return str(error)
        return ""
