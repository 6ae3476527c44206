"""The MPC as a contact controller: it plans over the contacts of the estimate.

The state is predicted forward to the middle of the period for which the command will hold, through the stage's own
dynamics, under the equilibria commanded since the sample (Smith predictor). If the estimate publishes a force, the
contacts' rest positions are moved along their normals until the plan's contact law gives that force. A mixture of
filters publishes mean force, mean stiffness and mean rest, and the law of the means is not the mean force. The rests
move on at their velocity. What the normals cannot give along the wanted force stays as it is over the plan: a wrong
normal, along which a part of the friction looks like pressure, then makes no lasting error of the force.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Sequence

import casadi as ca
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_estimation.codegen import compile_function
from contact_estimation.codegen.compile import CompiledFunction
from contact_estimation.contact import ContactSettings
from contact_estimation.contact.registry import same_normal_force
from contact_estimation.control.controller import Command, Observation
from contact_estimation.control.impedance import clip_norm
from contact_estimation.control.mpc.apparent_stiffness import ApparentStiffness
from contact_estimation.control.mpc.costs import CostTerm
from contact_estimation.control.mpc.icem import Icem
from contact_estimation.control.mpc.problem import MpcProblem
from contact_estimation.control.mpc.rest_tracker import RestTracker
from contact_estimation.control.mpc.rollout import Rollout
from contact_estimation.control.mpc.settings import MpcSettings
from contact_estimation.control.mpc.solver import Solution, Solver, make_solver
from contact_estimation.control.path import path_share
from contact_estimation.control.situation import Plan, Situation
from contact_estimation.control.supervision import SupervisedController
from contact_estimation.robot import Arm

#: [s] longest step of the prediction.
_PREDICTION_STEP = 0.01
#: Share of the wanted force that tells changes of force from noise.
_EXCITATION = 0.03
#: [m] and [-] between the contact of the task and that of the estimate, from where the guard warns.
_POINT_MISMATCH, _NORMAL_MISMATCH = 0.03, 0.87


class ContactModelWarning(UserWarning):
    """The MPC plans with another contact than the estimate has: law, point or normal."""


class MpcController(SupervisedController):
    """Contact-aware MPC of one task.

    Args:
        arm: the robot.
        settings: the task.
        solver: ``rti`` or ``sqp`` (default the settings').
        extra: further cost terms.
        adapt: take contacts and disturbance from the estimates; without it those of the settings are used (for
            comparison).
        deadline: [s] replaces the settings'; infinite where time is simulated and a slow machine must not change the
            result.
    """

    name = "mpc"

    def __init__(
        self,
        arm: Arm,
        settings: MpcSettings,
        solver: str | None = None,
        extra: Sequence[CostTerm] = (),
        adapt: bool = True,
        deadline: float | None = None,
    ) -> None:
        super().__init__(arm, settings, adapt)
        self.problem = MpcProblem(arm, settings, extra)
        self.solver: Solver = make_solver(self.problem, solver)
        self.deadline = deadline or settings.safety.deadline or 1.0 / settings.rate
        self._icem = Icem(self.problem, np.random.default_rng(0)) if settings.warm_start == "icem" else None
        self._rollout = Rollout(self.problem)
        self._rests = RestTracker(settings.rest_time, settings.rest_velocity_time, settings.safety.max_speed)
        self._apparent_stiffness = ApparentStiffness(_EXCITATION * self._wanted)
        points = [contact.point for contact in settings.contacts]
        self._tool_point = np.mean(points, axis=0) if points else np.zeros(3)  # (3,) [m] of the tool, TCP frame
        self._turn_stiffness = np.array(settings.impedance.rotational_stiffness)
        self._outputs = self._compile_outputs()
        self._last_stiffness: dict[str, np.ndarray] = {}  # (3,) [N/m] by pressed contact

    def _compile_outputs(self) -> CompiledFunction:
        """Compile TCP position, contact force, and the torque that balances the rest, of the first mode at a state."""
        mode, stage = self.problem.stage.modes[0], self.problem.stage
        missing = ca.substitute(mode.residual, mode.delta, ca.SX.zeros(self.arm.n))
        missing = ca.substitute(missing, stage.h, ca.SX.zeros(1)) + stage.parameters.get("disturbance", self.arm.n)
        return compile_function(
            ca.Function(
                "mpc_outputs",
                [stage.x, stage.u, self.problem.p],
                [ca.densify(mode.x), ca.densify(mode.force), ca.densify(missing)],
                ["state", "u", "p"],
                ["x", "force", "missing"],
            )
        )

    def prepare(self) -> None:
        """Solve once, so that the first tick is like the others."""
        middle = self.problem.stack(0.5 * (self.arm.lower + self.arm.upper), np.zeros(self.arm.n))
        self.solver.reset(middle)
        self.solver.solve(middle)

    def prediction(self, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
        """Return TCP positions (H + 1, 3) [m] and contact forces (H + 1, 3) [N, ON the robot, base axes] of a plan.

        Args:
            solution: plan of a tick.
        """
        rows = [self._output(state, stage) for stage, state in enumerate(solution.states)]
        return np.array([x for x, _ in rows]), np.array([force for _, force in rows]) + self._unmodelled

    def activate(
        self, observation: Observation, equilibrium: np.ndarray | None = None, attitude: np.ndarray | None = None
    ) -> Command:
        """Begin the task where the arm is, as the base class does; no stiffness is known from an earlier one.

        Args:
            observation: where the arm is.
            equilibrium: (3,) [m] that is in force now, base frame; None: the one that balances the push.
            attitude: (3, 3) that the tool shall have, base frame; None: the one it has.

        Returns:
            The first command, with warnings where the plan assumes another contact than the observer estimates.
        """
        self._last_stiffness.clear()
        command = super().activate(observation, equilibrium, attitude)
        texts = self._compare_models(observation)
        for text in texts:
            warnings.warn(text, ContactModelWarning, stacklevel=2)
        return dataclasses.replace(command, warnings=tuple(texts))

    def _restart(self, observation: Observation) -> None:
        self.problem.set("rotation", self._rotation.ravel(order="F"))
        self._torque = np.zeros(self.arm.n)  # [Nm] what else turns the joints
        self._set_unmodelled(np.zeros(3))
        self.problem.set("disturbance", self._torque)
        self._rests.reset()
        self._apparent_stiffness.restart()
        self._contact_force(observation)
        self.solver.reset(self.problem.stack(observation.q, observation.dq))
        self._last_cost = np.inf
        self._plan_made: Solution | None = None

    # -- what is planned from --

    def _contact_force(self, observation: Observation) -> np.ndarray:
        """Take over the contacts, and return their force (3,) [N] ON the robot at the sample."""
        state = self.problem.stack(observation.q, observation.dq)
        if not self.adapt:
            return self._output(state)[1]
        pressed = observation.force is not None and self._loss.pressed(observation.force)
        explained = pressed and self._explains_force(observation)
        phi = self._phi = [self._contact_parameters(c, observation, pressed, explained) for c in self.settings.contacts]
        self._bound_stiffness(observation, phi)
        self.problem.set_contacts(np.concatenate(phi))
        self.problem.set_mode_probabilities(observation.mode_probabilities)
        force = self._output(state)[1]
        if observation.force is None or not self._names:
            self._set_unmodelled(np.zeros(3))
            return force
        stiffness = np.array([np.linalg.norm(one[:3]) for one in phi])  # (I,) [N/m]
        normals = np.array([one[:3] for one in phi]) / stiffness[:, None]  # (I, 3)
        missing = np.linalg.pinv(normals.T) @ (np.asarray(observation.force) - force)  # (I,) [N]
        for one, normal, size, share in zip(phi, normals, stiffness, missing):
            one[3:6] += normal * (share / size)
        self.problem.set_contacts(np.concatenate(phi))
        # Across the wanted force it may be friction, which the law has, too, and nothing is controlled.
        left = self._normal @ (np.asarray(observation.force, float) - self._output(state)[1])
        self._set_unmodelled(left * self._normal)
        return np.asarray(observation.force, float)

    def _set_unmodelled(self, force: np.ndarray) -> None:
        """Set what the contact force has beside the contact laws (3,) [N], along the wanted force."""
        self._unmodelled = force
        self.problem.set("unmodelled_force", force)

    def _bound_stiffness(self, observation: Observation, phi: list[NDArray[np.float64]]) -> None:
        """Scale the stiffness of the contacts, together along the wanted force, to what force and motion show."""
        if observation.force is None or self._last is None or not self._wanted > 0:
            return
        x, rotation = self.arm.tcp_pose(observation.q)
        height = float(self._normal @ (x + rotation @ self._tool_point))
        self._apparent_stiffness.update(self._last - observation.age, height, float(self._normal @ observation.force))
        stiffness = sum(float((self._normal @ one[:3]) ** 2 / np.linalg.norm(one[:3])) for one in phi)
        if stiffness > 0:
            share = self._apparent_stiffness.bound(stiffness) / stiffness
            for one in phi:
                one[:3] *= share

    def _contact_parameters(
        self, contact: ContactSettings, observation: Observation, pressed: bool, explained: bool
    ) -> NDArray[np.float64]:
        """Return the parameters [SI] of one contact by the estimate; those of another law by the task.

        A contact that is felt, but not named by the estimate, improbable, or without its share of the force
        (``explained_force``), has the stiffness it had last, or the task's. It rests where the tool is: the published
        force then moves it to its place.

        Args:
            contact: of the task.
            observation: of the sample.
            pressed: the felt force is enough for a closed contact.
            explained: and the estimate's contacts have their share of it.
        """
        law, values = observation.laws.get(contact.name, ("", {}))
        if law.removeprefix("unilateral_") != contact.law.removeprefix("unilateral_"):
            values = {}
        own = [values.get(p.name, mean) for p, mean, _ in contact.law_prior]
        doubted = not self._loss.closed(observation) or (contact.name in self._last_stiffness and not explained)
        if contact.name not in observation.contacts or (pressed and doubted):
            x, rotation = self.arm.tcp_pose(observation.q)
            stiffness = self._last_stiffness.get(contact.name, np.array(contact.stiffness))
            return np.concatenate([stiffness, x + rotation @ np.array(contact.point), contact.point, own])
        if explained:
            self._last_stiffness[contact.name] = observation.contacts[contact.name][:3]
        return np.concatenate([observation.contacts[contact.name], own])

    def _explains_force(self, observation: Observation) -> bool:
        """Return whether the estimate's contacts have their share of the published force."""
        felt = 0.0 if observation.force is None else float(self._normal @ observation.force)
        return float(self._normal @ self._law_force(observation)) >= self.settings.explained_force * felt

    def _compare_models(self, observation: Observation) -> list[str]:
        """Return in what the plan's contacts differ from those that the observer estimates."""
        texts = []
        for contact in self.settings.contacts if self.adapt else ():
            if contact.name not in observation.contacts:
                continue
            law, _ = observation.laws.get(contact.name, ("", {}))
            phi = observation.contacts[contact.name]
            size = float(np.linalg.norm(phi[:3]) * np.linalg.norm(contact.stiffness))
            away = float(np.linalg.norm(phi[6:9] - np.array(contact.point)))
            if law and not same_normal_force(law, contact.law):
                texts.append(_difference(contact, f"law '{law}'", f"'{contact.law}'", f"law: {law}"))
            if away > _POINT_MISMATCH:
                words = np.round(phi[6:9], 3).tolist()
                texts.append(_difference(contact, f"point {words} m (TCP)", f"{contact.point} m", f"point: {words}"))
            if float(phi[:3] @ np.array(contact.stiffness)) < _NORMAL_MISMATCH * size:
                words = np.round(phi[:3] / np.linalg.norm(phi[:3]), 2).tolist()
                answer = f"a stiffness along {words}"
                texts.append(_difference(contact, f"normal {words}", f"stiffness {contact.stiffness}", answer))
        return texts

    def _output(self, state: np.ndarray, stage: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return TCP position (3,) [m] and contact force (3,) [N] at a state, with the parameters of its stage."""
        run = self._outputs
        run.inputs["state"][:], run.inputs["p"][:] = state, self.problem.parameters[stage]
        run()
        return run.outputs["x"].copy(), run.outputs["force"].copy()

    def _predict_state(self, observation: Observation, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Predict the joint state in the middle of the command's period, under the equilibria until then.

        Without the half period, commands excite a stiff contact that rings.
        """
        state, n = self.problem.stack(observation.q, observation.dq), self.arm.n
        if self.adapt:
            self._balance_torque(t - observation.age, state)
            self._track_rests(t, observation)
        age = max(observation.age, 0.0)
        ahead = age + 0.5 / self.settings.rate
        steps = int(np.ceil(ahead / _PREDICTION_STEP - 1e-9))
        h = ahead / max(steps, 1)
        control = np.zeros(self.problem.nu)
        for k in range(steps):
            self._place_rests(np.full(self.settings.horizon + 1, k * h))
            x, _ = self._output(state)
            pull = self._stiffness * (self._commanded(t - age + (k + 0.5) * h).position - x)
            control[:3] = clip_norm(pull, self.settings.impedance.max_force)
            state, _ = self._rollout.step(state, control, h)
        self._place_rests(ahead + self.settings.dt * np.arange(self.settings.horizon + 1))
        return state[:n], state[n : 2 * n]

    def _track_rests(self, t: float, observation: Observation) -> None:
        """Take over the rests at the sample and their velocities, at which they move on."""
        if not self._phi:
            return
        tool, age = self.arm.tcp_pose(observation.q), max(observation.age, 0.0)
        stiffness = np.array([np.linalg.norm(one[:3]) for one in self._phi])  # (I,) [N/m]
        normals = np.array([one[:3] for one in self._phi]) / stiffness[:, None]  # (I, 3)
        measured = np.array([one[3:6] for one in self._phi])
        points = np.array([one[6:9] for one in self._phi])  # (I, 3) [m]
        rests, self._rest_velocity = self._rests.update(t - age, age, measured, normals, tool, points, stiffness)
        for one, rest in zip(self._phi, rests):
            one[3:6] = rest
        self.problem.set("rest_velocity", self._rest_velocity.ravel())

    def _place_rests(self, ahead: np.ndarray) -> None:
        """Set the contacts of all stages, ``ahead`` (H + 1,) [s] of the sample."""
        if not self.adapt or not self._phi:
            return
        rows = np.tile(np.concatenate(self._phi), (len(ahead), 1))
        for contact, velocity in zip(self.problem.contacts.places, self._rest_velocity):
            rows[:, contact.start + 3 : contact.start + 6] += ahead[:, None] * velocity
        self.problem.set_contacts(rows)

    def _balance_torque(self, t: float, state: np.ndarray) -> None:
        """Low-pass the torque (n,) [Nm] that the balance at the joints lacks at the sample's time ``t`` [s]."""
        run, command = self._outputs, self._commanded(t)
        self.problem.set("rotation", command.rotation.ravel(order="F"))
        x = self._output(state)[0]
        pull = self._stiffness * (command.position - x)
        run.inputs["u"][:3] = clip_norm(pull, self.settings.impedance.max_force)
        run()
        share = min(1.0 / (self.settings.rate * self.settings.disturbance_time), 1.0)
        self._torque = self._torque + share * (run.outputs["missing"] - self._torque)
        self.problem.set("disturbance", self._torque)

    # -- the plan --

    def _plan(self, now: Situation) -> Plan:
        state = self.problem.stack(now.q, now.dq)
        self.problem.set("gravity", self.arm.gravity(now.q))
        self._set_targets(now.elapsed)
        searched = self._warm_start(self._icem, state) if self._icem is not None else 0.0
        solution = self.solver.solve(state)
        problem, spent = "", searched + solution.seconds
        if not solution.ok:
            problem = f"solver {self.solver.name}: {solution.status}"
        elif spent > self.deadline:
            problem = f"solve late: {1e3 * spent:.1f} ms, deadline {1e3 * self.deadline:.1f} ms"
        if problem:
            return Plan(self._position, self._turned, solution, problem)
        self._plan_made = solution
        if self._icem is not None:
            self._last_cost = float(self._icem.cost(state, solution.controls[None])[0])
        equilibrium = now.x + solution.controls[0][:3] / self._stiffness
        return Plan(equilibrium, self._attitude(solution, now.elapsed), solution)

    def _set_targets(self, elapsed: float) -> None:
        s = self.settings
        at = elapsed + s.dt * np.arange(s.horizon + 1)  # [s]
        share = path_share(at / s.path_time, s.path_back)
        self.problem.set("position_target", self._start + share[:, None] * np.array(s.path))
        # A spring to a wanted attitude acts with its value at the end of a stage.
        wanted = self._wanted_attitudes(at if s.orientation else at + s.dt)
        self.problem.set("rotation", np.transpose(wanted, (0, 2, 1)).reshape(len(wanted), 9))

    def _wanted_attitudes(self, elapsed: np.ndarray) -> list[np.ndarray]:
        """Return the path's attitudes (3, 3) after ``elapsed`` (k,) [s]."""
        turn = np.array(self.settings.turn)
        if not turn.any():
            return [self._rotation] * len(elapsed)
        shares = path_share(elapsed / self.settings.path_time, self.settings.path_back)
        return [pin.exp3(share * turn) @ self._rotation for share in shares]

    def _attitude(self, solution: Solution, elapsed: float) -> np.ndarray:
        """Return the attitude (3, 3) of the path, or where the plan has a moment the one whose spring has it."""
        if not self.settings.orientation:
            return self._wanted_attitudes(np.array([elapsed]))[0]
        _, now = self.arm.tcp_pose(solution.states[0][: self.arm.n])
        return np.asarray(pin.exp3(solution.controls[0][3:] / self._turn_stiffness) @ now)

    def _warm_start(self, icem: Icem, state: np.ndarray) -> float:
        """Sample where the last plan has become much worse than it was: the mode has changed. Returns the time [s]."""
        start = time.perf_counter()
        last = None if self._plan_made is None else self._plan_made.controls
        controls = icem.improve(state, last, self._last_cost)
        if controls is not None:
            self.solver.guess(controls)
        return time.perf_counter() - start

    def _remaining_plan(self, since: float) -> np.ndarray:
        """Return the equilibrium of the last plan, linear between its stages."""
        plan = self._plan_made
        if plan is None:
            return self._position
        last = self.settings.horizon - 1
        stage = float(np.clip(since / self.settings.dt, 0.0, last))
        k, part = int(stage), stage - int(stage)
        stages = (0, k, min(k + 1, last))
        ends = [self._output(plan.states[i])[0] + plan.controls[i][:3] / self._stiffness for i in stages]
        return np.asarray(self._position_planned() + (1.0 - part) * ends[1] + part * ends[2] - ends[0])

    def _position_planned(self) -> np.ndarray:
        """Return the equilibrium that was commanded when the last plan was made."""
        for when, command in reversed(self._commands):
            if when <= self._planned:
                return np.asarray(command.position)
        return self._position


def _difference(contact: ContactSettings, estimated: str, planned: str, answer: str) -> str:
    """Say in what the estimate of a contact differs from what is planned with, and what to do."""
    return (
        f"contact '{contact.name}' is estimated with {estimated} but planned with {planned}; "
        f"set {answer} in the task's contact, or correct the observer's"
    )
