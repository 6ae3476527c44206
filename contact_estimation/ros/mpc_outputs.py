"""Commands of the MPC as messages: equilibrium pose, prediction, markers, diagnostics."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Vector3
from std_msgs.msg import Header

from contact_estimation.control.controller import Command, ControllerState
from contact_estimation.drivers.backend import EquilibriumPose
from contact_estimation.msg import MpcPrediction
from contact_estimation.ros.convert import header

_LEVELS = {
    ControllerState.ACTIVE: DiagnosticStatus.OK,
    ControllerState.SHORTENED: DiagnosticStatus.WARN,
    ControllerState.SEARCHING: DiagnosticStatus.WARN,
    ControllerState.RETRACTING: DiagnosticStatus.WARN,
    ControllerState.HOLDING: DiagnosticStatus.ERROR,
    ControllerState.INACTIVE: DiagnosticStatus.STALE,
}


def pose(position: np.ndarray, rotation: np.ndarray) -> Pose:
    """Pose of position (3,) [m] and rotation (3, 3)."""
    x, y, z, w = pin.Quaternion(rotation).coeffs()
    return Pose(position=Point(**dict(zip("xyz", map(float, position)))), orientation=Quaternion(x=x, y=y, z=z, w=w))


def pose_stamped(head: Header, command: Command | EquilibriumPose) -> PoseStamped:
    """Write the commanded equilibrium."""
    return PoseStamped(header=head, pose=pose(command.position, command.rotation))


def prediction(
    head: Header, command: Command, solver: str, stage_time: float, plan: tuple[np.ndarray, np.ndarray] | None
) -> MpcPrediction:
    """Write the command and its prediction; ``plan`` is (positions, forces), each (H + 1, 3), or None."""
    solution = command.solution
    positions, forces = plan if plan is not None else ((), ())
    return MpcPrediction(
        header=head,
        state=command.state.value,
        reason=command.reason,
        equilibrium=pose(command.position, command.rotation),
        solver=solver,
        solver_status="" if solution is None else solution.status,
        solve_time=math.nan if solution is None else solution.seconds,
        iterations=0 if solution is None else solution.iterations,
        cost=math.nan if solution is None else solution.cost,
        stage_time=stage_time,
        positions=[Point(**dict(zip("xyz", map(float, p)))) for p in positions],
        forces=[Vector3(**dict(zip("xyz", map(float, f)))) for f in forces],
    )


class MpcHealth:
    """Collects, tick by tick, the report of one diagnostic period.

    Attributes:
        step: of a task in steps, the one that runs; else empty.
        warnings: in what the plan's contacts differ from those of the estimate.
    """

    def __init__(self, name: str, hardware: str) -> None:
        self.step = ""
        self.warnings: list[str] = []
        self._name, self._hardware = name, hardware
        self._state, self._reason, self._last_bad = ControllerState.INACTIVE, "not activated", ""
        self._counters: Counter[str] = Counter()
        self._begin()

    def _begin(self) -> None:
        self._times: list[float] = []
        self._iterations: list[int] = []
        self._status = ""

    def add(self, command: Command) -> bool:
        """Note a tick; True when the state changed."""
        changed = command.state is not self._state
        self._state, self._reason = command.state, command.reason
        self._counters[command.state.value] += 1
        if command.reason:
            self._last_bad = command.reason
        if command.solution is not None:
            self._times.append(1e3 * command.solution.seconds)
            self._iterations.append(command.solution.iterations)
            self._status = command.solution.status
        return changed

    def inactive(self, reason: str) -> None:
        """Note that the node commands nothing, and why."""
        self._state, self._reason, self.warnings = ControllerState.INACTIVE, reason, []

    def report(self, now_ns: int, error: str = "") -> DiagnosticArray:
        """Write the message of the period that ends now and begin the next one.

        Args:
            now_ns: the present [ns].
            error: what is wrong beside the controller; an empty string: nothing.
        """
        values = {
            "state": self._state.value,
            "reason": self._reason,
            "last fallback": self._last_bad,
            "solver status": self._status,
        }
        if self.step:
            values["step"] = self.step
        if self._times:
            p50, p99, worst = np.percentile(self._times, [50, 99, 100])
            values |= {
                "solve time [ms] p50": f"{p50:.3f}",
                "solve time [ms] p99": f"{p99:.3f}",
                "solve time [ms] max": f"{worst:.3f}",
                "iterations max": str(max(self._iterations)),
            }
        values |= {f"ticks {state}": str(count) for state, count in sorted(self._counters.items())}
        warned = self._state is ControllerState.ACTIVE and self.warnings
        level = DiagnosticStatus.WARN if warned else _LEVELS[self._state]
        status = DiagnosticStatus(
            level=DiagnosticStatus.ERROR if error else level,
            name=self._name,
            message=error or self._reason or "; ".join(self.warnings) or "planning",
            hardware_id=self._hardware,
            values=[KeyValue(key=k, value=v) for k, v in values.items()],
        )
        self._begin()
        return DiagnosticArray(header=header(now_ns, ""), status=[status])
