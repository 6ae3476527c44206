"""IPOPT with MUMPS on a CasADi MX graph, in two formulations: the references of the speed table.

The dynamics are one function in the graph; CasADi's virtual machine evaluates all derivatives. The equilibrium x_0 is
the control, and ||K (x_0 - x)||^2 <= F_max^2 the constraint.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from contact_estimation.control.mpc.problem import MpcProblem
from contact_estimation.control.mpc.solver import Solution
from contact_estimation.dynamics.ldl import LDL

_QUIET: dict[str, Any] = {"print_level": 0, "sb": "yes", "linear_solver": "mumps", "warm_start_init_point": "yes"}
#: How far a warm start is pushed from its bounds: the last plan is kept.
_PUSHES = ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac", "mult_bound_push")


@dataclass(frozen=True)
class Formulation:
    """What is solved, and how.

    Attributes:
        frozen_mass: the mass matrix is a parameter of the tick; else it follows the configuration.
        limited: stages whose spring force is limited; None: all.
        options: of IPOPT.
    """

    frozen_mass: bool
    limited: int | None
    options: dict[str, Any]


FORMULATIONS = {
    "exact": Formulation(False, None, {**_QUIET, "tol": 1e-5, "max_iter": 50}),
    #: As the authors' code: cheaper dynamics, one constraint, an early end.
    "authors": Formulation(
        True,
        1,
        {
            **_QUIET,
            "mu_strategy": "adaptive",
            "mu_oracle": "probing",
            "tol": 1e-5,
            "acceptable_tol": 1e-1,
            "acceptable_iter": 1,
            "max_iter": 50,
            **{f"warm_start_{push}": 1e-9 for push in _PUSHES},
        },
    ),
}


def dynamics(problem: MpcProblem, mass: ca.SX | None) -> ca.SX:
    """Return the state after a stage, with the mass matrix ``mass`` (n, n) or that of the configuration."""
    stage, mode = problem.stage, problem.stage.modes[0]
    if mass is None:
        return stage.next
    moved = problem.arm.mass_matrix(mode.kinematics)
    matrix = ca.jacobian(mode.residual, mode.delta) - moved + mass
    still = ca.substitute(mode.residual, mode.delta, ca.SX.zeros(problem.arm.n))
    new = mode.dq - stage.h * LDL(matrix).solve(still)
    return ca.vertcat(mode.q + stage.h * new, new)


class MxIpoptSolver:
    """IPOPT and MUMPS on the MX graph of ``problem`` (one contact mode), in one of the :data:`FORMULATIONS`.

    ``options`` of IPOPT replace the formulation's.
    """

    def __init__(self, problem: MpcProblem, name: str, **options: Any):
        self.problem, self.name, self.formulation = problem, name, FORMULATIONS[name]
        stage, h, nx, nu, n = problem.stage, problem.horizon, problem.nx, problem.nu, problem.arm.n
        mass = ca.SX.sym("mass", n, n) if self.formulation.frozen_mass else ca.SX(n, n)
        after = dynamics(problem, mass if self.formulation.frozen_mass else None)
        step = ca.Function("step", [stage.x, stage.u, problem.p, mass], [after, problem.cost])
        no_control = ca.substitute(problem.cost, stage.u, ca.SX.zeros(nu))
        final = ca.Function("final", [stage.x, problem.p], [no_control])
        place = ca.Function("place", [stage.x], [stage.modes[0].x])
        x_0, table = ca.MX.sym("x_0", nx), ca.MX.sym("p", problem.p.numel(), h + 1)
        frozen = ca.MX.sym("mass", n, n)
        stiffness, limit = ca.MX(table[problem.columns("stiffness"), 0]), table[problem.columns("max_force"), 0]
        variables, constraints, upper, cost, x = [], [], [], 0, x_0
        for k in range(h):
            u, new = ca.MX.sym(f"u_{k}", nu), ca.MX.sym(f"x_{k + 1}", nx)
            spring = stiffness * (u - place(x))
            reached, part = step(x, spring, table[:, k], frozen)
            cost += part
            variables += [u, new]
            constraints.append(reached - new)
            upper.append(np.zeros(nx))
            if self.formulation.limited is None or k < self.formulation.limited:
                constraints.append(ca.dot(spring, spring) / limit**2 - 1)
                upper.append(np.zeros(1))
            x = new
        cost += final(x, table[:, h])
        w, g = ca.vertcat(*variables), ca.vertcat(*constraints)
        free, most = np.full(nu, np.inf), np.concatenate(upper)
        least = np.concatenate([one if one.size == nx else np.full(1, -np.inf) for one in upper])
        self._bounds = [
            np.tile(np.concatenate([-free, problem.lower]), h),
            np.tile(np.concatenate([free, problem.upper]), h),
            least,
            most,
        ]
        self._place, self._stiffness = place, np.array(problem.settings.impedance.stiffness)
        self._solver = ca.nlpsol(
            name,
            "ipopt",
            {"x": w, "p": ca.vertcat(x_0, ca.vec(table), ca.vec(frozen)), "f": cost, "g": g},
            {"ipopt": {**self.formulation.options, **options}, "print_time": False},
        )

    def reset(self, x: np.ndarray) -> None:
        """Forget the last plan; start from rest at the state ``x`` (nx,)."""
        start = np.asarray(self._place(x)).ravel()
        self._w = np.tile(np.concatenate([start, x]), self.problem.horizon)
        self._lam = [np.zeros(self._w.size), np.zeros(self._bounds[3].size)]

    def solve(self, x: np.ndarray) -> Solution:
        """Converged plan from the state ``x`` (nx,)."""
        start = time.perf_counter()
        problem = self.problem
        mass = problem.arm.mass(x[: problem.arm.n])
        result = self._solver(
            x0=self._w,
            p=np.concatenate([x, problem.parameters.ravel(), mass.ravel()]),
            lbx=self._bounds[0],
            ubx=self._bounds[1],
            lbg=self._bounds[2],
            ubg=self._bounds[3],
            lam_x0=self._lam[0],
            lam_g0=self._lam[1],
        )
        seconds = time.perf_counter() - start
        stats = self._solver.stats()
        self._w = np.asarray(result["x"]).ravel()
        self._lam = [np.asarray(result["lam_x"]).ravel(), np.asarray(result["lam_g"]).ravel()]
        rows = self._w.reshape(problem.horizon, -1)
        states = np.vstack([x, rows[:, problem.nu :]])
        places = np.array([np.asarray(self._place(state)).ravel() for state in states[:-1]])
        controls = self._stiffness * (rows[:, : problem.nu] - places)
        return Solution(
            states,
            controls,
            float(result["f"]),
            bool(stats["success"]),
            str(stats["return_status"]),
            int(stats["iter_count"]),
            seconds,
        )
