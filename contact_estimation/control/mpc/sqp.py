"""Gauss-Newton SQP: one step per tick, the real-time iteration (Diehl et al. 2005), or steps until it converges.

The Hessian is that of the squared residuals plus the curvature of the active force limit. The limit itself enters the
QP as tangent planes. A projection then meets it exactly, because the control is the spring force. Linearisation of a
stage, QP and step are C. Where the plan reaches no limit but that of the force, an active-set method over Riccati
recursions solves the QP; otherwise HPIPM does (Frison and Diehl 2020).
"""

from __future__ import annotations

import ctypes
import time
from pathlib import Path

import casadi as ca
import numpy as np

from contact_estimation.codegen import STRAIGHT_PASSES
from contact_estimation.codegen.native import casadi_libraries, generate, load_native
from contact_estimation.control.mpc.problem import MpcProblem
from contact_estimation.control.mpc.rollout import Rollout
from contact_estimation.control.mpc.solver import Solution
from contact_estimation.exceptions import ConfigError

_STATUS = {
    -1: "input or model not finite",
    0: "solved",
    1: "QP iteration limit",
    2: "QP step too small",
    3: "QP not a number",
    4: "QP constraints inconsistent",
}
#: A full iteration count of the QP that still gave a usable step.
_USABLE = (0, 1)
_QP_ITERATIONS, _QP_TOLERANCE = 30, 1e-5
#: Barrier parameter from which HPIPM's interior point method starts.
_QP_BARRIER = 0.1
_POINTER = ctypes.c_void_p


def stage_function(problem: MpcProblem) -> ca.Function:
    """Return the Gauss-Newton model of a stage, dense; the last state's is that of a stage without control.

    Args:
        problem: with its stage, limits and residual.
    """
    stage, nx = problem.stage, problem.nx
    multipliers = ca.SX.sym("multipliers", problem.ng)
    slope = ca.jacobian(problem.residual, stage.z)
    hessian = _mirrored(2 * (slope.T @ slope) + _limit_curvature(problem, multipliers))
    gradient = 2 * (slope.T @ problem.residual)
    limit_slope = ca.jacobian(problem.norms, stage.z)
    outputs = {
        "next": stage.next,
        "A": stage.A,
        "B": stage.B,
        "Q": hessian[:nx, :nx],
        "S": hessian[nx:, :nx],
        "R": hessian[nx:, nx:],
        "q": gradient[:nx],
        "r": gradient[nx:],
        "g": problem.norms,
        "C": limit_slope[:, :nx],
        "D": limit_slope[:, nx:],
        "cost": problem.cost,
    }
    return ca.Function(
        "ce_stage",
        [stage.x, stage.u, problem.p, multipliers],
        [ca.densify(o) for o in outputs.values()],
        ["x", "u", "p", "multipliers"],
        list(outputs),
    )


def _mirrored(symmetric: ca.SX) -> ca.SX:
    """Return the matrix with its lower triangle mirrored, so that each pair of entries is computed once."""
    return ca.tril2symm(ca.tril(ca.densify(symmetric)))


def _limit_curvature(problem: MpcProblem, multipliers: ca.SX) -> ca.SX:
    """Curvature of the norms that are limited: positive semidefinite, because a norm is convex in the force."""
    total = ca.SX(problem.stage.z.numel(), problem.stage.z.numel())
    for i, vector in enumerate(problem.limited):
        norm = ca.sqrt(ca.dot(vector, vector) + 1.0)
        slope = ca.jacobian(vector, problem.stage.z)
        total += multipliers[i] * (slope.T @ ((ca.SX.eye(3) - vector @ vector.T / norm**2) / norm) @ slope)
    return total


#: Steps of a tick, of the first tick, and the change of every control [N, Nm] at which a tick needs no more of them.
#: Three to five steps converge; their bound ends a tick that cycles. ``ipopt`` is an older name of ``sqp``.
_CONVERGED = (20, 20, 1e-3)
_STEPS = {"rti": (1, 8, 0.0), "sqp": _CONVERGED, "ipopt": _CONVERGED}


def _load_stage(problem: MpcProblem) -> ctypes.CDLL:
    """Return the compiled model of a stage: most of what is compiled, and the same for every horizon.

    It gains nothing from more than -O2.
    """
    return load_native("stage", generate([stage_function(problem)]), ("-O2", *STRAIGHT_PASSES))


