"""The report: one HTML page with parameters and intervals, trace, channels against data, forces and a filmstrip."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
from matplotlib.figure import Figure

from contact_estimation.identify.batch.estimate import Estimate
from contact_estimation.identify.batch.filmstrip import draw_filmstrip
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.result import Result
from contact_estimation.identify.batch.runner import Solved
from contact_estimation.identify.batch.solver import Solution
from contact_estimation.viz.html import Page
from contact_estimation.viz.style import COLOURS, TRUTH, figure

_SERIES = "xyzabc"


def write_report(path: Path, solved: Solved, title: str) -> Path:
    """Write the report of one estimate."""
    problem, estimate, result = solved
    n, c = problem.size
    page = Page(
        "Trajectory and parameters together",
        f"{title}: {len(problem.grid)} times over {np.ptp(problem.grid):.1f} s, "
        f"{n} trajectory unknowns, {c} parameters, {problem.engine.formulation} dynamics.",
    )
    page.paragraph(f"Stopped after {estimate.iterations} iterations at cost {result.cost:.5g}: {estimate.reason}.")
    page.heading(f"Verdict: {result.verdict.verdict}")
    for reason in result.verdict.reasons:
        page.paragraph(reason)
    for sentence in result.verdict.unchecked:
        page.paragraph(sentence, note=True)
    page.heading("Parameters")
    page.table(
        ["parameter", "unit", "value", "std", "95 % from", "to", "note"],
        [
            [p.name, p.unit or "-", p.value, p.total_std, p.lower_total, p.upper_total, p.note]
            for p in result.parameters
        ],
    )
    page.paragraph(
        "Intervals are Gaussian, with the trajectory marginalised, and include the model error that was found.",
        note=True,
    )
    page.heading("Fit")
    page.table(
        ["part", "RMS residual [SI]", "of its noise", "cost"],
        [[f.name, f.rms, f.normalised, f.cost] for f in result.channels],
    )
    page.figure(
        trace_figure(estimate),
        "Cost per Newton iteration; a new stage (contact distance, allowed unexplained force) is "
        "another problem with another cost.",
    )
    page.heading("Contact force")
    page.figure(
        force_figure(result),
        "Estimated contact force, world axes, on the first body of the scene's contact, or on the later of each pair.",
    )
    moving = _moving_body(problem.scene.nominal)
    page.figure(
        draw_filmstrip(problem.scene.build(estimate.solution.p), result.t, result.q, result.contact_force, moving),
        "The scene at moments of the trajectory, from the side and from above; the arrow is the contact force.",
    )
    page.heading("Channels")
    for name in problem.parts():
        if name != "dynamics":
            page.figure(
                channel_figure(problem, estimate.solution, name),
                f"{name}: explained, and measured without the identified delay, gain and bias",
            )
    page.figure(
        dynamics_figure(problem, estimate.solution), "What the dynamics leave unexplained, over the allowed std."
    )
    return page.write(path)


def trace_figure(estimate: Estimate) -> Figure:
    """Draw cost (one line per stage) and step length over iterations."""
    fig, axes = figure(1, 2, height=2.6)
    stages = np.array([stage for stage, _ in estimate.trace])
    costs = np.array([iteration.cost for _, iteration in estimate.trace])
    count = np.arange(1, len(costs) + 1)
    for stage in np.unique(stages):
        axes[0, 0].semilogy(count[stages == stage], costs[stages == stage], "o-", ms=3, label=f"stage {stage + 1}")
    axes[0, 1].plot(count, [iteration.length for _, iteration in estimate.trace], "o-", ms=3)
    axes[0, 0].set(xlabel="iteration", ylabel="cost")
    axes[0, 1].set(xlabel="iteration", ylabel="step length (1 = full Newton step)", ylim=(0, None))
    axes[0, 0].legend()
    return fig


def force_figure(result: Result) -> Figure:
    """Draw the contact force components over time."""
    fig, axes = figure(1, 1, height=2.6)
    for k in range(3):
        axes[0, 0].plot(result.t, result.contact_force[:, k], label=_SERIES[k])
    axes[0, 0].set(xlabel="time [s]", ylabel="force [N]")
    axes[0, 0].legend(ncols=3)
    return fig


def channel_figure(problem: Problem, solution: Solution, name: str) -> Figure:
    """Draw measured (black, thin; without delay, gain and bias) and explained values of one channel, and residuals."""
    held, inside = problem.holds_samples(name)[:, None], problem.stencil.interior[:, None]
    measured = np.where(held, problem.measured(name, solution.p), np.nan)
    predicted = np.where(inside, problem.predicted(solution.q, solution.p, name), np.nan)
    part = problem.parts()[name]
    residual = np.where(problem.weights[:, part] > 0, problem.residuals(solution.q, solution.p)[:, part], np.nan)
    fig, axes = figure(1, 2, height=2.3, width_ratios=(3, 2))
    for k in range(measured.shape[1]):
        axes[0, 0].plot(
            problem.grid, measured[:, k], color=TRUTH, lw=0.5, alpha=0.6, label="measured" if k == 0 else None
        )
        axes[0, 0].plot(problem.grid, predicted[:, k], color=COLOURS[1 + k % 6], lw=1.0)
    axes[0, 1].plot(problem.grid, residual, lw=0.6)
    axes[0, 0].set(xlabel="time [s]", ylabel=name.replace("_", " "))
    axes[0, 1].set(xlabel="time [s]", ylabel="residual")
    axes[0, 0].legend()
    return fig


def dynamics_figure(problem: Problem, solution: Solution) -> Figure:
    """Draw the unexplained force (or acceleration) of every dof in units of its allowed standard deviation."""
    part = problem.parts()["dynamics"]
    weight = problem.weights[:, part]
    scaled = np.where(weight > 0, problem.residuals(solution.q, solution.p)[:, part] * np.sqrt(weight), np.nan)
    fig, axes = figure(1, 1, height=2.4)
    axes[0, 0].plot(problem.grid, scaled, lw=0.6)
    axes[0, 0].set(xlabel="time [s]", ylabel="unexplained / allowed")
    return fig


def _moving_body(model: mujoco.MjModel) -> str:
    """Body the force arrow is drawn at: the one that carries the first geom of the first contact pair."""
    if model.npair:
        pair = [model.geom_bodyid[model.pair_geom1[0]], model.geom_bodyid[model.pair_geom2[0]]]
        return str(model.body(min(b for b in pair if b > 0)).name)
    return str(model.body(model.nbody - 1).name)
