"""Experiments of paper 3 on simulated recordings: random starts, leave-one-sensor-out, cross-validation."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.estimate import estimate
from contact_estimation.identify.batch.problem import Problem
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


def random_starts(
    seed: int, starts: int, duration: float = 4.0, workers: int | None = None, progress: Count | None = None
) -> list[Run]:
    """Estimate the same finger recording from random parameter values (table IV), one process per core.

    Args:
        seed: of the recording's motion and noise, and of the starts.
        starts: how many.
        duration: of the recording [s].
        workers: processes; None takes every core.
        progress: called with the number of finished runs.
    """
    vectors = np.random.default_rng([seed, 1]).random((starts, len(finger.scene().parameters)))
    workers = min(workers or len(os.sched_getaffinity(0)), starts)
    if workers == 1:
        _open_recording(seed, duration)
        return [_count(_run_from(vector), k, progress) for k, vector in enumerate(vectors)]
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a process per core leaves no core for threads of the BLAS
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with concurrent.futures.ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), _open_recording, (seed, duration)
    ) as pool:
        return [_count(run, k, progress) for k, run in enumerate(pool.map(_run_from, vectors))]


def _count(run: Run, k: int, progress: Count | None) -> Run:
    if progress is not None:
        progress(k + 1)
    return run


_opened: dict[str, Problem] = {}


def _open_recording(seed: int, duration: float) -> None:
    """Simulate once per process; the problem is kept for every start this process works on."""
    _opened["task"] = finger.problem(finger.simulate(seed, duration), threads=1)


def _run_from(vector: Array) -> Run:
    task = _opened["task"]
    parameters = task.scene.parameters
    p = parameters.lower + vector * (parameters.upper - parameters.lower)
    found = estimate(task, finger.start(task, p), p)
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


class LeftOut(NamedTuple):
    """A channel predicted without being used."""

    channel: str
    t: Array  # (n,) [s]
    measured: Array  # (n, m)
    predicted: Array  # (n, m)
    rms_pct: (
        float  # RMS error over the measured RMS about the resting value, which the tip's weight does not flatter [%]
    )


def leave_out(recording: finger.Recording, channel: str, p: Array | None = None) -> LeftOut:
    """Estimate the trajectory and parameters without a channel and predict it (section VII-A).

    Args:
        recording: of the finger.
        channel: ``force``, ``force_torque`` or ``torque``.
        p: start of the parameters; None takes the scene's nominal ones.
    """
    task = finger.problem(recording, without=channel)
    p = task.scene.parameters.nominal if p is None else p
    found = estimate(task, finger.start(task, p), p).solution
    inner = slice(2, -2)
    if channel == "torque":
        dofs = [task.scene.nominal.joint(joint).dofadr[0] for joint in finger.JOINTS]
        measured = task.tau[:, dofs]
        predicted = measured + task.residuals(found.q, found.p)[:, dofs]
    else:
        measured, predicted = task.measured(channel), task.predicted(found.q, found.p, channel)
    error = np.sqrt(np.mean((predicted - measured)[inner] ** 2))
    moving = (measured - np.median(measured, axis=0))[inner]
    return LeftOut(channel, task.grid, measured, predicted, 100.0 * error / np.sqrt(np.mean(moving**2)))


class CrossValidation(NamedTuple):
    """Tables II and III."""

    names: list[str]
    values: Array  # parameters per recording (k, c)
    costs: Array  # of the trajectory alone (k, k + 1), hand-set model first

    @property
    def worst_other_pct(self) -> float:
        """How much higher a cost is with another recording's parameters than with its own, at worst [%]."""
        own = np.diag(self.costs[:, 1:])[:, None]
        return float(100.0 * np.max(self.costs[:, 1:] / own - 1.0))

    @property
    def worst_hand_set_share(self) -> float:
        """Largest ratio of an identified model's cost to the hand-set model's, over all recordings and models."""
        return float(np.max(self.costs[:, 1:] / self.costs[:, :1]))


def cross_validate(seeds: list[int], duration: float = 4.0, progress: Count | None = None) -> CrossValidation:
    """Identify each recording, then re-estimate every trajectory with every recording's parameters (section VII-B)."""
    tasks = [finger.problem(finger.simulate(seed, duration)) for seed in seeds]
    parameters = tasks[0].scene.parameters
    found = []
    for task in tasks:
        p = parameters.nominal
        found.append(estimate(task, finger.start(task, p), p).solution.p)
        if progress is not None:
            progress(len(found))
    models = [parameters.vector(finger.HAND_SET), *found]
    costs = np.empty((len(tasks), len(models)))
    for i, task in enumerate(tasks):
        for j, p in enumerate(models):
            costs[i, j] = estimate(task, finger.start(task, p), p, mode="trajectory").solution.cost
        if progress is not None:
            progress(len(tasks) + i + 1)
    return CrossValidation(parameters.names, np.array([parameters.values(p) for p in found]), costs)


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
    for k, run in enumerate(runs):
        axes[0, 0].semilogy(np.arange(1, len(run.costs) + 1), run.costs, color=COLOURS[1 + k % 6], alpha=0.6, lw=0.9)
    axes[0, 0].set(xlabel="Newton iteration (all stages)", ylabel="cost")
    page.figure(fig, "Cost per iteration of every start; the jump is the end of the remote-contact stage.")
    return page.write(path)
