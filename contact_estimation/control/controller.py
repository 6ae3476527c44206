"""The controller protocol of contact tasks: estimates in, equilibrium poses of the impedance controller out.

:func:`contact_estimation.control.registry.make_controller` chooses a controller by name. All of them command the same
equilibrium under the same supervision (:mod:`contact_estimation.control.supervision`). They differ in the force that
they request from the impedance's spring.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np

from contact_estimation.control.mpc.settings import MpcSettings
from contact_estimation.control.mpc.solver import Solution
from contact_estimation.robot import Arm


class ControllerState(Enum):
    """What the controller does.

    INACTIVE: commands nothing. ACTIVE: controls. SHORTENED: a tick without a usable plan, the remaining plan is
    followed. HOLDING: the equilibrium is where the arm was. SEARCHING: the contact was lost and is approached again.
    RETRACTING: the contact was lost and the tool withdraws.
    """

    INACTIVE = "inactive"
    ACTIVE = "active"
    SHORTENED = "shortened"
    HOLDING = "holding"
    SEARCHING = "searching"
    RETRACTING = "retracting"


@dataclass(frozen=True)
class Observation:
    """Input of a controller: the values of an estimate.

    Attributes:
        q: (n,) joint positions [rad].
        dq: (n,) joint velocities [rad/s].
        contacts: contact names to [stiffness N/m; rest m, base; point m, TCP] (9,).
        laws: contact names to the law's name and the values [SI] of the law's own parameters.
        mode_probabilities: modes to their probabilities.
        probabilities: contact names to the probability that they are closed.
        force: published force (3,) [N] of the environment ON the robot, base axes; None: that of the contacts' laws.
        second_force: (3,) [N] of the same contact from another source, base axes: the push is limited by the larger
            one. None: there is no other.
        sensed: whether the force is that of a sensor; without one it is estimated through the friction of the gears.
        age: since the sample [s].
        valid: as the estimate says.
        reason: why it is not valid.
        executed: whether the arm executes commands; not in a protective stop, or while its driver is not active.
    """

    q: np.ndarray
    dq: np.ndarray
    contacts: dict[str, np.ndarray] = field(default_factory=dict)
    laws: dict[str, tuple[str, dict[str, float]]] = field(default_factory=dict)
    mode_probabilities: dict[str, float] = field(default_factory=dict)
    probabilities: dict[str, float] = field(default_factory=dict)
    force: np.ndarray | None = None
    second_force: np.ndarray | None = None
    sensed: bool = False
    age: float = 0.0
    valid: bool = True
    reason: str = ""
    executed: bool = True

    @classmethod
    def of(cls, estimate: Any, age: float = 0.0) -> Observation:
        """Return the observation of an observer's estimate; a contact of unknown place has no law to plan with.

        Args:
            estimate: of an observer.
            age: of the estimate [s].
        """
        known = [c for c in estimate.contacts if c.place is None]
        return cls(
            q=estimate.q,
            dq=estimate.dq,
            contacts={c.name: np.concatenate([c.stiffness, c.rest, c.point_tcp]) for c in known},
            laws={c.name: (c.law, c.law_parameters) for c in known},
            mode_probabilities=estimate.modes,
            probabilities={c.name: c.probability for c in known},
            force=estimate.force_base,
            age=age,
            valid=estimate.valid,
            reason=estimate.reason,
        )

    def with_sensor(self, force: np.ndarray, drift: float) -> Observation:
        """Return the observation with the force of a sensor; its own becomes the second one, less what may be drift.

        Args:
            force: (3,) [N] by the sensor, base axes.
            drift: of the observation's own force since the touch [N]. In a long press it would else end a sound push.
        """
        second = self.force
        if second is not None and drift > 0.0:
            second = second * (1.0 - drift / max(float(np.linalg.norm(second)), drift))
        return replace(self, force=force, second_force=second, sensed=True)


@dataclass(frozen=True)
class Command:
    """Command to the impedance controller.

    Attributes:
        position: (3,) equilibrium [m], base frame.
        rotation: (3, 3) equilibrium, base frame.
        state: of the controller.
        reason: why it is not ACTIVE.
        solution: of this tick, None where none was asked for.
        latched: whether it holds until it is activated again.
        lost: whether it holds because the contact was lost.
        warnings: of a first command, in what the controller's contacts differ from those of the estimate.
    """

    position: np.ndarray
    rotation: np.ndarray
    state: ControllerState
    reason: str = ""
    solution: Solution | None = None
    latched: bool = False
    lost: bool = False
    warnings: tuple[str, ...] = ()


class ContactController(Protocol):
    """A controller of one contact task."""

    #: Word it is chosen by.
    name: str
    arm: Arm

    @property
    def settings(self) -> MpcSettings:
        """The task."""

    @property
    def state(self) -> ControllerState:
        """What the controller does now."""

    def prepare(self) -> None:
        """Do the work that only the first tick needs (compilation, first solve)."""

    def activate(
        self, observation: Observation, equilibrium: np.ndarray | None = None, attitude: np.ndarray | None = None
    ) -> Command:
        """Begin the task where the arm is.

        Args:
            observation: a good one.
            equilibrium: (3,) [m] that is in force now, where it is known; default the one that balances the felt push.
            attitude: (3, 3) that the tool shall have, base frame; default the one it has.

        Raises:
            ConfigError: the observation is invalid, stale or not finite.
        """

    def deactivate(self) -> Command | None:
        """Command nothing from now on.

        Returns:
            The last command, which relaxes the spring: the equilibrium where the arm was last measured. None where
            the controller was inactive.
        """

    def update(self, t: float, observation: Observation) -> Command | None:
        """Return the command for time ``t``; None while inactive.

        Args:
            t: [s] of any clock that only advances.
            observation: present estimate.
        """

    def prediction(self, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
        """Return TCP positions (H + 1, 3) [m] and contact forces (H + 1, 3) [N, ON the robot] of a plan.

        Args:
            solution: plan of a tick.
        """
