"""Converged solves with IPOPT; the derivatives of the NLP come from generated C of one stage.

Compiling the whole NLP would take minutes. Only the functions of one stage are compiled, once for every horizon. Small
CasADi graphs map them over the horizon and put their results into IPOPT's sparsity patterns.
"""

from __future__ import annotations

import time
from typing import Any

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.control.mpc.problem import MpcProblem
from contact_estimation.control.mpc.rollout import Rollout
from contact_estimation.control.mpc.solver import Solution

#: The authors' tolerance, iterations and warm start; the small barrier and pushes preserve a warm start. Forces and
#: contacts are scaled already: to scale the problem and its matrix again, and to refine, costs half of the time.
IPOPT_OPTIONS = {
    "print_level": 0,
    "sb": "yes",
    "tol": 1e-5,
    "max_iter": 50,
    "linear_solver": "mumps",
    "warm_start_init_point": "yes",
    "warm_start_bound_push": 1e-6,
    "warm_start_mult_bound_push": 1e-6,
    "warm_start_slack_bound_push": 1e-6,
    "mu_init": 1e-6,
    "nlp_scaling_method": "none",
    "min_refinement_steps": 0,
    "mumps_scaling": 0,
    "mumps_permuting_scaling": 0,
    "mumps_pivot_order": 0,  # approximate minimum degree
}
#: -O3 saves a microsecond on straight-line code of 30 000 instructions, but doubles the compile time.
_FLAGS = ("-O1", "-march=native", "-fno-math-errno")


