"""The MPC as a controller: estimates in, equilibrium poses out, and what happens when something is not as it should be.

A solve that failed, came late or is not finite, and an estimate that is invalid or stale, cost one tick: the last
safe reference is held, and the command says why. Two in a row hand over to hold: the equilibrium is put where the arm
is, so that the impedance no longer pushes, and stays there until the controller is activated again. A TCP that is too
fast or has travelled too far hands over at once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum

import casadi as ca
import numpy as np
import pinocchio as pin

from contact_estimation.codegen import compile_function
from contact_estimation.control.impedance import clip_norm
from contact_estimation.control.mpc.costs import CostTerm
from contact_estimation.control.mpc.icem import Icem
from contact_estimation.control.mpc.problem import MpcProblem
from contact_estimation.control.mpc.settings import MpcSettings
from contact_estimation.control.mpc.solver import Solution, Solver, make_solver
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm

#: Ticks in a row without a usable plan after which the controller hands over to hold.
_PATIENCE = 2


class MpcState(Enum):
    """INACTIVE: commands nothing. ACTIVE: plans. HELD: one tick without a usable plan. HOLD: handed over, until
    activated again."""

    INACTIVE = "inactive"
    ACTIVE = "active"
    HELD = "held"
    HOLD = "hold"


@dataclass(frozen=True)
class Observation:
    """What the MPC is told: an estimate's numbers, no more.

    ``q``, ``dq`` (n,); ``contacts`` maps contact names to [stiffness N/m; rest m, base; point m, TCP] (9,);
    ``beliefs`` maps modes to their belief; ``age`` [s] since the sample; ``valid`` and ``reason`` as the estimate says.
    """

    q: np.ndarray
    dq: np.ndarray
    contacts: dict[str, np.ndarray] = field(default_factory=dict)
    beliefs: dict[str, float] = field(default_factory=dict)
    age: float = 0.0
    valid: bool = True
    reason: str = ""

    @classmethod
    def of(cls, estimate, age: float = 0.0) -> "Observation":
        """Observation of an observer's estimate."""
        contacts = {c.name: np.concatenate([c.stiffness, c.rest, c.point_tcp]) for c in estimate.contacts}
        return cls(estimate.q, estimate.dq, contacts, estimate.modes, age, estimate.valid, estimate.reason)


@dataclass(frozen=True)
class Command:
    """Equilibrium ``position`` (3,) [m] and ``rotation`` (3, 3) in the base frame, the ``state``, ``reason`` where it
    is not ACTIVE, and the
    ``solution`` of this tick, None where none was asked for."""

    position: np.ndarray
    rotation: np.ndarray
    state: MpcState
    reason: str = ""
    solution: Solution | None = None


