"""A contact task in steps: approach, touch, slide, follow an edge, insert, retract; one YAML, ``sequence_*.yaml``.

A step is a set-point (force, path) for a contact controller, with an end condition. Directions with a wanted force are
force controlled, the others follow the path. A step goes to its fallback, a later step, where it does not end in time,
loses its contact, or feels more than ``max_force``. Supervision and limits are those of the controllers. A fault (bad
estimates for long, a tool that is too fast or too far) ends the task: the arm stands still until the task is activated
again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from contact_estimation.control.controller import Command, ContactController, ControllerState, Observation
from contact_estimation.control.impedance import clip_equilibrium
from contact_estimation.control.mpc.settings import MpcSettings, load_mpc_settings
from contact_estimation.control.mpc.solver import Solution
from contact_estimation.control.observation_check import unusable
from contact_estimation.control.registry import CONTROLLERS, make_controller
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm
from contact_estimation.settings import find_config, key, load_task, load_yaml, positive, probability

#: A step that begins in contact takes its force over; beyond ``max_force`` it may grow by half until it is gone.
_TAKEN_OVER = 1.5

#: When a step ends: a force is felt, the wanted force is reached, the contact is lost, the path is gone through once.
ENDS = ("touched", "settled", "lost", "arrived")


class _End(Enum):
    """How a step ended: as it should, without that, or by a fault of estimates or arm."""

    DONE = "done"
    FAILED = "failed"
    FAULT = "fault"


@dataclass(frozen=True, kw_only=True)
class StepSettings:
    """One step."""

    name: str = key(doc="name of the step, for reports and fallbacks")
    controller: str = key("mpc", doc="controller of the step", choices=CONTROLLERS)
    force: list[float] = key([0.0, 0.0, 0.0], doc="wanted force ON the robot, base axes", unit="N", length=3)
    path: list[float] = key([0.0, 0.0, 0.0], doc="way of the step from where it begins", unit="m", length=3)
    path_time: float = key(4.0, doc="time for the way, smooth at both ends", unit="s", check=positive)
    until: str = key(
        doc="touched: a force is felt; settled: the wanted force is reached; lost: the contact is lost; arrived: the "
        "way is done",
        choices=ENDS,
    )
    limit: float = key(
        10.0, doc="time, without that spent holding, after which the fallback follows", unit="s", check=positive
    )
    max_force: float | None = key(
        None,
        doc="largest felt force beyond the wanted one; more ends the step by its fallback; null: overload of the "
        "controller task times its wanted force",
        unit="N",
        check=positive,
    )
    fallback: str = key("", doc="later step that follows where this one fails; empty: the task ends and holds")


@dataclass(frozen=True, kw_only=True)
class SequenceSettings:
    """A task in steps."""

    task: str = key(doc="controller task in tasks/ of a robot whose limits, gains and contacts all steps share")
    touch_force: float = key(3.0, doc="felt force that ends a step until touched", unit="N", check=positive)
    settle_share: float = key(
        0.1, doc="force error, as a share of the wanted force, that is settled", check=probability
    )
    settle_time: float = key(0.3, doc="... for this long", unit="s", check=positive)
    arrive_distance: float = key(
        0.005,
        doc="distance from the end of the way, across the wanted force, within which a step has arrived",
        unit="m",
        check=positive,
    )
    steps: list[StepSettings] = key(doc="steps, in order")

    def __post_init__(self) -> None:
        names = [step.name for step in self.steps]
        for i, step in enumerate(self.steps):
            if step.fallback and step.fallback not in names[i + 1 :]:
                raise ConfigError(
                    f"steps: the fallback '{step.fallback}' of step '{step.name}' is no later step; later steps are "
                    f"{', '.join(names[i + 1 :]) or 'none'}"
                )
            if step.until in ("settled", "lost") and not any(step.force):
                raise ConfigError(
                    f"steps: step '{step.name}' ends when {step.until}, but wants no force; give it a force"
                )
            if step.until == "arrived":
                self._check_way(step)

    def _check_way(self, step: StepSettings) -> None:
        """Refuse a way that a step has gone before it begins, or for which it has no time."""
        way = float(np.linalg.norm(np.array(step.path)[np.array(step.force) == 0]))  # [m] along the axes that follow it
        if 0.0 < way <= self.arrive_distance:
            raise ConfigError(
                f"steps: the way of step '{step.name}' is {1e3 * way:.3g} mm, and it has arrived within "
                f"{1e3 * self.arrive_distance:g} mm of its end (arrive_distance), wherever it began; reduce that "
                "distance, or lengthen the way"
            )
        if step.limit <= step.path_time:
            raise ConfigError(
                f"steps: step '{step.name}' ends when arrived, after path_time {step.path_time:g} s, but its limit is "
                f"{step.limit:g} s, after which it fails; give it more time, or a shorter path_time"
            )


def load_sequence(name: str, folder: Path | str | None = None) -> SequenceSettings:
    """Return a shipped sequence by name, or one from a YAML file by path.

    Args:
        name: of the sequence, or path.
        folder: profile of a robot; its tasks come first.

    Raises:
        ConfigError: unknown name, or an error in the file.
    """
    return load_task(SequenceSettings, "sequence", name, folder)


def make_task_controller(
    task: str, controller: str, arm: Arm, solver: str | None = None, deadline: float | None = None
) -> ContactController:
    """Return the controller of a task file, one set-point (``mpc_*.yaml``) or steps (``sequence_*.yaml``).

    Args:
        task: name in tasks/ of the robot or of a shipped one, or path of a YAML.
        controller: one of :data:`~contact_estimation.control.registry.CONTROLLERS`; steps name their own.
        arm: the robot.
        solver: of the MPC, default the task's.
        deadline: of the MPC's solves [s], default the task's.

    Raises:
        ConfigError: unknown name, or an error in the file.
    """
    folder = arm.settings.folder
    if "steps" in load_yaml(find_config("tasks", task, folder)):
        return SequenceController(arm, load_sequence(task, folder), solver=solver, deadline=deadline)
    return make_controller(controller, arm, load_mpc_settings(task, folder), solver, deadline=deadline)


def step_settings(task: MpcSettings, step: StepSettings) -> MpcSettings:
    """Return the controller's task of one step: force weights where a force is wanted, position weights elsewhere.

    Args:
        task: that all steps share.
        step: the step.

    Raises:
        ConfigError: force, path and limits contradict each other.
    """
    pushed = np.array(step.force) != 0
    force, position = max(task.weights.force), max(task.weights.position)
    weights = dataclasses.replace(
        task.weights, force=np.where(pushed, force, 0.0).tolist(), position=np.where(pushed, 0.0, position).tolist()
    )
    try:
        return dataclasses.replace(
            task,
            weights=weights,
            force=step.force,
            path=step.path,
            path_time=step.path_time,
            path_back=False,
            turn=[0.0, 0.0, 0.0],
            safety=dataclasses.replace(task.safety, on_loss="hold"),  # the steps say what follows
        )
    except ConfigError as error:
        raise ConfigError(f"steps: step '{step.name}': {error}") from error


class SequenceController:
    """Runs the steps one after the other; a contact controller like any other.

    Args:
        arm: the robot.
        sequence: the steps.
        task: what they share, default the sequence's.
        solver: of the MPC, default the task's.
        deadline: of the MPC's solves [s], default the task's.

    Attributes:
        ended: per step that ended its name and why, in order.
    """

    name = "sequence"

    def __init__(
        self,
        arm: Arm,
        sequence: SequenceSettings,
        task: MpcSettings | None = None,
        solver: str | None = None,
        deadline: float | None = None,
    ) -> None:
        self.arm, self.sequence = arm, sequence
        task = task or load_mpc_settings(sequence.task, arm.settings.folder)
        self._controllers: list[ContactController] = [
            make_controller(step.controller, arm, step_settings(task, step), solver, deadline=deadline)
            for step in sequence.steps
        ]
        self._max_force = task.safety.overload * float(np.linalg.norm(task.force))  # [N] of steps that say none
        without = [step.name for step in sequence.steps if step.max_force is None]
        if without and not self._max_force > 0:
            raise ConfigError(
                f"steps: {', '.join(without)} have no max_force, and task '{sequence.task}' wants no force that would "
                "give one; give each a max_force"
            )
        self._index = 0
        self._last: float | None = None  # time of the step's last tick [s]; the clock may begin anywhere
        self._passed = 0.0  # [s] of the step, without what was spent holding
        self._over: Command | None = None
        self._stood_at: np.ndarray | None = None  # (3,) last known TCP position [m] since the end, base frame
        self._settled_since: float | None = None
        self._attitude = np.eye(3)  # (3, 3) that the tool shall have, base frame
        self._goal = np.zeros(3)  # [m] end of the step's way, base frame
        self._least = np.inf  # [N] smallest force beyond the wanted one that the step has felt
        self.ended: list[tuple[str, str]] = []

    @property
    def step(self) -> StepSettings:
        """Return the step that runs."""
        return self.sequence.steps[self._index]

    @property
    def over(self) -> bool:
        """Return whether the task has ended: after the last step, or where a step without a fallback failed."""
        return self._over is not None

    @property
    def settings(self) -> MpcSettings:
        """Return the controller's task of the step that runs."""
        return self._controller.settings

    @property
    def state(self) -> ControllerState:
        """Return the state of the controller that runs; HOLDING after the last step."""
        return self._controller.state if self._over is None else self._over.state

    @property
    def _controller(self) -> ContactController:
        return self._controllers[self._index]

    def prepare(self) -> None:
        """Pay now what only the first tick costs."""
        for controller in self._controllers:
            controller.prepare()

    def activate(
        self, observation: Observation, equilibrium: np.ndarray | None = None, attitude: np.ndarray | None = None
    ) -> Command:
        """Begin with the first step where the arm is.

        Args:
            observation: a good one.
            equilibrium: (3,) [m] that is in force now, base frame; None: the one that balances the push.
            attitude: (3, 3) that the tool shall have, base frame; None: the one it has.

        Raises:
            ConfigError: the observation is invalid, stale or not finite.
        """
        self._over, self._stood_at, self.ended = None, None, []
        return self._begin(0, None, observation, equilibrium, attitude)

    def deactivate(self) -> Command | None:
        """Command nothing from now on; return the last command, which leaves the equilibrium where the arm is."""
        command = self._controller.deactivate()
        if command is not None and self._over is not None and self._stood_at is not None:
            command = dataclasses.replace(command, position=self._stood_at.copy(), rotation=self._over.rotation)
        self._over = None
        return command

    def update(self, t: float, observation: Observation) -> Command | None:
        """Return the command for time ``t`` [s]; None while inactive.

        Args:
            t: [s] of any clock that only advances.
            observation: present estimate.
        """
        if self._over is not None:
            return self._stand(self._over, observation)
        command = self._controller.update(t, observation)
        if command is None:
            return None
        if self._last is not None and command.state is not ControllerState.HOLDING:
            self._passed += max(t - self._last, 0.0)
        self._last = t
        how, why = self._end(t, observation, command)
        if how is None:
            return command
        name, following = self.step.name, self._following(how)
        # A step that failed, and the end of the task, push no more. A sound one hands its attitude on: the one that
        # the tool has is deflected by the contact, and would add up.
        relaxed = command.position if self._unusable(observation) else self.arm.tcp_pose(observation.q)[0]
        if following is None:
            reason = f"step '{name}' ended the task: {why}"
            command = self._over = Command(relaxed, command.rotation, ControllerState.HOLDING, reason)
        else:
            try:
                kept = (command.position, self._attitude) if how is _End.DONE else (relaxed, None)
                command = self._begin(following, t, observation, *kept)
            except ConfigError:  # no step begins on a bad estimate: this one goes on, and holds
                return command
        self.ended.append((name, why))
        return command

    def _stand(self, last: Command, observation: Observation) -> Command:
        """Return the command after the end: the equilibrium stays, but follows an arm that is dragged.

        It is at an arm that executes no commands.
        """
        if self._unusable(observation):
            return last
        task = self._controller.settings
        x, rotation = self.arm.tcp_pose(observation.q)
        position = self._stood_at = x
        if observation.executed:
            limit = task.safety.force_margin * task.impedance.max_force
            position = clip_equilibrium(last.position, x, x, np.array(task.impedance.stiffness), limit)
            rotation = last.rotation
        self._over = dataclasses.replace(last, position=position, rotation=rotation)
        return self._over

    def _unusable(self, observation: Observation) -> str:
        """Return why nothing may be concluded from an observation, or an empty string."""
        return unusable(observation, self.arm.n, [], self._controller.settings.safety.max_age)

    def _following(self, how: _End) -> int | None:
        """Return the index of the next step, None where the task ends."""
        names = [step.name for step in self.sequence.steps]
        if how is _End.FAILED and self.step.fallback:
            return names.index(self.step.fallback)
        return self._index + 1 if how is _End.DONE and self._index + 1 < len(names) else None

    def prediction(self, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
        """Return TCP positions (H + 1, 3) [m] and contact forces (H + 1, 3) [N] of a plan of the present step.

        Args:
            solution: plan of a tick.
        """
        return self._controller.prediction(solution)

    def _begin(
        self,
        index: int,
        t: float | None,
        observation: Observation,
        equilibrium: np.ndarray | None,
        attitude: np.ndarray | None,
    ) -> Command:
        command = self._controllers[index].activate(observation, equilibrium, attitude)
        x, measured = self.arm.tcp_pose(observation.q)
        self._attitude = measured if attitude is None else attitude
        self._index, self._last, self._passed = index, t, 0.0
        self._settled_since, self._least = None, np.inf
        self._goal = x + np.array(self.step.path)
        return command

    def _end(self, t: float, observation: Observation, command: Command) -> tuple[_End | None, str]:
        """Return how and why the step ends at ``t`` [s]; None and an empty string while it goes on."""
        step, passed = self.step, self._passed
        if command.state is ControllerState.HOLDING:
            self._settled_since = None
            if command.lost:
                return _End.DONE if step.until == "lost" else _End.FAILED, command.reason
            return (_End.FAULT, command.reason) if command.latched else (None, "")
        if self._unusable(observation):  # the remaining plan is followed for a moment; nothing is seen meanwhile
            self._settled_since = None
            return None, ""
        force = np.zeros(3) if observation.force is None else np.asarray(observation.force)
        if beyond := self._beyond(force):
            return _End.FAILED, beyond
        if step.until == "touched" and np.linalg.norm(force) >= self.sequence.touch_force:
            return _End.DONE, f"touched with {np.linalg.norm(force):.1f} N"
        if step.until == "settled" and self._settled(t, force):
            return _End.DONE, f"settled after {passed:.1f} s"
        missing = self._missing(observation)
        if step.until == "arrived" and passed >= step.path_time and missing <= self.sequence.arrive_distance:
            return _End.DONE, "arrived"
        if passed < step.limit:
            return None, ""
        where = f": {1e3 * missing:.0f} mm from the end of its way" if step.until == "arrived" else ""
        return _End.FAILED, f"not {step.until} within {step.limit:g} s{where}"

    def _missing(self, observation: Observation) -> float:
        """Return how far [m] the end of the way is, along the axes that follow it."""
        along_path = np.array(self.step.force) == 0
        return float(np.linalg.norm((self._goal - self.arm.tcp_pose(observation.q)[0])[along_path]))

    def _beyond(self, force: np.ndarray) -> str:
        """Return that more is felt than the step may feel, or an empty string.

        What counts is the contact force F (3,) [N] without its part along the wanted one F_d, up to that one's size:
        |F - n min(max(n F, 0), |F_d|)|, n = F_d / |F_d|.
        """
        wanted, most = np.array(self.step.force), self.step.max_force or self._max_force
        size = float(np.linalg.norm(wanted))
        normal = wanted / max(size, 1e-12)
        felt = float(np.linalg.norm(force - normal * np.clip(normal @ force, 0.0, size)))
        self._least = min(self._least, felt)
        if felt <= max(most, _TAKEN_OVER * self._least):
            return ""
        beside = f" beside the wanted {size:g} N" if size else ""
        return f"{felt:.1f} N are felt{beside}, at most {most:g} N"

    def _settled(self, t: float, force: np.ndarray) -> bool:
        wanted = np.array(self.step.force)
        pushed, size = wanted != 0, float(np.linalg.norm(wanted))
        near = float(np.linalg.norm((force - wanted)[pushed])) <= self.sequence.settle_share * size
        self._settled_since = (t if self._settled_since is None else self._settled_since) if near else None
        return self._settled_since is not None and t - self._settled_since >= self.sequence.settle_time
