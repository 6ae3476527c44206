"""iCEM: sampled control sequences as a start for the gradient solvers.

Pinneri et al. 2020, Sample-efficient cross-entropy method for real-time planning.
After a change of the contact mode the last plan can be a bad start. Sampling explores a larger region than a gradient.
Noise is coloured over the horizon, elites survive between iterations, and every sample meets the force limit exactly.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.control.mpc.problem import MpcProblem

#: A plan whose cost grew by more than this factor since the last tick is a mode change.
_JUMP = 1.5


class Icem:
    """Cross-entropy search over the spring force of a problem.

    Args:
        problem: the problem, whose parameters are read at every search.
        rng: randomness.
    """

    def __init__(self, problem: MpcProblem, rng: np.random.Generator) -> None:
        self.problem, self._rng = problem, rng
        self._cost = compile_function(_batch_cost(problem))
        settings = problem.settings.sampling
        frequencies = np.fft.rfftfreq(problem.horizon)
        frequencies[0] = frequencies[1] if len(frequencies) > 1 else 1.0
        self._colour = frequencies ** (-0.5 * settings.exponent)

    def cost(self, x: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Return the costs (samples,) of control sequences.

        Args:
            x: (nx,) state at which they start.
            controls: (samples, H, nu).
        """
        run, costs = self._cost, np.empty(len(controls))
        run.inputs["x"][:], run.inputs["p"][:] = x, self.problem.parameters.ravel()
        for i, sequence in enumerate(controls):
            run.inputs["u"][:] = sequence.ravel()
            run()
            costs[i] = run.outputs["cost"][0]
        return np.where(np.isfinite(costs), costs, np.inf)

    def improve(self, x: np.ndarray, last: np.ndarray | None, last_cost: float) -> np.ndarray | None:
        """Return controls (H, nu) better than the plan ``last`` where that has become bad, else None.

        Args:
            x: (nx,) present state.
            last: plan (H, nu) of the last tick, a small part of a stage ago; None without one.
            last_cost: cost of that plan when it was made, by :meth:`cost`.
        """
        if last is not None and not self.cost(x, last[None])[0] > _JUMP * last_cost:
            return None
        return self.search(x, last)[0]

    def search(self, x: np.ndarray, start: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """Best controls (H, nu) found from ``x`` (nx,) around ``start``, and their cost."""
        problem, s = self.problem, self.problem.settings.sampling
        limits = np.array(
            [problem.get("max_force")[0, 0], problem.get("max_moment")[0, 0]][: problem.nu // 3]
            if problem.settings.orientation
            else [problem.get("max_force")[0, 0]]
        )
        mean = np.zeros((problem.horizon, problem.nu)) if start is None else np.array(start, float)
        std = np.repeat(s.std * limits, 3) * np.ones((problem.horizon, 1))
        best, best_cost, elites = mean, np.inf, np.empty((0, problem.horizon, problem.nu))
        for _ in range(s.iterations):
            samples = mean + std * self._noise(s.samples)
            samples = np.concatenate([_clip(samples, limits), elites, mean[None]])
            costs = self.cost(x, samples)
            order = np.argsort(costs)[: s.elites]
            elites = samples[order]
            if costs[order[0]] < best_cost:
                best, best_cost = samples[order[0]].copy(), float(costs[order[0]])
            mean = s.momentum * mean + (1 - s.momentum) * elites.mean(axis=0)
            std = s.momentum * std + (1 - s.momentum) * elites.std(axis=0)
        return best, best_cost

    def _noise(self, count: int) -> np.ndarray:
        """(count, H, nu) of unit variance, coloured over H."""
        problem = self.problem
        shape = (count, len(self._colour), problem.nu)
        spectrum = (self._rng.standard_normal(shape) + 1j * self._rng.standard_normal(shape)) * self._colour[:, None]
        noise = np.fft.irfft(spectrum, problem.horizon, axis=1)
        return np.asarray(noise / noise.std())


def _clip(samples: np.ndarray, limits: np.ndarray) -> np.ndarray:
    balls = samples.reshape(*samples.shape[:2], -1, 3)
    norms = np.linalg.norm(balls, axis=-1, keepdims=True)
    return np.asarray((balls * np.minimum(1.0, limits[:, None] / np.maximum(norms, 1e-12))).reshape(samples.shape))


def _batch_cost(problem: MpcProblem) -> ca.Function:
    """Cost of one control sequence from one state, over all stages."""
    stage, h = problem.stage, problem.horizon
    step = ca.Function("icem_stage", [stage.x, stage.u, problem.p], [ca.densify(stage.next), problem.cost])
    x, u, p = ca.MX.sym("x", problem.nx), ca.MX.sym("u", problem.nu, h), ca.MX.sym("p", problem.p.numel(), h + 1)
    states, costs = step.mapaccum(h)(x, u, p[:, :-1])
    _, last = step(states[:, -1], ca.DM.zeros(problem.nu), p[:, -1])
    return ca.Function("mpc_sequence_cost", [x, u, p], [ca.sum2(costs) + last], ["x", "u", "p"], ["cost"])
