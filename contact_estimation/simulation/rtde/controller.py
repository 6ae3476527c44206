"""The controller behind the sockets: a simulated arm, its states, and the script that reads register commands.

The base frame of a UR controller is the URDF's base_link turned by 180 degrees about z; TCP poses, speeds and forces
are in it. The force is at the flange, oriented in the base.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pinocchio as pin

from contact_estimation.control.admittance import AdmittanceController
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot.sample import Sample
from contact_estimation.simulation.rtde.protocol import OUTPUTS
from contact_estimation.simulation.session import Simulation

#: Rotation from the controller's base frame to base_link (its own inverse).
CONTROLLER_BASE = np.diag([-1.0, -1.0, 1.0])


class Command(IntEnum):
    """Commands the control client's script understands, as they arrive in the first integer register."""

    NONE = 0
    ZERO_FT_SENSOR = 8
    SPEED_J = 9
    SPEED_L = 10
    SERVO_J = 11
    SPEED_STOP = 15
    SERVO_STOP = 16
    SERVO_L = 24
    SET_WATCHDOG = 35
    WATCHDOG = 99
    STOP_SCRIPT = 255


#: Commands the script starts and stays ready for the next one; all others it reports as done.
CONTINUOUS = (Command.SPEED_J, Command.SPEED_L, Command.SERVO_J, Command.SERVO_L, Command.WATCHDOG)

#: Controller state variables.
RUNNING, NORMAL, PROTECTIVE_STOP = 7, 1, 3
READY, DONE = 1, 2


