"""A link of the RTDE driver to a simulated controller in the same process: simulated time, no sockets.

Reading drives the time: each poll advances the controller until a sample is there. The driver, its checks and its
admittance are the real ones; what runs in the client process of a real link (its watchdog) is repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from contact_estimation.drivers import rtde_client as wire
from contact_estimation.drivers.rtde_link import RtdeLink
from contact_estimation.simulation.rtde.controller import Command, UrController


class SimulatedLink(RtdeLink):
    """Samples of ``controller``, and commands to it.

    Args:
        controller: the simulated arm; its script is started.
        hold_after: age of a command, or of a sample, after which the arm is stopped [s].

    Attributes:
        silent_until: no sample comes before this time [s] of the simulation.
        gone: whether the silence is a lost connection, which ends with a new client.
        force_error: error (3,) [N] of the wrist sensor at a time [s], controller's base axes.
        on_tick: called after every tick of the controller, also during a silence.
    """

    def __init__(self, controller: UrController, hold_after: float) -> None:
        self.controller, self._hold_after = controller, hold_after
        self.status, self.restarts = "connected", 0
        self.silent_until, self.gone = 0.0, False
        self.force_error: Callable[[float], np.ndarray] = lambda t: np.zeros(3)
        self.on_tick: Callable[[], None] = lambda: None
        self._moving, self._last_command, self._last_sample = False, 0.0, 0.0
        controller.start_script()

    def now(self) -> float:
        """Return the time of the simulation [s]."""
        return self.controller.simulation.time

    def stall(self, seconds: float, gone: bool = False) -> None:
        """Be silent for ``seconds`` [s]; ``gone``: as after a lost connection."""
        self.silent_until, self.gone = self.now() + seconds, gone

    def poll(self, timeout: float) -> list[tuple[Any, ...]]:
        """Advance the simulation until a sample comes, at most by ``timeout`` [s]."""
        end = self.now() + timeout
        while self.now() < end:
            self.controller.tick()
            self._watch()
            self.on_tick()
            if self.now() >= self.silent_until:
                if self.gone:
                    self.gone, self.restarts = False, self.restarts + 1
                self._last_sample = self.now()
                return [self._record()]
        return []

    def send(self, kind: int, twist: Iterable[float]) -> bool:
        """Write a command into the controller's registers."""
        if self.gone:
            return False
        self._last_command, self._moving = self.now(), kind == wire.TWIST
        command = Command.SPEED_L if self._moving else Command.SPEED_STOP
        registers = {f"input_double_register_{i}": value for i, value in enumerate(twist)}
        self.controller.write({**registers, "input_int_register_0": int(command)})
        return True

    def restart_without_control(self) -> None:
        """Do nothing: the driver refuses commands after a lost connection."""

    def close(self) -> None:
        """Stop the arm."""
        self.controller.end_script()

    def _watch(self) -> None:
        """Stop the arm where no command or no sample came in time, as the client process does."""
        if self._moving and self.now() - min(self._last_command, self._last_sample) > self._hold_after:
            self.controller.write({"input_int_register_0": int(Command.SPEED_STOP)})
            self._moving = False

    def _record(self) -> tuple[Any, ...]:
        """Return the sample as a tuple of :data:`~contact_estimation.drivers.rtde_client.SAMPLE`."""
        values, host = self.controller.values, round(self.now() * 1e9)
        names = ("actual_q", "actual_qd", "actual_current", "target_moment")
        numbers = [number for name in names for number in values[name]]
        force = np.array(values["actual_TCP_force"]) + np.append(self.force_error(self.now()), np.zeros(3))
        modes = [values[name] for name in ("robot_mode", "safety_mode", "runtime_state")]
        return (values["timestamp"], host, host, *numbers, *force, *values["actual_TCP_pose"], *modes)
