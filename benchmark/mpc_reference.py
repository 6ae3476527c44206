"""The authors' way, as the reference of the speed table.

The dynamics are one function in a CasADi MX graph, solved by IPOPT with MUMPS: all derivatives by
CasADi's virtual machine, the equilibrium x_0 as control, ||K (x_0 - x)||^2 <= F_max^2 as constraint.
"""

from __future__ import annotations

import time

import casadi as ca
import numpy as np

from contact_estimation.control.mpc.problem import MpcProblem
from contact_estimation.control.mpc.solver import Solution

#: The authors' options.
_OPTIONS = {
    "print_level": 0,
    "sb": "yes",
    "tol": 1e-5,
    "max_iter": 50,
    "linear_solver": "mumps",
    "warm_start_init_point": "yes",
}


class MxIpoptSolver:
    """IPOPT and MUMPS on the MX graph of ``problem`` (one contact mode), with the authors' options."""

    name = "reference"

    def __init__(self, problem: MpcProblem):
        self.problem = problem
        stage, h, nx, nu = problem.stage, problem.horizon, problem.nx, problem.nu
        step = ca.Function("step", [stage.x, stage.u, problem.p], [stage.next, problem.cost])
        final = ca.Function("final", [stage.x, problem.p], [problem.final_cost])
        place = ca.Function("place", [stage.x], [stage.modes[0].x])
        x_0, table = ca.MX.sym("x_0", nx), ca.MX.sym("p", problem.p.numel(), h + 1)
        stiffness, limit = ca.MX(table[problem.columns("stiffness"), 0]), table[problem.columns("max_force"), 0]
        variables, constraints, cost, x = [], [], 0, x_0
        for k in range(h):
            u, new = ca.MX.sym(f"u_{k}", nu), ca.MX.sym(f"x_{k + 1}", nx)
            spring = stiffness * (u - place(x))
            reached, part = step(x, spring, table[:, k])
            cost += part
            variables += [u, new]
            constraints += [reached - new, ca.dot(spring, spring) / limit**2 - 1]
            x = new
        cost += final(x, table[:, h])
        w, g = ca.vertcat(*variables), ca.vertcat(*constraints)
        free = np.full(nu, np.inf)
        self._bounds = [
            np.tile(np.concatenate([-free, problem.lower]), h),
            np.tile(np.concatenate([free, problem.upper]), h),
            np.tile(np.append(np.zeros(nx), -np.inf), h),
            np.zeros(g.numel()),
        ]
        self._place, self._stiffness = place, np.array(problem.settings.impedance.stiffness)
        self._solver = ca.nlpsol(
            "reference",
            "ipopt",
            {"x": w, "p": ca.vertcat(x_0, ca.vec(table)), "f": cost, "g": g},
            {"ipopt": _OPTIONS, "print_time": False},
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
        result = self._solver(
            x0=self._w,
            p=np.concatenate([x, problem.parameters.ravel()]),
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
