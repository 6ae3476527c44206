"""The result of an estimate: parameters with intervals, trajectory, contact forces, residuals per channel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.stats

from contact_estimation.atomic_write import atomic_write
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.bordered import Factorisation
from contact_estimation.identify.batch.engine import contact_forces
from contact_estimation.identify.batch.estimate import Estimate
from contact_estimation.identify.batch.evidence import AT_BOUND, UNDETERMINED, judge
from contact_estimation.identify.batch.inertia import BodyInertia, identified_inertia
from contact_estimation.identify.batch.parameters import ParameterVector
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.trajectory import motion
from contact_estimation.identify.verdict import Verdict

_AT_BOUND = 1e-3


class ParameterEstimate(NamedTuple):
    """One parameter in SI units."""

    name: str
    unit: str
    value: float
    std: float  # from the stated noise alone
    lower: float  # its 95 % interval, NaN for a parameter that was held
    upper: float
    lower_total: float  # 95 % interval that includes the model error found, see :mod:`.evidence`
    upper_total: float
    total_std: float  # that interval's, as of a Gaussian
    note: str  # "", "held", "at its bound" or "not determined by the data" (the interval is wider than the bounds)


class ChannelFit(NamedTuple):
    """Fit of one part of the cost."""

    name: str
    rms: float  # residual [SI]
    normalised: float  # the same over the channel's std
    cost: float
    samples: float  # independent ones


@dataclass
class Result:
    """An estimate, read out."""

    t: Array  # (n,) [s]
    q: Array  # (n, nq)
    v: Array  # (n, nv)
    a: Array  # (n, nv)
    parameters: list[ParameterEstimate]  # one per scalar
    inertias: list[BodyInertia]  # of bodies whose mass, centre of mass or inertia is a parameter
    correlation: Array  # of the parameters (c, c)
    contact_force: Array  # (n, 3) [N], world axes, on the first body asked for, else on the later body of each pair
    channels: list[ChannelFit]  # the dynamics' and every channel's
    cost: float  # total
    verdict: Verdict

    def values(self) -> dict[str, float]:
        """Parameter values by name (vectors as name[k])."""
        return {parameter.name: parameter.value for parameter in self.parameters}

    def save(self, path: Path | str) -> None:
        """Write the arrays to an ``.npz`` file (no pickles).

        Args:
            path: of the file.

        Raises:
            OSError: it cannot be written; an earlier file of this name is as before.
        """
        names, values, stds = (np.array([getattr(p, key) for p in self.parameters]) for key in ("name", "value", "std"))
        arrays = {name: getattr(self, name) for name in ("t", "q", "v", "a", "contact_force", "cost")}
        with atomic_write(path) as file:
            np.savez_compressed(file, **arrays, parameter_names=names, parameter_values=values, parameter_std=stds)


def read_out(
    problem: Problem, estimate: Estimate, contact: tuple[str, str] | None = None, level: float = 0.95
) -> Result:
    """Evaluate everything at the estimate.

    Args:
        problem: what was solved.
        estimate: its outcome.
        contact: names of the two bodies (on, by) whose contact force is wanted; None sums all contacts.
        level: confidence of the intervals. They are Gaussian, from the Gauss-Newton Hessian with the trajectory
            marginalised (the Schur complement).
    """
    solution, parameters = estimate.solution, problem.scene.parameters
    p, q = solution.p, solution.q
    residuals = problem.residuals(q, p)
    costs, counts = problem.costs(residuals), _counts(problem)
    covariance = parameter_covariance(problem, estimate)
    inner_std = np.sqrt(np.diag(covariance))
    wide = scipy.stats.norm.ppf(0.5 + 0.5 * level) * inner_std
    low, high = parameters.values(p - wide), parameters.values(p + wide)
    notes = _notes(parameters, p, wide)
    _, v, a = motion(problem.coordinates, problem.stencil, q)
    model = problem.scene.build(p)
    force = contact_forces(model, q, v, a, contact)
    verdict, total = judge(problem, estimate, force, notes, inner_std)
    wide_total = scipy.stats.norm.ppf(0.5 + 0.5 * level) * total
    inside = (np.clip(end, parameters.lower, parameters.upper) for end in (p - wide_total, p + wide_total))
    ends = low, high, *map(parameters.values, inside), parameters.std(p, total)
    numbers = parameters.values(p), parameters.std(p, inner_std), *ends
    rows = zip(parameters.names, parameters.units, *(each.tolist() for each in numbers), notes)
    fits = []
    for name, part in problem.parts().items():
        weight = problem.weights[:, part]
        square = np.sum(weight * residuals[:, part] ** 2)
        used = weight > 0
        rms = float(np.sqrt(np.mean(residuals[:, part][used] ** 2))) if used.any() else float("nan")
        fits.append(ChannelFit(name, rms, float(np.sqrt(square / max(counts[name], 1.0))), costs[name], counts[name]))
    return Result(
        problem.grid,
        q,
        v,
        a,
        [ParameterEstimate(*row) for row in rows],
        identified_inertia(problem.scene, p, covariance),
        covariance / np.outer(inner_std, inner_std) if len(inner_std) else covariance,
        force,
        fits,
        solution.cost,
        verdict,
    )


def parameter_covariance(problem: Problem, estimate: Estimate) -> Array:
    """Covariance (c, c) of the optimiser's parameters, the trajectory marginalised (or held, if that was the mode).

    NaN where the parameters were held. A direction the data do not determine gets a variance that is huge, not
    infinite.
    """
    count = len(problem.scene.parameters)
    if estimate.mode == "trajectory" or not count:
        return np.full((count, count), np.nan)
    solution = estimate.solution
    if estimate.mode == "parameters":
        information = problem.linearise(solution.q, solution.p, free_q=False).system.corner
    else:
        information = Factorisation(problem.linearise(solution.q, solution.p).system, 1e-9, 0.0).schur
    values, vectors = np.linalg.eigh(information)
    return np.asarray(2.0 * (vectors / np.maximum(values, 1e-12 * max(values[-1], 1e-300))) @ vectors.T)


def _notes(parameters: ParameterVector, p: Array, wide: Array) -> list[str]:
    """Remarks, see :class:`ParameterEstimate`."""
    notes = []
    for k in range(len(p)):
        if np.isnan(wide[k]):
            notes.append("held")
        elif 2.0 * wide[k] > parameters.upper[k] - parameters.lower[k]:
            notes.append(UNDETERMINED)
        elif min(p[k] - parameters.lower[k], parameters.upper[k] - p[k]) < _AT_BOUND:
            notes.append(AT_BOUND)
        else:
            notes.append("")
    return notes


def _counts(problem: Problem) -> dict[str, float]:
    """Independent numbers behind each part of the cost: a cell worth a quarter of a sample counts a quarter."""
    return {name: float(np.sum(problem.worth[:, part])) for name, part in problem.parts().items()}
