"""What an estimate says: parameters with intervals, trajectory, contact forces, residuals per channel."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.stats

from contact_estimation.identify.batch.arrow import Factorisation
from contact_estimation.identify.batch.engine import contact_forces
from contact_estimation.identify.batch.estimate import Estimate
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.trajectory import motion

_AT_BOUND = 1e-3


@dataclasses.dataclass(frozen=True)
class ParameterEstimate:
    """One parameter in SI units: value, standard deviation, 95 % interval (NaN for one that was held), and a remark.

    The remark is empty, "held", "at its bound", or "not determined by the data" (the interval is wider than the
    bounds).
    """

    name: str
    unit: str
    value: float
    std: float
    lower: float
    upper: float
    note: str


@dataclasses.dataclass(frozen=True)
class ChannelFit:
    """Fit of one part of the cost: RMS residual [SI], the same over the channel's std, cost, independent samples."""

    name: str
    rms: float
    normalised: float
    cost: float
    samples: float


@dataclasses.dataclass
class Result:
    """An estimate, read out.

    Attributes:
        t: (n,) [s]; q: (n, nq); v, a: (n, nv).
        parameters: one entry per scalar.
        correlation: (c, c) of the parameters.
        contact_force: (n, 3) [N], world axes, environment on robot for the scene's contacts (see ``contact``).
        channels: fit of the dynamics and of every channel.
        cost: total.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    parameters: list[ParameterEstimate]
    correlation: np.ndarray
    contact_force: np.ndarray
    channels: list[ChannelFit]
    cost: float

    def values(self) -> dict[str, float]:
        """Parameter values by name (vectors as name[k])."""
        return {parameter.name: parameter.value for parameter in self.parameters}

    def save(self, path) -> None:
        """Write the arrays to an `.npz` file (no pickles)."""
        np.savez_compressed(path, t=self.t, q=self.q, v=self.v, a=self.a, contact_force=self.contact_force,
                            parameter_names=np.array([p.name for p in self.parameters]),
                            parameter_values=np.array([p.value for p in self.parameters]),
                            parameter_std=np.array([p.std for p in self.parameters]), cost=self.cost)


def read_out(
    problem: Problem, estimate: Estimate, contact: tuple[str, str] | None = None, level: float = 0.95
) -> Result:
    """Evaluate everything at the estimate.

    Args:
        contact: names of the two bodies (on, by) whose contact force is wanted; None sums all contacts.
        level: confidence of the intervals. They are Gaussian, from the Gauss-Newton Hessian with the trajectory
            marginalised (the Schur complement), widened by the reduced chi-square where the fit is worse than the
            stated noise.
    """
    solution, parameters = estimate.solution, problem.scene.parameters
    p, q = solution.p, solution.q
    residuals = problem.residuals(q, p)
    costs, counts = problem.costs(residuals), _counts(problem)
    covariance = parameter_covariance(problem, estimate)
    spread = max(1.0, solution.cost / max(sum(counts.values()) - sum(problem.size), 1.0))
    inner_std = np.sqrt(np.diag(covariance) * spread)
    wide = scipy.stats.norm.ppf(0.5 + 0.5 * level) * inner_std
    low, high = parameters.values(p - wide), parameters.values(p + wide)
    notes = _notes(parameters, p, wide)
    rows = zip(parameters.names, parameters.units, parameters.values(p), parameters.std(p, inner_std), low, high, notes)
    _, v, a = motion(problem.coordinates, problem.stencil, q)
    model = problem.scene.build(p)
    scale = np.sqrt(np.diag(covariance))
    fits = []
    for name, part in problem.parts().items():
        weight = problem.weights[:, part]
        square = np.sum(weight * residuals[:, part]**2)
        used = weight > 0
        rms = float(np.sqrt(np.mean(residuals[:, part][used]**2))) if used.any() else float("nan")
        fits.append(ChannelFit(name, rms, float(np.sqrt(square / max(counts[name], 1.0))), costs[name], counts[name]))
    return Result(problem.grid, q, v, a, [ParameterEstimate(n, u, float(x), float(s), float(lo), float(hi), b)
                                          for n, u, x, s, lo, hi, b in rows],
                  covariance / np.outer(scale, scale) if len(scale) else covariance,
                  contact_forces(model, q, v, a, contact), fits, solution.cost)


def parameter_covariance(problem: Problem, estimate: Estimate) -> np.ndarray:
    """Covariance (c, c) of the optimiser's parameter vector with the trajectory marginalised (held, where that was
    the mode).

    NaN where the parameters were held. A direction the data do not determine gets a variance that is huge, not
    infinite.
    """
    count = len(problem.scene.parameters)
    if estimate.mode == "trajectory" or not count:
        return np.full((count, count), np.nan)
    solution = estimate.solution
    if estimate.mode == "parameters":
        information = problem.linearise(solution.q, solution.p, free_q=False).arrow.corner
    else:
        information = Factorisation(problem.linearise(solution.q, solution.p).arrow, 1e-9, 0.0).schur
    values, vectors = np.linalg.eigh(information)
    return 2.0 * (vectors / np.maximum(values, 1e-12 * max(values[-1], 1e-300))) @ vectors.T


def _notes(parameters, p, wide):
    notes = []
    for k in range(len(p)):
        if np.isnan(wide[k]):
            notes.append("held")
        elif 2.0 * wide[k] > parameters.upper[k] - parameters.lower[k]:
            notes.append("not determined by the data")
        elif min(p[k] - parameters.lower[k], parameters.upper[k] - p[k]) < _AT_BOUND:
            notes.append("at its bound")
        else:
            notes.append("")
    return notes


def _counts(problem):
    """Independent numbers behind each part of the cost: a cell worth a quarter of a sample counts a quarter."""
    return {name: float(np.sum(problem.worth[:, part])) for name, part in problem.parts().items()}