def _load_library(problem: MpcProblem, balls: int) -> ctypes.CDLL:
    """Return the compiled solver of problems of these sizes.

    Args:
        problem: has the sizes.
        balls: number of limits on the norm of a part of the control.
    """
    sizes = {
        "CE_H": problem.horizon,
        "CE_NX": problem.nx,
        "CE_NU": problem.nu,
        "CE_NG": problem.ng,
        "CE_NP": problem.parameters.shape[1],
        "CE_BALLS": balls,
    }
    parts = [f"#define {name} {value}" for name, value in sizes.items()]
    parts += [(Path(__file__).parent / name).read_text() for name in ("lqr.c", "balls.c", "qp.c", "sqp.c")]
    library = load_native("sqp", "\n".join(parts), casadi_libraries("hpipm", "blasfeo"))
    number, count = ctypes.c_double, ctypes.c_int
    library.ce_sqp_new.restype, library.ce_sqp_new.argtypes = _POINTER, [_POINTER, _POINTER, count, number, number]
    library.ce_sqp_free.restype, library.ce_sqp_free.argtypes = None, [_POINTER]
    library.ce_sqp_solve.restype = count
    library.ce_sqp_solve.argtypes = [_POINTER] * 8 + [count, number, _POINTER]
    return library


class SqpSolver:
    """Full Gauss-Newton SQP steps from the last plan.

    Args:
        problem: the problem.
        name: ``rti``, one step per tick, or ``sqp``, until the plan converges.

    Raises:
        ConfigError: unknown name.
    """

    def __init__(self, problem: MpcProblem, name: str) -> None:
        if name not in _STEPS:
            raise ConfigError(f"there is no MPC solver '{name}'; choose one of: {', '.join(_STEPS)}")
        self.problem, self.name = problem, name
        self._iterations, self._cold_iterations, self._tolerance = _STEPS[name]
        limits = ("max_force", "max_moment")[: problem.nu // 3]
        self._limit_values = [problem.parameters[0, problem.columns(name)] for name in limits]
        self._library, self._stage = _load_library(problem, len(limits)), _load_stage(problem)
        self._solve = self._library.ce_sqp_solve
        entries = [ctypes.cast(f, _POINTER) for f in (self._stage.ce_stage, self._stage.ce_stage_work)]
        self._memory = self._library.ce_sqp_new(*entries, _QP_ITERATIONS, _QP_TOLERANCE, _QP_BARRIER)
        if not self._memory:
            raise MemoryError("HPIPM's workspace could not be allocated")
        h = problem.horizon
        self._states, self._controls = np.zeros((h + 1, problem.nx)), np.zeros((h, problem.nu))
        self._multipliers, self._limits, self._info = np.zeros((h, problem.ng)), np.zeros(len(limits)), np.zeros(4)
        arrays = (
            self._states,
            self._controls,
            problem.parameters,
            self._multipliers,
            problem.lower,
            problem.upper,
            self._limits,
        )
        # Arguments of every tick, converted once: a tick is short beside what Python does around it.
        self._arguments = [_POINTER(self._memory), *(_POINTER(a.ctypes.data) for a in arrays)]
        self._info_address = _POINTER(self._info.ctypes.data)
        self._rollout = Rollout(problem)
        self._cold, self._lost = True, False

    def __del__(self) -> None:
        if getattr(self, "_memory", None):
            self._library.ce_sqp_free(self._memory)
            self._memory = None

    def reset(self, x: np.ndarray) -> None:
        """Forget the last plan; start from rest at the state ``x`` (nx,)."""
        self._states[:] = x
        self._controls[:] = 0.0
        self._multipliers[:] = 0.0
        self._cold, self._lost = True, False

    def guess(self, controls: np.ndarray) -> None:
        """Start the next solve from ``controls`` (H, nu) and the states they lead to."""
        self._controls[:] = controls
        self._states[:], _ = self._rollout(self._states[0], self._controls)
        self._multipliers[:] = 0.0

    def solve(self, x: np.ndarray) -> Solution:
        """Plan from the state ``x`` (nx,)."""
        start = time.perf_counter()
        if self._lost:  # a failed plan is not a start for the next one
            self.reset(x)
        self._states[0] = x
        for i, value in enumerate(self._limit_values):
            self._limits[i] = value[0]
        iterations = self._cold_iterations if self._cold else self._iterations
        status = self._solve(*self._arguments, iterations, self._tolerance, self._info_address)
        self._cold = False
        self._lost = status not in _USABLE
        steps, _, cost, _ = self._info.tolist()
        return Solution(
            self._states.copy(),
            self._controls.copy(),
            cost,
            not self._lost,
            _STATUS[status],
            int(steps),
            time.perf_counter() - start,
        )
