"""Supervision shared by all contact controllers: bad estimates, lost contact, force and energy of the contact.

- A tick without a usable estimate or plan follows the remaining plan. After more than ``patience`` such ticks in a row
  the controller holds. After ``recover_time`` of good estimates the task continues by itself.
- A contact counts as lost by its probability, by its force, or by the speed at which the tool sinks. The tool then
  holds, searches or retracts, as the task states.
- The push along the wanted force's direction n is limited (:meth:`SupervisedController._limit_push`). A static push p
  makes the contact force p + d. A tool of effective mass m that approaches with speed v adds at most v sqrt(K m),
  from m v^2 / 2 = F^2 / (2 K). Hence v may be (F_max - F) / sqrt(K m), and the push F - d + D v. Where a second force
  is known, of another source, neither of the two may exceed the limit.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections import deque

import numpy as np

from contact_estimation.control.contact_loss import LossDetector
from contact_estimation.control.contact_search import ContactSearch, retreat_path
from contact_estimation.control.controller import Command, ControllerState, Observation
from contact_estimation.control.deadband import Deadband
from contact_estimation.control.effective_mass import effective_mass
from contact_estimation.control.force_balance import ForceBalance
from contact_estimation.control.impedance import clip_equilibrium, clip_norm
from contact_estimation.control.mpc.settings import MpcSettings
from contact_estimation.control.mpc.solver import Solution
from contact_estimation.control.observation_check import foreign_names, unusable
from contact_estimation.control.path import turned_back
from contact_estimation.control.ringing import RingingDetector
from contact_estimation.control.situation import Plan, Situation
from contact_estimation.control.standstill import Standstill
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm


class SupervisedController(ABC):
    """Base of the contact controllers: the state machine around :meth:`_plan`.

    Args:
        arm: the robot.
        settings: the task.
        adapt: take contacts, force and disturbance from the estimates; without it the settings' contacts are used.

    Attributes:
        state: of the controller.
        reason: why it is not active, or does not follow its plan.
    """

    name = ""

    def __init__(self, arm: Arm, settings: MpcSettings, adapt: bool = True) -> None:
        self.arm, self.settings, self.adapt = arm, settings, adapt
        self.state, self.reason = ControllerState.INACTIVE, "not activated"
        self._last: float | None = None  # [s] of the last tick
        self._held_since: float | None = None  # [s] of the tick before the hold
        self._names = [contact.name for contact in settings.contacts]
        self._points = {contact.name: np.array(contact.point) for contact in settings.contacts}
        self._stiffness = np.array(settings.impedance.stiffness)
        self._damping = settings.impedance.damping_factor * np.sqrt(self._stiffness)
        self._max_force = settings.impedance.max_force
        self._limit = settings.safety.force_margin * self._max_force
        self._axes = np.array(settings.weights.force) > 0
        wanted = np.array(settings.force)
        self._wanted = float(np.linalg.norm(wanted))
        self._normal = wanted / max(self._wanted, 1e-12)  # (3,) base axes
        self._loss = LossDetector(settings)
        self._ringing = RingingDetector(settings.safety.ringing * self._wanted)
        self._deadband, self._balance = Deadband(), ForceBalance(settings, self._normal)
        #: [N] Width of the dead band: it ends where the contact no longer counts as made.
        self._band = min(settings.force_deadband, (1.0 - settings.safety.made_force) * self._wanted)

    # -- what a controller adds --

    @abstractmethod
    def _plan(self, now: Situation) -> Plan:
        """Return the equilibrium for now."""

    @abstractmethod
    def _restart(self, observation: Observation) -> None:
        """Forget plans and integrals: the task begins, or goes on after a break."""

    def _remaining_plan(self, since: float) -> np.ndarray:
        """Return the equilibrium (3,) [m] that the last plan has ``since`` [s] after it was made."""
        return self._position

    def _contact_force(self, observation: Observation) -> np.ndarray:
        """Return the contact force (3,) [N] ON the robot, base axes."""
        if observation.force is not None and self.adapt:
            return np.asarray(observation.force, float)
        return self._law_force(observation)

    def _predict_state(self, observation: Observation, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the joint state (n,), (n,) that the command of ``t`` [s] is made for, predicted from the sample."""
        dq = np.asarray(observation.dq, float)
        return np.asarray(observation.q, float) + max(observation.age, 0.0) * dq, dq

    def prepare(self) -> None:
        """Pay now what only the first tick costs."""
        self.arm.tcp_pose(0.5 * (self.arm.lower + self.arm.upper))

    def prediction(self, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
        """Refuse: only a controller that plans has a prediction.

        Args:
            solution: plan of a tick.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"controller '{self.name}' makes no plan that could be predicted")

    # -- activation and ticks --

    def activate(
        self, observation: Observation, equilibrium: np.ndarray | None = None, attitude: np.ndarray | None = None
    ) -> Command:
        """Begin the task where the arm is.

        Args:
            observation: a good one.
            equilibrium: (3,) [m] that is in force now, where it is known; default the one that balances the felt push.
            attitude: (3, 3) that the tool shall have, base frame; default the one it has.

        Raises:
            ConfigError: the observation is invalid, stale or not finite, or has other contacts or modes.
        """
        if problem := self._problem_of(observation):
            raise ConfigError(f"controller '{self.name}' cannot be activated: {problem}; wait for a valid estimate")
        if self.adapt and (problem := foreign_names(observation, self.settings)):
            raise ConfigError(f"controller '{self.name}' cannot be activated: {problem}")
        self._start, self._seen_rotation = self.arm.tcp_pose(observation.q)  # (3,) [m] and (3, 3), measured
        self._rotation = self._seen_rotation if attitude is None else np.array(attitude, float)
        felt = 0.0 if observation.force is None or not self.adapt else float(self._normal @ observation.force)
        balanced = self._start - np.clip(felt, 0.0, self._wanted) * self._normal / self._stiffness
        self._position = np.array(balanced if equilibrium is None else equilibrium, float)
        self._turned = self._rotation.copy()
        self._seen = self._x = self._start  # (3,) TCP position [m] measured at the sample, and predicted for now
        self._balance.restart()
        self._elapsed, self._last = 0.0, None
        self._commands: deque[tuple[float, Command]] = deque(maxlen=64)
        self._failures, self._latched, self._lost = 0, False, False
        self._standstill = Standstill(self._start, np.zeros(3), self._seen_rotation, self._rotation)
        self._search: ContactSearch | None = None
        self._bad_since: float | None = None
        self._good_since: float | None = None
        self._planned = 0.0
        self._loss.trail.clear()
        self._loss.restart(self._start.copy())
        self._deadband.restart()
        self._ringing.restart()
        self._restart(observation)
        self.state, self.reason = ControllerState.ACTIVE, ""
        return self._command(None)

    def deactivate(self) -> Command | None:
        """Command nothing from now on; return the last command, which leaves the equilibrium where the arm is."""
        if self.state is ControllerState.INACTIVE:
            return None
        self.state, self.reason = ControllerState.INACTIVE, "deactivated"
        turned = self._turned if np.isfinite(self._turned).all() else self._rotation
        return Command(self._seen.copy(), turned.copy(), self.state, self.reason)

    def update(self, t: float, observation: Observation) -> Command | None:
        """Return the command for time ``t``; None while inactive.

        Args:
            t: [s] of any clock that only advances.
            observation: present estimate.
        """
        if self.state is ControllerState.INACTIVE:
            return None
        step = 0.0 if self._last is None else max(t - self._last, 0.0)
        self._last = t
        try:
            command = self._tick(t, step, observation)
            if not (np.isfinite(command.position).all() and np.isfinite(command.rotation).all()):
                raise ArithmeticError("the equilibrium is not finite")
        except Exception as error:  # a defect shall not leave the last push in force
            command = self._hold_after(error)
        self._commands.append((t, command))
        return command

    def _tick(self, t: float, step: float, observation: Observation) -> Command:
        problem = self._problem_of(observation)
        if not problem and not observation.executed:
            return self._wait(observation)
        if self._latched:
            if not problem:
                self._follow(observation)
            return self._command(None)
        if problem:
            self._good_since = None
            return self._fail(t, problem, None)
        if self.state is ControllerState.HOLDING:
            self._follow(observation)
            if not self._recovered(t, observation):
                return self._command(None)
        now = self._situation(t, step, observation)
        danger = self._unsafe(now)
        if danger:
            self._hold(danger, latch=True)
            return self._command(None)
        if self._search is not None:
            if not self._after_loss(self._search, now, observation):
                self._failures, self._bad_since = 0, None  # no plan is asked for
                return self._command(None)
        elif self.adapt and self._wanted > 0:
            lost = self._loss.check(now.t, now.x, now.force, observation, self.state is ControllerState.ACTIVE)
            if lost:
                return self._on_contact_lost(now, lost)
        return self._control(now)

    def _control(self, now: Situation) -> Command:
        """Plan, limit, command."""
        plan = self._plan(now)
        if plan.problem:
            return self._fail(now.t, plan.problem, plan.solution)
        self._failures, self._bad_since, self._planned = 0, None, now.t
        self.state, self.reason = ControllerState.ACTIVE, ""
        self._elapsed = now.elapsed
        position = plan.position
        if now.rest is not None:
            position = position + self._normal * (now.rest - float(self._normal @ position))
        self._position, self._turned = self._limit_push(position, now), plan.rotation
        return self._command(plan.solution)

    # -- what is known now --

    def _problem_of(self, observation: Observation) -> str:
        """Return why an observation cannot be planned from, or an empty string."""
        names = self._names if self.adapt else []
        return unusable(observation, self.arm.n, names, self.settings.safety.max_age)

    def _situation(self, t: float, step: float, observation: Observation) -> Situation:
        """Return what is known at ``t``; the balance of forces is taken at the time of the sample."""
        seen = self._see(observation)
        rest, observation = self._within_deadband(t, observation)
        jacobian = self.arm.tcp_jacobian(observation.q)[:3]
        dx, mass = jacobian @ observation.dq, effective_mass(self.arm, observation.q, jacobian, self._normal)
        force = self._contact_force(observation)
        if self.adapt:
            sampled, lag = t - observation.age, observation.age if len(observation.mode_probabilities) > 1 else None
            spring = clip_norm(self._stiffness * (self._commanded(sampled).position - seen), self._max_force)
            self._balance.update(sampled, self._damping * dx - spring - force, dx, mass, lag)
        q, dq = self._predict_state(observation, t)
        self._x = self.arm.tcp_pose(q)[0]
        elapsed = self._elapsed + (step if self.state is ControllerState.ACTIVE else 0.0)
        stiffness = self._contact_stiffness(observation)
        disturbance, extra = self._balance.disturbance, self._balance.trusted(self._normal @ (self._damping * dx))
        second = force if observation.second_force is None else observation.second_force
        doubt = max(float(self._normal @ (second - force)), 0.0)
        return Situation(
            t=t,
            elapsed=elapsed,
            q=q,
            dq=dq,
            x=self._x,
            dx=dx,
            force=force,
            stiffness=stiffness,
            disturbance=disturbance,
            mass=mass,
            extra=extra,
            rest=rest,
            doubt=doubt,
        )

    def _see(self, observation: Observation) -> np.ndarray:
        """Take note of where the arm was measured, and return the TCP's position (3,) [m]."""
        self._seen, self._seen_rotation = self.arm.tcp_pose(observation.q)
        return self._seen

    def _within_deadband(self, t: float, observation: Observation) -> tuple[float | None, Observation]:
        """Return where the equilibrium rests along the push [m], if it does, and what the force is controlled by.

        ``overload`` limits the push in the dead band, too.

        Args:
            t: now [s].
            observation: present estimate.
        """
        force = observation.force
        if force is None or observation.sensed or not self.adapt or self._band == 0.0:
            return None, observation
        error, at = float(self._normal @ force) - self._wanted, float(self._normal @ self._position)
        rest = self._deadband.update(t, error, self._band, at)
        if self._deadband.aim:
            observation = dataclasses.replace(observation, force=force - self._deadband.aim * self._normal)
        return rest, observation

    def _commanded(self, t: float) -> Command:
        """Return the command that was in force at ``t`` [s]."""
        before = [command for when, command in self._commands if when < t]
        if before:
            return before[-1]
        return self._commands[0][1] if self._commands else self._command(None)

    def _contact_stiffness(self, observation: Observation) -> float:
        """Return the stiffness [N/m] of the contacts along the wanted force, together."""
        found = observation.contacts if self.adapt else {}
        vectors = [found[name][:3] for name in self._names if name in found]
        vectors = vectors or [np.array(contact.stiffness) for contact in self.settings.contacts]
        total = sum(float((self._normal @ k) ** 2 / max(np.linalg.norm(k), 1e-9)) for k in vectors)
        return max(total, 1.0)

    def _law_force(self, observation: Observation) -> np.ndarray:
        """Return the force (3,) [N] of the contacts as linear springs."""
        x, rotation = self.arm.tcp_pose(observation.q)
        force = np.zeros(3)
        for contact in self.settings.contacts:
            rest = np.zeros(3) if isinstance(contact.rest, str) else np.array(contact.rest)
            phi = np.concatenate([contact.stiffness, rest, contact.point])
            phi = observation.contacts.get(contact.name, phi) if self.adapt else phi
            size = max(float(np.linalg.norm(phi[:3])), 1e-9)
            force += phi[:3] / size * float(phi[:3] @ (phi[3:6] - x - rotation @ phi[6:9]))
        return force

    # -- limits --

    def _unsafe(self, now: Situation) -> str:
        limits = self.settings.safety
        speed, travel = float(np.linalg.norm(now.dx)), float(np.linalg.norm(now.x - self._start))
        if speed > limits.max_speed:
            return f"TCP at {speed:.2f} m/s, limit {limits.max_speed:g} m/s"
        if travel > limits.max_travel:
            return f"TCP {travel:.2f} m from where the task began, limit {limits.max_travel:g} m (contact lost?)"
        watched = self._wanted > 0 and self.adapt
        return self._ringing.check(now.t, float(self._normal @ now.force)) if watched else ""

    def _limit_push(self, position: np.ndarray, now: Situation) -> np.ndarray:
        """Limit the push along the wanted force, and the spring's force."""
        spring = self._stiffness * (position - now.x)
        normal, wanted = self._normal, self._wanted
        if wanted > 0 and self.adapt:
            most = self.settings.safety.overload * wanted
            force = max(float(normal @ now.force), 0.0)
            share = 1.0  # a push that rests makes no step of force
            if now.rest is None:
                damping = float(normal**2 @ self._damping)
                # A mass on a spring answers a step of force with twice the step at most.
                pressing = 0.5 if force > self.settings.safety.loss_force * wanted else 0.0
                share = max(damping / np.sqrt(now.stiffness * now.mass), pressing)
            allowed = min(most - now.doubt, force + share * max(most - force, 0.0)) + now.extra
            excess = -float(normal @ spring) - allowed
            if excess > 0:
                spring = spring + excess * normal
        return self._within_limit(now.x + spring / self._stiffness)

    def _within_limit(self, position: np.ndarray) -> np.ndarray:
        """Return an equilibrium whose spring holds its limit, also if the arm has stayed where it was measured."""
        return clip_equilibrium(position, self._seen, self._x, self._stiffness, self._limit)

    # -- bad ticks --

    def _fail(self, t: float, reason: str, solution: Solution | None) -> Command:
        self._failures += 1
        self._bad_since = t if self._bad_since is None else self._bad_since
        limits = self.settings.safety
        if t - self._bad_since > limits.max_outage:
            self._hold(f"{reason} for more than {limits.max_outage:g} s", latch=True)
        elif self._failures > limits.patience or self.state is ControllerState.HOLDING:
            self._hold(reason, latch=False)
        elif self.state in (ControllerState.ACTIVE, ControllerState.SHORTENED):
            self.state, self.reason = ControllerState.SHORTENED, f"following the remaining plan: {reason}"
            self._position = self._within_limit(self._remaining_plan(t - self._planned))
        return self._command(solution)

    def _hold(self, reason: str, latch: bool, lost: bool = False) -> None:
        """Put the equilibrium where the arm was last measured: K_imp / (K_imp + K) of the contact's force remains.

        Args:
            reason: why.
            latch: hold until activated again.
            lost: the contact was lost.
        """
        if self.state is not ControllerState.HOLDING:
            relief = self._seen - self._position
            self._standstill = Standstill(self._seen.copy(), relief, self._seen_rotation, self._turned)
            self._position, self._held_since = self._seen.copy(), self._last
        until = "until activated again" if latch else "until the estimate is good again"
        self.state, self.reason = ControllerState.HOLDING, f"holding {until}: {reason}"
        self._latched, self._lost = latch, lost

    def _wait(self, observation: Observation) -> Command:
        """Hold at an arm that executes no commands, latched or not; what integrates begins anew afterwards."""
        if not self._latched:
            self._hold("", latch=False)
            self.reason = "holding until the arm executes commands"
        self._balance.restart()
        self._position, self._turned = self._see(observation), self._seen_rotation
        self._good_since, self._failures, self._bad_since = None, 0, None
        return self._command(None)

    def _hold_after(self, error: Exception) -> Command:
        """Hold after a tick that failed, in the attitude of the beginning where the last one is no longer known."""
        self._position = self._seen.copy()
        if not np.isfinite(self._turned).all():
            self._turned = self._rotation.copy()
        self._hold(f"{type(error).__name__}: {error}", latch=True)
        return self._command(None)

    def _follow(self, observation: Observation) -> None:
        """Let the equilibrium follow an arm that is dragged, so that its spring holds its limit.

        Args:
            observation: that can be planned from; another one may be wrong about where the arm is.
        """
        x = self._see(observation)
        self._position = clip_equilibrium(self._position, x, x, self._stiffness, self._limit)

    def _recovered(self, t: float, observation: Observation) -> bool:
        """Return whether estimates have been good for long enough; then the task goes on along its path.

        A tool that was moved meanwhile would be led back to the path from wherever it is: it stands instead.
        """
        limits, moved = self.settings.safety, self._standstill.moved(self._seen)
        turned = self._standstill.turned(self._seen_rotation)
        if moved > limits.resume_distance or turned > limits.resume_angle:
            text = f"turned by {turned:.2g} rad while it held, at most {limits.resume_angle:.2g} rad"
            if moved > limits.resume_distance:
                text = f"moved by {1e3 * moved:.0f} mm while it held, at most {1e3 * limits.resume_distance:.0f} mm"
            self._hold(f"the tool was {text}", latch=True)
            self._position, self._turned = self._seen.copy(), self._seen_rotation.copy()
            return False
        self._good_since = t if self._good_since is None else self._good_since
        if t - self._good_since < limits.recover_time:
            return False
        if self._search is None:
            self._resume(observation)
        else:
            self._search.begun += t - (t if self._held_since is None else self._held_since)
            self._good_since, self._failures = None, 0
            self._continue_search()
        return True

    def _resume(self, observation: Observation) -> None:
        self._good_since, self._failures, self._search = None, 0, None
        self._loss.restart(self.arm.tcp_pose(observation.q)[0])
        self._deadband.restart()
        self._restart(observation)
        self.state, self.reason = ControllerState.ACTIVE, ""

    # -- contact lost --

    def _on_contact_lost(self, now: Situation, why: str) -> Command:
        """Answer a lost contact as the task says."""
        limits, reason = self.settings.safety, f"contact lost: {why}"
        trail = np.array(self._loss.trail).reshape(-1, 3)
        back = retreat_path(now.x, trail, self._normal, limits.return_distance)
        self._position, self._good_since = now.x.copy(), None
        self._loss.restart(now.x)
        if limits.on_loss == "hold":
            self._hold(reason, latch=True, lost=True)
        else:
            self._search = ContactSearch(limits, self._normal, now.x.copy(), now.t, reason, back)
            self._continue_search()
        return self._command(None)

    def _continue_search(self) -> None:
        assert self._search is not None, "nothing was lost"
        self.state = ControllerState.RETRACTING if self._search.retracts else ControllerState.SEARCHING
        self.reason = self._search.reason

    def _after_loss(self, search: ContactSearch, now: Situation, observation: Observation) -> bool:
        """Search or retract; returns whether the contact is back."""
        limits = self.settings.safety
        position, sinks = search.equilibrium(now.t)
        felt = float(self._normal @ now.force) > limits.loss_force * self._wanted and self._loss.closed(observation)
        if sinks and felt:
            self._good_since = now.t if self._good_since is None else self._good_since
            if now.t - self._good_since >= limits.loss_time:
                self._resume(observation)
                self._turn_back(search, now)
                return True
        else:
            self._good_since = None
        finished = search.finished(now.t, now.x)
        if finished:
            self._hold(finished, latch=True, lost=True)
        if not finished or search.retracts:
            self._position = self._within_limit(position) if search.retracts else self._limit_push(position, now)
        return False

    def _turn_back(self, search: ContactSearch, now: Situation) -> None:
        """Follow the path in the other direction after a return: ahead is the edge."""
        path, s = np.array(self.settings.path), self.settings
        if search.returns and path.any():
            share = float(np.clip((now.x - self._start) @ path / (path @ path), 0.0, 1.0))
            now.elapsed = self._elapsed = s.path_time * turned_back(self._elapsed / s.path_time, share)

    def _command(self, solution: Solution | None) -> Command:
        return Command(
            self._position.copy(), self._turned.copy(), self.state, self.reason, solution, self._latched, self._lost
        )
