"""Rollouts of plans through the stage's dynamics in generated C: costs of many control sequences, states of one."""

from __future__ import annotations

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.control.mpc.problem import MpcProblem


class Rollout:
    """States and cost of control sequences (H, nu) of a problem."""

    def __init__(self, problem: MpcProblem) -> None:
        self.problem = problem
        stage = problem.stage
        self._step = compile_function(
            ca.Function(
                "mpc_rollout_stage",
                [stage.x, stage.u, problem.p],
                [ca.densify(stage.next), problem.cost],
                ["x", "u", "p"],
                ["next", "cost"],
            )
        )

    def __call__(self, x: np.ndarray, controls: np.ndarray) -> tuple[np.ndarray, float]:
        """States (H + 1, nx) from ``x`` under ``controls`` (H, nu), and their cost."""
        problem, run, cost = self.problem, self._step, 0.0
        inputs, outputs = run.inputs, run.outputs
        states = np.empty((problem.horizon + 1, problem.nx))
        states[0] = x
        for k in range(problem.horizon):
            inputs["x"][:], inputs["u"][:], inputs["p"][:] = states[k], controls[k], problem.parameters[k]
            run()
            states[k + 1] = outputs["next"]
            cost += float(outputs["cost"][0])
        inputs["x"][:], inputs["u"][:], inputs["p"][:] = states[-1], 0.0, problem.parameters[-1]
        run()
        return states, cost + float(outputs["cost"][0])

    def step(self, x: np.ndarray, control: np.ndarray, h: float) -> tuple[np.ndarray, float]:
        """Return the state (nx,) after a time that need not be a stage, and the cost of the stage it starts.

        Args:
            x: (nx,) state.
            control: (nu,).
            h: [s].
        """
        run, problem = self._step, self.problem
        run.inputs["x"][:], run.inputs["u"][:], run.inputs["p"][:] = x, control, problem.parameters[0]
        run.inputs["p"][problem.columns("h")] = h
        run()
        return run.outputs["next"].copy(), float(run.outputs["cost"][0])