class MpcController:
    """Contact-aware MPC of one task.

    Args:
        arm: the robot. settings: the task. solver: ``rti`` or ``ipopt`` (default the settings'). extra: further cost
        terms.
        adapt: take contacts and disturbance from the estimates; without it the settings' contacts are believed (for
        comparison).
        deadline: [s] replaces the settings'; infinite where time is simulated and a slow machine must not change the
        result.
    """

    def __init__(
        self,
        arm: Arm,
        settings: MpcSettings,
        solver: str | None = None,
        extra: list[CostTerm] = (),
        adapt: bool = True,
        deadline: float | None = None,
    ):
        self.arm, self.settings, self.adapt = arm, settings, adapt
        self.problem = MpcProblem(arm, settings, extra)
        self.solver: Solver = make_solver(self.problem, solver)
        self.deadline = deadline or settings.safety.deadline or 1.0 / settings.rate
        self.state, self.reason = MpcState.INACTIVE, "not activated"
        self._icem = Icem(self.problem, np.random.default_rng(0)) if settings.warm_start == "icem" else None
        self._names = [contact.name for contact in settings.contacts]
        self._stiffness = np.array(settings.impedance.stiffness)
        self._damping = settings.impedance.damping_factor * np.sqrt(self._stiffness)
        self._turn_stiffness = np.array(settings.impedance.rotational_stiffness)
        self._phi = self.problem.get("phi")[0] * self.problem.contacts.scale
        self._outputs = self._compile_outputs()

    def _compile_outputs(self):
        """TCP position, velocity and contact force of the first mode at a state."""
        mode, stage = self.problem.stage.modes[0], self.problem.stage
        outputs = {"x": mode.x, "dx": mode.dx, "force": mode.force}
        return compile_function(
            ca.Function(
                "mpc_outputs",
                [stage.x, self.problem.p],
                [ca.densify(o) for o in outputs.values()],
                ["state", "p"],
                list(outputs),
            )
        )

    # -- life --

    def activate(self, observation: Observation) -> Command:
        """Begin the task where the arm is.

        Raises:
            ConfigError: the observation is invalid, stale or not finite.
        """
        problem = self._problem_of(observation)
        if problem:
            raise ConfigError(f"the MPC cannot be activated: {problem}; wait for a valid estimate")
        self._start, self._rotation = self.arm.tcp_pose(observation.q)
        self.problem.set("rotation", self._rotation.ravel(order="F"))
        self._begin, self._failures = None, 0
        self._disturbance = np.zeros(3)
        self.problem.set("disturbance", self._disturbance)
        self._read(observation)
        self.solver.reset(self.problem.stack(observation.q, observation.dq))
        self._last_cost, self._last_controls = np.inf, None
        self.state, self.reason = MpcState.ACTIVE, ""
        self._position, self._turned = self._start.copy(), self._rotation.copy()
        self._x = self._start.copy()
        return Command(self._position.copy(), self._turned.copy(), self.state)

    def deactivate(self) -> None:
        """Command nothing from now on."""
        self.state, self.reason = MpcState.INACTIVE, "deactivated"

    def update(self, t: float, observation: Observation) -> Command | None:
        """Command for time ``t`` [s] (any clock that only advances); None while inactive."""
        if self.state is MpcState.INACTIVE:
            return None
        if self.state is MpcState.HOLD:
            return self._command(None)
        self._begin = t if self._begin is None else self._begin
        problem = self._problem_of(observation)
        if problem:
            return self._fail(problem, None)
        self._read(observation)
        state = self.problem.stack(observation.q, observation.dq)
        x, dx, force = self._output(state)
        self._x = x
        danger = self._danger(x, dx)
        if danger:
            self._hand_over(danger)
            return self._command(None)
        if self.adapt:
            self._balance(x, dx, force)
        self._set_targets(t - self._begin)
        searched = self._warm_start(state) if self._icem is not None else 0.0
        solution = self.solver.solve(state)
        if not solution.ok:
            return self._fail(f"solver {self.solver.name}: {solution.status}", solution)
        if searched + solution.seconds > self.deadline:
            late = 1e3 * (searched + solution.seconds)
            return self._fail(f"solve late: {late:.1f} ms, deadline {1e3 * self.deadline:.1f} ms", solution)
        self._accept(x, solution)
        return self._command(solution)

    # -- what is planned from --

    def _problem_of(self, observation: Observation) -> str:
        """Why an observation cannot be planned from, or an empty string."""
        if not observation.valid:
            return f"estimate not valid: {observation.reason}"
        limit = self.settings.safety.max_age
        if not -limit <= observation.age <= limit:  # clocks of two machines may differ a little
            return f"estimate stale: {1e3 * observation.age:.0f} ms old, at most {1e3 * limit:.0f} ms"
        if not (
            np.isfinite(observation.q).all()
            and np.isfinite(observation.dq).all()
            and all(np.isfinite(phi).all() for phi in observation.contacts.values())
        ):
            return "estimate not finite"
        missing = [name for name in self._names if name not in observation.contacts] if self.adapt else []
        if missing:
            return (
                f"the estimate has no contact {', '.join(missing)}; it has {', '.join(observation.contacts) or 'none'}"
            )
        return ""

    def _read(self, observation: Observation) -> None:
        if self.adapt:
            self._phi = np.array([observation.contacts[name] for name in self._names])
            self.problem.set_contacts(self._phi)
            self.problem.set_beliefs(observation.beliefs)

    def _output(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        run = self._outputs
        run.inputs["state"][:], run.inputs["p"][:] = state, self.problem.parameters[0]
        run()
        return tuple(run.outputs[name].copy() for name in ("x", "dx", "force"))

    def prediction(self, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
        """TCP positions (H + 1, 3) [m] and contact forces (H + 1, 3) [N, ON the robot, base axes] of a plan."""
        rows = [self._output(state) for state in solution.states]
        return np.array([x for x, _, _ in rows]), np.array([force for _, _, force in rows])

    def _danger(self, x, dx) -> str:
        limits = self.settings.safety
        speed, travel = float(np.linalg.norm(dx)), float(np.linalg.norm(x - self._start))
        if speed > limits.max_speed:
            return f"TCP at {speed:.2f} m/s, limit {limits.max_speed:g} m/s"
        if travel > limits.max_travel:
            return f"TCP {travel:.2f} m from where the task began, limit {limits.max_travel:g} m (contact lost?)"
        return ""

    def _balance(self, x, dx, force) -> None:
        """Low-pass what the balance of forces at the TCP lacks: spring + contact + d = D dx, at rest."""
        spring = clip_norm(self._stiffness * (self._position - x), self.settings.impedance.max_force)
        missing = self._damping * dx - spring - force
        share = min(1.0 / (self.settings.rate * self.settings.disturbance_time), 1.0)
        self._disturbance += share * (missing - self._disturbance)
        self.problem.set("disturbance", self._disturbance)

    def _set_targets(self, elapsed: float) -> None:
        s = self.settings
        share = path_share((elapsed + s.dt * np.arange(s.horizon + 1)) / s.path_time)
        self.problem.set("position_target", self._start + share[:, None] * np.array(s.path))
        turn = np.array(s.turn)
        if turn.any():
            rotations = [(pin.exp3(part * turn) @ self._rotation).ravel(order="F") for part in share]
            self.problem.set("rotation", np.array(rotations))

    def _warm_start(self, state: np.ndarray) -> float:
        """Sample where the last plan has become much worse than it was: the mode has changed. Returns the time [s]."""
        start = time.perf_counter()
        controls = self._icem.improve(state, self._last_controls, self._last_cost)
        if controls is not None:
            self.solver.guess(controls)
        return time.perf_counter() - start

    # -- what comes out --

    def _accept(self, x: np.ndarray, solution: Solution) -> None:
        self._failures, self.state, self.reason = 0, MpcState.ACTIVE, ""
        self._last_cost, self._last_controls = solution.cost, solution.controls
        control = solution.controls[0]
        self._position = x + control[:3] / self._stiffness
        wanted = self.problem.parameters[0, self.problem.columns("rotation")].reshape(3, 3, order="F")
        if self.settings.orientation:
            _, now = self.arm.tcp_pose(solution.states[0][: self.arm.n])
            wanted = pin.exp3(control[3:] / self._turn_stiffness) @ now
        self._turned = wanted.copy()

    def _fail(self, reason: str, solution: Solution | None) -> Command:
        self._failures += 1
        if self._failures >= _PATIENCE:
            self._hand_over(reason)
        else:
            self.state, self.reason = MpcState.HELD, f"holding the last reference: {reason}"
            spring = clip_norm(self._stiffness * (self._position - self._x), self.settings.impedance.max_force)
            self._position = self._x + spring / self._stiffness
        return self._command(solution)

    def _hand_over(self, reason: str) -> None:
        """Hold where the arm was last seen: the spring relaxes, and contact is left with no more than it had."""
        self.state, self.reason = MpcState.HOLD, f"handed over to hold: {reason}"
        self._position = self._x.copy()

    def _command(self, solution: Solution | None) -> Command:
        return Command(self._position.copy(), self._turned.copy(), self.state, self.reason, solution)


def path_share(passes: np.ndarray) -> np.ndarray:
    """Share of the way (0 to 1) after ``passes`` passages along it, there and back, smooth at both ends (minimum
    jerk)."""
    s = np.abs((np.asarray(passes) + 1.0) % 2.0 - 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
