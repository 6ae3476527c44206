"""What a UR controller tells of its state, and why a state forbids motion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_estimation.drivers import rtde_client as wire
from contact_estimation.robot import Arm

#: Rotation from the controller's base frame to base_link.
CONTROLLER_BASE = np.diag([-1.0, -1.0, 1.0])
#: [m] and [rad] by which the TCP of the controller and of the model may differ: a calibrated arm differs from the
#: nominal one by some millimetres.
MAX_TCP_DISTANCE, MAX_TCP_ANGLE = 0.01, np.radians(2.0)

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


class ArmState(NamedTuple):
    """What the last good sample says of the arm.

    Attributes:
        arrived: when the sample came [s], on the driver's clock.
        delay: by how much it came later than the fastest one of the connection [s].
        refusal: why the arm must not move, "" where it may.
        position: (3,) of the TCP [m], base frame.
        rotation: (3, 3) of the TCP.
        force: (3,) [N] on the robot without the sensor's offset, base axes.
    """

    arrived: float
    delay: float
    refusal: str
    position: np.ndarray
    rotation: np.ndarray
    force: np.ndarray


class ControlProgram:
    """The control program that the client process has started on the controller; its end is final."""

    def __init__(self) -> None:
        self._state, self._ended = -1, False

    def take(self, state: int) -> None:
        """Take note of the state of whatever program is on the controller now (``runtime_state``)."""
        self._ended = self._ended or (self._state == wire.PLAYING and state != wire.PLAYING)
        self._state = state

    @property
    def problem(self) -> str:
        """Why the program takes no command, "" where it does."""
        if self._state != wire.PLAYING:
            state = PROGRAM_STATES.get(self._state, self._state)
            return (
                f"the control program on the controller is '{state}': it was stopped or paused there, by a protective "
                "stop or by its watchdog; configure the driver again, which starts it"
            )
        if self._ended:
            return (
                "the control program on the controller has ended, and another one plays: end that, and configure the "
                "driver again, which starts its own"
            )
        return ""


def mode_problem(robot: int, safety: int) -> str:
    """Return why an arm in these modes does not move, "" where it does.

    Args:
        robot: its robot mode.
        safety: its safety mode.
    """
    if safety not in (wire.NORMAL, wire.REDUCED):
        return f"safety mode is '{SAFETY_MODES.get(safety, safety)}'"
    if robot != wire.RUNNING:
        return f"robot mode is '{ROBOT_MODES.get(robot, robot)}'"
    return ""


def tcp_problem(arm: Arm, position: np.ndarray, rotation: np.ndarray, told: np.ndarray) -> str:
    """Return how the controller's TCP contradicts that of the model, "" where it does not.

    speedL moves the TCP that is set on the pendant. With another one than the model's, a turn moves the tool sideways.

    Args:
        arm: the model.
        position: (3,) of its TCP [m], base_link.
        rotation: (3, 3) of its TCP.
        told: (6,) pose of the controller's TCP in its base: position [m] and rotation vector [rad].
    """
    there = CONTROLLER_BASE @ told[:3]
    distance = float(np.linalg.norm(there - position))
    cosine = 0.5 * (np.trace(rotation.T @ CONTROLLER_BASE @ pin.exp3(told[3:])) - 1.0)
    angle = float(np.arccos(np.clip(cosine, -1.0, 1.0)))
    if distance <= MAX_TCP_DISTANCE and angle <= MAX_TCP_ANGLE:
        return ""
    mounted = f"tool '{arm.tool_name}'" if arm.tool_name else "no tool"
    pendant = f"{_numbers(1000 * np.array(arm.tool.tcp), 1)} mm, {_numbers(arm.tool.tcp_rotation)} rad"
    return (
        f"the controller's TCP is at {_numbers(there)} m in base_link, that of robot '{arm.name}' with {mounted} at "
        f"{_numbers(position)} m; they are {1000 * distance:.0f} mm and {np.degrees(angle):.1f} degrees apart, at most "
        f"{1000 * MAX_TCP_DISTANCE:.0f} mm and {np.degrees(MAX_TCP_ANGLE):.0f} degrees are allowed: set the TCP on the "
        f"pendant to that of the tool ({pendant}), or name the tool or the arm that is there (tool:=, robot:=)"
    )


def lateness_problem(lateness: float, limit: float) -> str:
    """Return why samples that come so late are no state to command from, "" where they are.

    Args:
        lateness: by how much samples come later than when the connection began [s].
        limit: largest [s].
    """
    if lateness <= limit:
        return ""
    return (
        f"samples arrive {1000 * lateness:.0f} ms later than when the connection began, at most {1000 * limit:.0f} ms "
        "are allowed, or the controller's clock paused: mend the network, and configure the driver again"
    )


def _numbers(values: np.ndarray | list[float], digits: int = 3) -> str:
    return "(" + ", ".join(f"{value:.{digits}f}" for value in values) + ")"
