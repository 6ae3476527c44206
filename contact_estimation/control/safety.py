"""The safety filter between planner and robot: limits on step, rate, force and workspace, and a deadman.

The filter acts on the equilibrium pose of the impedance controller. Its output never jumps. It starts at the arm's
present equilibrium, stays in the workspace, and moves by at most ``max_step`` per call and ``max_rate`` per second.

No command stretches the impedance springs beyond ``max_force`` and ``max_torque``, except at an arm that is pushed or
turned away. There the equilibrium yields, faster than ``max_rate``, but by at most ``max_step`` (turned: 0.05 rad) per
call, and not out of the workspace. The springs are longer until it has caught up. A held equilibrium does not yield.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_estimation.control.impedance import clip_norm
from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.settings import find_config, from_yaml, key, positive

#: [rad] The largest turn per command with which the equilibrium yields to an arm that is turned away.
_YIELD = 0.05


@dataclass(frozen=True, kw_only=True)
class SafetySettings:
    """Limits of what may be commanded."""

    max_step: float = key(0.005, doc="largest change of the equilibrium per command", unit="m", check=positive)
    max_rate: float = key(0.25, doc="largest speed of the equilibrium", unit="m/s", check=positive)
    max_turn_rate: float = key(0.5, doc="largest angular speed of the equilibrium", unit="rad/s", check=positive)
    max_force: float = key(
        30.0,
        doc="largest force of the impedance spring, equilibrium minus position times stiffness",
        unit="N",
        check=positive,
    )
    max_torque: float = key(
        15.0,
        doc="largest torque of the impedance's rotational spring, its angle times its stiffness",
        unit="Nm",
        check=positive,
    )
    workspace_lower: list[float] = key(
        [-1.0, -1.0, -0.2], doc="lower corner of the box the equilibrium stays in, base frame", unit="m", length=3
    )
    workspace_upper: list[float] = key(
        [1.0, 1.0, 1.5], doc="upper corner of the box the equilibrium stays in, base frame", unit="m", length=3
    )
    hold_after: float = key(
        0.05, doc="without a fresh, valid estimate for this long the equilibrium is held", unit="s", check=positive
    )
    stop_after: float = key(
        0.2, doc="without a fresh, valid estimate for this long the motion is stopped", unit="s", check=positive
    )
    release_after: float = key(
        0.3,
        doc="without a command for this long the planner is taken for gone: the equilibrium goes to where the arm is, "
        "and the next command starts there",
        unit="s",
        check=positive,
    )

    def __post_init__(self) -> None:
        if any(low >= high for low, high in zip(self.workspace_lower, self.workspace_upper)):
            raise ConfigError(
                f"workspace_lower {self.workspace_lower} must be below workspace_upper {self.workspace_upper}"
            )
        if self.stop_after < self.hold_after:
            raise ConfigError(
                f"stop_after ({self.stop_after} s) must not be shorter than hold_after ({self.hold_after} s)"
            )


def load_limits(name: str, folder: Path | str | None = None) -> SafetySettings:
    """Load limits of commands.

    Args:
        name: in a robot's limits/, or path of a YAML; empty: the defaults.
        folder: profile of the robot; its limits come first.

    Raises:
        ConfigError: there are none of this name, or the file has an error.
    """
    return from_yaml(SafetySettings, find_config("limits", name, folder)) if name else SafetySettings()


class SafetyState(Enum):
    """What the filter does with commands."""

    INACTIVE = "inactive"
    ACTIVE = "active"
    HOLD = "hold"
    STOP = "stop"


@dataclass(frozen=True)
class SafeCommand:
    """Equilibrium pose that may be sent.

    Attributes:
        position: (3,) [m], base frame.
        rotation: (3, 3), base frame.
        state: of the filter.
        limited: names of the limits that acted.
    """

    position: np.ndarray
    rotation: np.ndarray
    state: SafetyState
    limited: tuple[str, ...] = ()


@dataclass
class Deadman:
    """Watches the age of the last fresh, valid estimate. Times [s] are on the clock of the caller, never read here."""

    settings: SafetySettings
    last_good: float | None = field(default=None)

    def fresh(self, now: float) -> None:
        """Take note of a fresh and valid estimate at ``now`` [s]."""
        self.last_good = now

    def state(self, now: float) -> SafetyState:
        """ACTIVE, HOLD or STOP at ``now``. Before the first estimate: STOP."""
        if self.last_good is None:
            return SafetyState.STOP
        age = now - self.last_good
        if age < 0 or age > self.settings.stop_after:  # a clock that ran back proves nothing
            return SafetyState.STOP
        return SafetyState.HOLD if age > self.settings.hold_after else SafetyState.ACTIVE


class SafetyFilter:
    """Limits equilibrium poses. Inactive until :meth:`activate`; a STOP latches until the next activation.

    Args:
        settings: the limits.
        stiffness: translational stiffness of the impedance controller (3,) [N/m].
        rotational_stiffness: its rotational stiffness (3,) [Nm/rad].
    """

    def __init__(self, settings: SafetySettings, stiffness: np.ndarray, rotational_stiffness: np.ndarray) -> None:
        self.settings, self._stiffness = settings, np.array(stiffness, float)
        self._most_turn = settings.max_torque / max(float(np.max(rotational_stiffness)), 1e-9)  # [rad]
        self.deadman = Deadman(settings)
        self._lower, self._upper = np.array(settings.workspace_lower), np.array(settings.workspace_upper)
        self._active, self._stopped = False, False
        self._pose: tuple[np.ndarray, np.ndarray] | None = None
        self._last: float | None = None

    @property
    def active(self) -> bool:
        """Whether commands may pass."""
        return self._active and not self._stopped

    def activate(self, now: float, position: np.ndarray, rotation: np.ndarray) -> SafeCommand:
        """Begin at the equilibrium of the arm's controller or, without one, at the TCP's pose: the first command is it.

        Args:
            now: [s] of any clock that only advances.
            position: (3,) [m], base frame.
            rotation: (3, 3), base frame.

        Raises:
            DriverError: the pose is not finite or outside the workspace.
        """
        position, rotation = np.array(position, float), np.array(rotation, float)
        if not (np.isfinite(position).all() and np.isfinite(rotation).all()):
            raise DriverError(
                f"cannot activate commands at a pose that is not finite: {position}; wait for a valid estimate"
            )
        if (position < self._lower).any() or (position > self._upper).any():
            raise DriverError(
                f"cannot activate commands: the arm is at {np.round(position, 3)} m, outside the workspace "
                f"{self.settings.workspace_lower} to {self.settings.workspace_upper}; move it there, or widen "
                "the workspace"
            )
        self._pose, self._last = (position, rotation), now
        self._active, self._stopped = True, False
        self.deadman.fresh(now)
        return SafeCommand(position, rotation, SafetyState.ACTIVE)

    def move_to(self, now: float, position: np.ndarray, rotation: np.ndarray) -> None:
        """Go on from another equilibrium, which was commanded past this filter at ``now`` [s].

        Args:
            now: time [s].
            position: (3,) equilibrium [m].
            rotation: (3, 3) equilibrium.
        """
        self._pose, self._last = (np.array(position, float), np.array(rotation, float)), now

    def deactivate(self) -> None:
        """Let nothing pass from now on; the arm's controller keeps its last equilibrium."""
        self._active = False

    def filter(
        self,
        now: float,
        position: np.ndarray,
        rotation: np.ndarray,
        measured: np.ndarray,
        measured_rotation: np.ndarray,
    ) -> SafeCommand | None:
        """Return the command that may be sent for a wanted one; None while inactive or stopped.

        Args:
            now: time [s].
            position: (3,) wanted equilibrium [m].
            rotation: (3, 3) wanted equilibrium.
            measured: (3,) TCP position [m].
            measured_rotation: (3, 3) TCP attitude.
        """
        if not self.active or self._pose is None or self._last is None:
            return None
        state = self.deadman.state(now)
        if state is SafetyState.STOP:
            self._stopped = True
            return None
        old_position, old_rotation = self._pose
        # A planner that was silent has not earned a longer step.
        dt = min(max(now - self._last, 0.0), self.settings.hold_after)
        self._last = now
        position, rotation, measured = np.array(position, float), np.array(rotation, float), np.array(measured, float)
        finite = all(np.isfinite(a).all() for a in (position, rotation, measured, measured_rotation))
        if state is SafetyState.HOLD or not finite:
            return SafeCommand(old_position, old_rotation, SafetyState.HOLD, () if finite else ("not finite",))
        limited = []
        wanted = position
        position = np.clip(position, self._lower, self._upper)
        if (position != wanted).any():
            limited.append("workspace")
        step = position - old_position
        for name, limit in (("rate", self.settings.max_rate * dt), ("step", self.settings.max_step)):
            shorter = clip_norm(step, limit)
            if shorter is not step:
                step, limited = shorter, [*limited, name]
        spring = self._stiffness * (old_position + step - measured)
        safe = clip_norm(spring, self.settings.max_force)
        position = old_position + step
        if safe is not spring:
            limited.append("force")
            # Yielding to an arm that is pushed away may be faster than max_rate, but never a jump.
            position = measured + safe / self._stiffness
            move = clip_norm(position - old_position, self.settings.max_step)
            position = np.clip(old_position + move, self._lower, self._upper)
        rotation, acted = self._turned(old_rotation, rotation, np.array(measured_rotation, float), dt)
        limited += acted
        self._pose = position, rotation
        return SafeCommand(position, rotation, SafetyState.ACTIVE, tuple(limited))

    def _turned(
        self, old: np.ndarray, wanted: np.ndarray, measured: np.ndarray, dt: float
    ) -> tuple[np.ndarray, list[str]]:
        """Return the attitude (3, 3) within the limits of rate and torque, and which of them acted.

        Args:
            old: (3, 3) last one.
            wanted: (3, 3).
            measured: (3, 3) of the TCP.
            dt: time since the last one [s].
        """
        limited, most = [], self.settings.max_turn_rate * dt
        turn = pin.log3(old.T @ wanted)
        shorter = clip_norm(turn, most)
        if shorter is not turn:
            limited.append("turn rate")
        rotation = old @ pin.exp3(shorter)
        ahead = pin.log3(measured.T @ rotation)
        near = clip_norm(ahead, self._most_turn)
        if near is not ahead:
            limited.append("torque")
            # Yielding to an arm that is turned away may be faster than the rate, but never a jump.
            back = clip_norm(pin.log3(old.T @ measured @ pin.exp3(near)), _YIELD)
            rotation = old @ pin.exp3(back)
        return rotation, limited
