"""Random parameter starts on a simulated finger recording (paper 3, table IV and figure 5)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.result import Result
from contact_estimation.identify.batch.runner import run
from contact_estimation.jobs import Executor, gather, open_executor
from contact_estimation.studies.batch import finger
from contact_estimation.viz.html import Page
from contact_estimation.viz.style import COLOURS, figure

#: "Close to the minimum" of figure 5: within 5 % of the final cost.
CLOSE = 1.05

Count = Callable[[int], None]


class Run(NamedTuple):
    """One estimate from one start."""

    start: Array  # parameters (c,) in SI units, in the scene's order
    values: Array  # found (c,)
    cost: float  # final
    iterations: int  # of every stage together
    seconds_per_iteration: float  # median
    converged: bool  # whether the last stage met its tolerance
    costs: Array  # after every iteration of every stage
    close: int  # iterations until within 5 % of the final cost (figure 5)
    corrections: int  # at contact events, in all iterations together
    seconds: float  # all iterations together
    result: Result  # read out


def random_starts(
    seed: int, starts: int, duration: float = 4.0, executor: Executor | None = None, progress: Count | None = None
) -> list[Run]:
    """Estimate the same finger recording from random parameter values (table IV).

    Args:
        seed: of the recording's motion and noise, and of the starts.
        starts: how many.
        duration: of the recording [s].
        executor: where; default one process per core.
        progress: called with the number of finished runs.
    """
    vectors = list(np.random.default_rng([seed, 1]).random((starts, len(finger.scene().parameters))))
    function = functools.partial(_run_from, seed, duration)
    return gather((executor or open_executor()).run(function, vectors), progress)


@functools.lru_cache(maxsize=1)
def _problem(seed: int, duration: float) -> Problem:
    """Simulate once per process; the problem serves every start this process works on."""
    return finger.problem(finger.simulate(seed, duration), threads=1)


def _run_from(seed: int, duration: float, vector: Array) -> Run:
    task = _problem(seed, duration)
    parameters = task.scene.parameters
    p = parameters.lower + vector * (parameters.upper - parameters.lower)
    _, found, result = run(task, finger.PLAN, p=p)
    seconds = [iteration.seconds for _, iteration in found.trace]
    last = found.trace[-1][0]
    near = [
        k
        for k, (stage, iteration) in enumerate(found.trace, 1)
        if stage == last and iteration.cost <= CLOSE * found.solution.cost
    ]
    close = near[0] if near else found.iterations
    return Run(
        parameters.values(p),
        parameters.values(found.solution.p),
        found.solution.cost,
        found.iterations,
        float(np.median(seconds)),
        found.converged,
        np.array([iteration.cost for _, iteration in found.trace]),
        close,
        sum(iteration.corrections for _, iteration in found.trace),
        sum(seconds),
        result,
    )


def summary(runs: list[Run]) -> dict[str, Any]:
    """Figures of the random starts: worst errors over the starts [%], relative spread of the final cost [%], ..."""
    values, costs = np.array([run.values for run in runs]), np.array([run.cost for run in runs])
    names = finger.scene().parameters.names
    truth = finger.scene().parameters.values(finger.scene().parameters.vector(finger.TRUTH))
    error = 100.0 * np.abs(values / truth - 1.0)
    worst = dict(zip(names, error.max(axis=0)))
    middle = dict(zip(names, np.median(error, axis=0)))
    anchor = [k for k, name in enumerate(names) if name.startswith("anchor")]
    spread = 100.0 * values.std(axis=0) / np.abs(values.mean(axis=0))
    return {
        "friction_error_pct": worst["friction"],
        "stiffness_error_pct": worst["contact_stiffness"],
        "spring_error_pct": worst["spring_stiffness"],
        "cost_spread_pct": 100.0 * costs.std() / costs.mean(),
        "iterations_median": float(np.median([run.iterations for run in runs])),
        "seconds_per_iteration": float(np.median([run.seconds_per_iteration for run in runs])),
        "starts": len(runs),
        "converged": sum(run.converged for run in runs),
        "friction_error_median_pct": middle["friction"],
        "stiffness_error_median_pct": middle["contact_stiffness"],
        "spring_error_median_pct": middle["spring_stiffness"],
        "contact_damping_error_pct": worst["contact_damping"],
        "spring_damping_error_pct": worst["spring_damping"],
        "anchor_error_mm": 1e3 * float(np.abs(values[:, anchor] - truth[anchor]).max()),
        "stiffness_spread_pct": spread[names.index("contact_stiffness")],
        "cost_range_pct": 100.0 * (costs.max() - costs.min()) / costs.min(),
        "cost_mean": costs.mean(),
        "iterations_close_median": float(np.median([run.close for run in runs])),
        "iterations_max": max(run.iterations for run in runs),
        "corrections_median": float(np.median([run.corrections for run in runs])),
        "seconds_median": float(np.median([run.seconds for run in runs])),
        "values_mean": dict(zip(names, values.mean(axis=0))),
        "values_std": dict(zip(names, values.std(axis=0))),
    }


def write_starts(path: Path, runs: list[Run], summary: dict[str, Any]) -> Path:
    """Write the report of the random-start experiment (table IV and figure 5)."""
    page = Page("Random parameter starts", f"{summary['starts']} starts, {summary['converged']} converged.")
    page.heading("Final values")
    mean, std = summary["values_mean"], summary["values_std"]
    cost, spread = summary["cost_mean"], summary["cost_spread_pct"]
    page.table(
        ["parameter", "mean", "std", "std / mean [%]"],
        [["final cost", cost, cost * spread / 100.0, spread]]
        + [[name, mean[name], std[name], 100.0 * std[name] / abs(mean[name])] for name in mean],
        digits=4,
    )
    fig, axes = figure(1, 1, height=3.2)
    for k, each in enumerate(runs):
        axes[0, 0].semilogy(np.arange(1, len(each.costs) + 1), each.costs, color=COLOURS[1 + k % 6], alpha=0.6, lw=0.9)
    axes[0, 0].set(xlabel="Newton iteration (all stages)", ylabel="cost")
    page.figure(fig, "Cost per iteration of every start; the jump is the end of the remote-contact stage.")
    return page.write(path)