class ShootingLayout:
    """Order of the NLP: w = [u_0; x_1; u_1; ...; x_H], g = [defect_0; limits_0; defect_1; ...]."""

    def __init__(self, problem: MpcProblem) -> None:
        self.h, self.nx, self.nu, self.ng = problem.horizon, problem.nx, problem.nu, problem.ng
        self.block = self.nu + self.nx
        self.n_w, self.n_g = self.h * self.block, self.h * (self.nx + self.ng)
        bound = np.full(self.nu, np.inf)
        self.lbw = np.tile(np.concatenate([-bound, problem.lower]), self.h)
        self.ubw = np.tile(np.concatenate([bound, problem.upper]), self.h)
        self.lbg = np.tile(np.concatenate([np.zeros(self.nx), np.full(self.ng, -np.inf)]), self.h)
        self.ubg = np.zeros(self.n_g)

    def pack(self, states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """W of states (H + 1, nx) and controls (H, nu)."""
        return np.hstack([controls, states[1:]]).ravel()

    def unpack(self, x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States (H + 1, nx) and controls (H, nu) of w."""
        rows = w.reshape(self.h, self.block)
        return np.vstack([x, rows[:, self.nu :]]), rows[:, : self.nu].copy()

    def split(self, w: ca.MX, x: ca.MX) -> tuple[ca.MX, ca.MX]:
        """Symbolic states (nx, H + 1) and controls (nu, H)."""
        rows = ca.reshape(w, self.block, self.h)
        return ca.horzcat(x, rows[self.nu :, :]), rows[: self.nu, :]


class StageDerivatives:
    """The NLP and its derivatives: compiled functions of one stage, mapped over the horizon by thin graphs."""

    def __init__(self, problem: MpcProblem) -> None:
        self._problem, self.layout = problem, ShootingLayout(problem)
        stage = problem.stage
        x, u, p, z = stage.x, stage.u, problem.p, stage.z
        sigma, defects, limits = ca.SX.sym("sigma"), ca.SX.sym("defects", problem.nx), ca.SX.sym("limits", problem.ng)
        jacobian = ca.vertcat(ca.horzcat(stage.A, stage.B), ca.jacobian(problem.squares, z))
        curvature = ca.hessian(sigma * problem.cost + ca.dot(limits, problem.squares), z)[0]
        final_curvature = ca.hessian(sigma * problem.final_cost, x)[0]
        parts = {
            "values": ([x, u, p], [problem.cost, stage.next, problem.squares]),
            "final": ([x, p], [problem.final_cost]),
            "slopes": ([x, u, p], [ca.gradient(problem.cost, z), jacobian]),
            "final_slope": ([x, p], [ca.gradient(problem.final_cost, x)]),
            "cost_curvature": ([x, u, p, sigma, limits], [_triangle(curvature)]),
            "step_curvature": ([x, u, p, defects], [_triangle(stage.curvature(defects))]),
            "final_curvature": ([x, p, sigma], [_triangle(final_curvature)]),
        }
        # The compiled objects own what the graphs below call.
        self._compiled = {
            name: compile_function(ca.Function(f"mpc_{name}", inputs, [ca.densify(o) for o in outputs]), flags=_FLAGS)
            for name, (inputs, outputs) in parts.items()
        }

    def solver(self, name: str, options: dict[str, Any]) -> ca.Function:
        """Nlpsol over (x = w, p = [x_0; parameters]) that calls the compiled functions only."""
        layout, problem, h = self.layout, self._problem, self._problem.horizon
        call = {name: compiled.function for name, compiled in self._compiled.items()}
        w = ca.MX.sym("w", layout.n_w)
        p = ca.MX.sym("p", problem.nx + problem.parameters.size)
        table = ca.reshape(p[problem.nx :], problem.parameters.shape[1], h + 1)
        states, controls = layout.split(w, p[: problem.nx])
        stages, last = (states[:, :-1], controls, table[:, :-1]), (states[:, -1], table[:, -1])
        costs, new, limits = call["values"].map(h)(*stages)
        cost = ca.sum2(costs) + call["final"](*last)
        gaps = ca.vec(ca.vertcat(new - states[:, 1:], limits))
        gradients, slopes = call["slopes"].map(h)(*stages)
        of_states = ca.horzcat(gradients[: layout.nx, 1:], call["final_slope"](*last))
        gradient = ca.vec(ca.vertcat(gradients[layout.nx :, :], of_states))
        pattern, order = self._jacobian_pattern()
        jacobian = ca.MX(pattern, ca.vertcat(ca.vec(slopes), -1.0)[order.tolist()])
        sigma, lam = ca.MX.sym("sigma"), ca.MX.sym("lam", layout.n_g)
        multipliers = ca.reshape(lam, layout.nx + layout.ng, h)
        curvature = call["cost_curvature"].map(h)(*stages, ca.repmat(sigma, 1, h), multipliers[layout.nx :, :]) + call[
            "step_curvature"
        ].map(h)(*stages, multipliers[: layout.nx, :])
        entries = ca.vertcat(ca.vec(curvature), call["final_curvature"](*last, sigma))
        pattern, order = self._hessian_pattern()
        hessian = ca.MX(pattern, entries[order.tolist()])
        derivatives = {
            "grad_f": ca.Function("nlp_grad_f", [w, p], [cost, gradient], ["x", "p"], ["f", "grad_f_x"]),
            "jac_g": ca.Function("nlp_jac_g", [w, p], [gaps, jacobian], ["x", "p"], ["g", "jac_g_x"]),
            "hess_lag": ca.Function(
                "nlp_hess_l", [w, p, sigma, lam], [hessian], ["x", "p", "lam_f", "lam_g"], ["triu_hess_gamma_x_x"]
            ),
        }
        return ca.nlpsol(
            name,
            "ipopt",
            {"x": w, "p": p, "f": cost, "g": gaps},
            {
                **derivatives,
                "ipopt": options,
                "print_time": False,
                "no_nlp_grad": True,
                "calc_lam_p": False,
                "calc_f": False,
                "calc_g": False,
            },
        )

    def _jacobian_pattern(self) -> tuple[ca.Sparsity, np.ndarray]:
        """Pattern of dg/dw, and where each of its entries is in [stage Jacobians; -1]."""
        layout = self.layout
        rows_per, width = layout.nx + layout.ng, layout.nx + layout.nu
        where = {}
        for k in range(layout.h):
            for c in range(width):
                is_state = c < layout.nx
                if is_state and k == 0:
                    continue  # the first state is a parameter
                column = (k - 1) * layout.block + layout.nu + c if is_state else k * layout.block + c - layout.nx
                for r in range(rows_per):
                    where[k * rows_per + r, column] = k * rows_per * width + c * rows_per + r
            for i in range(layout.nx):
                where[k * rows_per + i, k * layout.block + layout.nu + i] = layout.h * rows_per * width
        return _pattern(where, layout.n_g, layout.n_w)

    def _hessian_pattern(self) -> tuple[ca.Sparsity, np.ndarray]:
        """Pattern of the Hessian's upper triangle over w, and where its entries are in the stages' triangles."""
        layout = self.layout
        width = layout.nx + layout.nu
        per_stage, where = width * (width + 1) // 2, {}
        for k in range(layout.h + 1):
            count = 0
            for j in range(width if k < layout.h else layout.nx):
                for i in range(j + 1):
                    if k > 0 or i >= layout.nx:
                        first = k * layout.block - layout.nx  # x_k stands before u_k in w
                        where[first + i, first + j] = k * per_stage + count
                    count += 1
        return _pattern(where, layout.n_w, layout.n_w)


def _triangle(matrix: ca.SX) -> ca.SX:
    """Upper triangle of a symmetric matrix, column by column."""
    matrix = ca.densify(matrix)
    return ca.vertcat(*[matrix[i, j] for j in range(matrix.shape[1]) for i in range(j + 1)])


def _pattern(where: dict[tuple[int, int], int], rows: int, columns: int) -> tuple[ca.Sparsity, np.ndarray]:
    keys = sorted(where, key=lambda entry: (entry[1], entry[0]))
    pattern = ca.Sparsity.triplet(rows, columns, [r for r, _ in keys], [c for _, c in keys])
    return pattern, np.array([where[entry] for entry in keys])


class IpoptSolver:
    """IPOPT to convergence, warm-started from the last plan.

    Args:
        problem: the problem. options: IPOPT's, over :data:`IPOPT_OPTIONS`.
    """

    name = "ipopt"

    def __init__(self, problem: MpcProblem, options: dict[str, Any] | None = None) -> None:
        self.problem = problem
        derivatives = StageDerivatives(problem)
        self._derivatives, self._layout = derivatives, derivatives.layout
        self._solver = derivatives.solver("mpc_ipopt", {**IPOPT_OPTIONS, **(options or {})})
        self._rollout = Rollout(problem)
        self.reset(np.zeros(problem.nx))

    def reset(self, x: np.ndarray) -> None:
        """Forget the last plan; start from rest at the state ``x`` (nx,)."""
        self._states = np.tile(x, (self.problem.horizon + 1, 1))
        self._controls = np.zeros((self.problem.horizon, self.problem.nu))
        self._lam_x, self._lam_g = np.zeros(self._layout.n_w), np.zeros(self._layout.n_g)

    def guess(self, controls: np.ndarray) -> None:
        """Start the next solve from ``controls`` (H, nu) and the states they lead to."""
        self._controls[:] = controls
        self._states, _ = self._rollout(self._states[0], controls)
        self._lam_x[:], self._lam_g[:] = 0.0, 0.0

    def solve(self, x: np.ndarray) -> Solution:
        """Converged plan from the state ``x`` (nx,)."""
        start = time.perf_counter()
        layout = self._layout
        if not np.isfinite(x).all() or not np.isfinite(self.problem.parameters).all():
            return Solution(
                self._states, self._controls, np.nan, False, "input or model not finite", 0, time.perf_counter() - start
            )
        # A plan may start outside a bound: the measured state can lie there.
        lower, upper = np.minimum(self.problem.lower, x), np.maximum(self.problem.upper, x)
        free = np.full(layout.nu, np.inf)
        bounds = [np.tile(np.concatenate([sign * free, bound]), layout.h) for sign, bound in ((-1, lower), (1, upper))]
        self._states[0] = x
        result = self._solver(
            x0=layout.pack(self._states, self._controls),
            p=np.concatenate([x, self.problem.parameters.ravel()]),
            lbx=bounds[0],
            ubx=bounds[1],
            lbg=layout.lbg,
            ubg=layout.ubg,
            lam_x0=self._lam_x,
            lam_g0=self._lam_g,
        )
        stats = self._solver.stats()
        states, controls = layout.unpack(x, np.asarray(result["x"]).ravel())
        limit = self.problem.get("max_force")[0, 0]
        ok = bool(stats["success"]) and bool(np.isfinite(states).all() and np.isfinite(controls).all())
        if ok:
            norms = np.linalg.norm(controls[:, :3], axis=1, keepdims=True)
            controls[:, :3] *= np.minimum(1.0, limit / np.maximum(norms, 1e-12))  # IPOPT's tolerance, met exactly
            self._states, self._controls = states.copy(), controls.copy()
            self._lam_x, self._lam_g = np.asarray(result["lam_x"]).ravel(), np.asarray(result["lam_g"]).ravel()
        else:
            self.reset(x)
        return Solution(
            states,
            controls,
            float(result["f"]),
            ok,
            str(stats["return_status"]),
            int(stats["iter_count"]),
            time.perf_counter() - start,
        )