class UrController:
    """State of a simulated UR arm in a scenario, as RTDE variables.

    Without a script the arm follows the scenario's motion. A script takes over; each command moves the arm until the
    next one, and a stop, the end of the script or a protective stop holds it where it is. A watchdog ends the script
    where its client sends no input in time, not where a client leaves: so do the controllers.

    Args:
        simulation: the arm in its scenario.

    Raises:
        ConfigError: the arm has not six joints with torque constants.
    """

    def __init__(self, simulation: Simulation) -> None:
        arm = simulation.arm
        if arm.n != 6 or arm.motor.drive_gain is None or not isinstance(simulation.controller, AdmittanceController):
            raise ConfigError(
                "a UR controller needs an arm with six joints, torque constants and admittance control; "
                f"'{arm.name}' is "
                "none: choose --robot ur16e"
            )
        self.simulation, self.arm, self._followed = simulation, arm, simulation.controller
        simulation.follow_stiffly = True  # servoing and speed commands of a real controller do not yield
        self.values: dict[str, Any] = {name: _zero(kind) for name, kind in OUTPUTS.items()}
        self.values.update(
            robot_mode=RUNNING,
            safety_mode=NORMAL,
            joint_mode=(253,) * 6,
            speed_scaling=1.0,
            target_speed_fraction=1.0,
            actual_main_voltage=48.0,
            actual_robot_voltage=48.0,
            payload=arm.tool.mass + arm.settings.tool_mass,
        )
        self.registers: dict[str, float] = {}
        self.script = False
        self._silence, self._patience = 0.0, np.inf  # [s] since the last input, and how long the watchdog bears it
        self.received: list[int] = []
        self._handled: int = Command.NONE
        self._force_zero = np.zeros(6)
        self._twist: np.ndarray | None = None
        self._jog: np.ndarray | None = None
        self._servo: np.ndarray | None = None
        self._publish(simulation.step())

    @property
    def protective_stop(self) -> bool:
        """Whether the arm is stopped for safety."""
        return bool(self.values["safety_mode"] == PROTECTIVE_STOP)

    def stop_for_safety(self) -> None:
        """Protective stop: motion ends, the script ends."""
        self.values["safety_mode"] = PROTECTIVE_STOP
        self.end_script()

    def unlock(self) -> None:
        """End the protective stop."""
        self.values["safety_mode"] = NORMAL

    def start_script(self) -> None:
        """Start an uploaded script; during a protective stop nothing happens."""
        if not self.protective_stop:
            self.script, self._handled, self._patience = True, Command.NONE, np.inf
            self.values["output_int_register_0"] = READY
            self._hold()

    def end_script(self) -> None:
        """End the script; the arm stays where it is."""
        self.script = False
        self.values["output_int_register_0"] = 0
        self._hold()

    def write(self, registers: dict[str, float]) -> None:
        """Input registers from a client."""
        self.registers.update(registers)
        self._silence = 0.0 if "input_int_register_0" in registers else self._silence
        if self.script:
            self._react(int(self.registers.get("input_int_register_0", 0)))

    def tick(self) -> None:
        """Advance by one sample (2 ms)."""
        self._silence += self.simulation.period
        if self.script and self._silence > self._patience:
            self.end_script()
        self._move()
        self._publish(self.simulation.step())

    def _react(self, command: int) -> None:
        """Run the script's loop: ready -> command -> done -> (client clears) -> ready."""
        if command == Command.NONE:
            self.values["output_int_register_0"], self._handled = READY, Command.NONE
            return
        if command != self._handled:
            self.received.append(command)
        self._handled = command
        numbers = np.array([float(self.registers.get(f"input_double_register_{i}", 0.0)) for i in range(6)])
        if command == Command.STOP_SCRIPT:
            self.end_script()
            return
        if command in CONTINUOUS:
            self._start(command, numbers)
            return
        if command in (Command.SPEED_STOP, Command.SERVO_STOP):
            self._hold()
        elif command == Command.SET_WATCHDOG:
            self._patience = 1.0 / numbers[0] if numbers[0] > 0 else np.inf
        elif command == Command.ZERO_FT_SENSOR:
            self._force_zero = self._wrench
        self.values["output_int_register_0"] = DONE

    def _start(self, command: int, numbers: np.ndarray) -> None:
        if command == Command.WATCHDOG:
            return
        if not np.isfinite(numbers).all():
            self.stop_for_safety()
            return
        self._hold()
        if command == Command.SPEED_L:
            self._twist = np.concatenate([CONTROLLER_BASE @ numbers[:3], CONTROLLER_BASE @ numbers[3:]])
        elif command == Command.SPEED_J:
            self._jog = numbers
        elif command == Command.SERVO_J:
            self._servo = numbers
        else:
            self.simulation.command(CONTROLLER_BASE @ numbers[:3], CONTROLLER_BASE @ pin.exp3(numbers[3:]))

    def _hold(self) -> None:
        self._twist = self._jog = self._servo = None
        self.simulation.command(*self.arm.tcp_pose(self._followed.q_ref))

    def _move(self) -> None:
        """Shift the equilibrium the simulated controller follows; without a motion command it stays."""
        if self._twist is None and self._jog is None and self._servo is None:
            return
        simulation, period, q = self.simulation, self.simulation.period, self._followed.q_ref
        if self._servo is not None:
            simulation.command(*self.arm.tcp_pose(self._servo))
            return
        twist = self._twist
        if twist is None:
            twist = self.arm.tcp_jacobian(q) @ self._jog
        position, rotation = self.arm.tcp_pose(q)
        simulation.command(position + period * twist[:3], pin.exp3(period * twist[3:]) @ rotation, twist)

    def _publish(self, sample: Sample) -> None:
        arm, values = self.arm, self.values
        wrench = np.zeros(6) if sample.wrench_tcp is None else sample.wrench_tcp
        controller = self._followed
        position, rotation = arm.tcp_pose(sample.q)
        jacobian = arm.tcp_jacobian(sample.q)
        at_flange = wrench[3:] + np.cross(arm.tcp_lever, wrench[:3])
        force = np.concatenate([CONTROLLER_BASE @ rotation @ wrench[:3], CONTROLLER_BASE @ rotation @ at_flange])
        self._wrench = force
        twist = jacobian @ sample.dq
        target_position, target_rotation = arm.tcp_pose(controller.q_ref)
        moment = arm.gravity(controller.q_ref)
        values.update(
            timestamp=sample.stamp_ns * 1e-9,
            actual_q=tuple(sample.q),
            actual_qd=tuple(sample.dq),
            actual_current=tuple(sample.tau / arm.motor.drive_gain),
            target_q=tuple(controller.q_ref),
            target_qd=tuple(controller.dq_ref),
            target_moment=tuple(moment),
            target_current=tuple(moment / arm.motor.drive_gain),
            joint_control_output=tuple(sample.tau),
            actual_TCP_force=tuple(force - self._force_zero),
            ft_raw_wrench=tuple(wrench),
            actual_TCP_pose=_pose(position, rotation),
            target_TCP_pose=_pose(target_position, target_rotation),
            actual_TCP_speed=tuple(np.concatenate([CONTROLLER_BASE @ twist[:3], CONTROLLER_BASE @ twist[3:]])),
            runtime_state=2 if self.script else 1,
            robot_status_bits=0b1011 if self.script else 0b1001,
            safety_status_bits=0b101 if self.protective_stop else 0b1,
            safety_status=values["safety_mode"],
        )


def _pose(position: np.ndarray, rotation: np.ndarray) -> tuple[float, ...]:
    return tuple(np.concatenate([CONTROLLER_BASE @ position, pin.log3(CONTROLLER_BASE @ rotation)]))


def _zero(kind: str) -> Any:
    return (0,) * int(kind[6]) if kind.startswith("VECTOR") else 0
