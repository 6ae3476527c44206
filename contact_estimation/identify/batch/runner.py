"""Make a problem of a scene file and a recording, and solve it: ``identify batch RECORDING --model``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch import recording as recordings, scene_file
from contact_estimation.identify.batch.channels import TORQUE, Measurement
from contact_estimation.identify.batch.estimate import CONTINUATION, Estimate, Note, Stage, estimate
from contact_estimation.identify.batch.grid import around_events, contact_times, uniform
from contact_estimation.identify.batch.problem import Problem, Setup, acceleration_std
from contact_estimation.identify.batch.result import Result, read_out
from contact_estimation.identify.batch.shooting import shoot
from contact_estimation.identify.batch.start import initial_trajectory

#: Times of the grid per sample of the fastest channel, above which the recording's times are not in seconds.
_MOST_TIMES_PER_SAMPLE = 100.0


class Plan(NamedTuple):
    """How a problem is solved."""

    start: dict[str, str]  # joint -> channel that gives its start trajectory
    stages: tuple[Stage, ...] = CONTINUATION
    contact: tuple[str, str] | None = None  # bodies (on, by) whose contact force is reported; None for all contacts


class Solved(NamedTuple):
    """A solved problem, its estimate and the result read out."""

    problem: Problem
    estimate: Estimate
    result: Result


def prepare(
    paths: Path | str | Sequence[Path | str],
    model: Path | str,
    without: tuple[str, ...] = (),
    window: tuple[float, float] | None = None,
    formulation: str | None = None,
) -> tuple[Problem, Plan]:
    """Make the problem of one or several recordings in a scene.

    Args:
        paths: recording, or several that share all parameters; their times follow one another with gaps between.
        model: scene file.
        without: channels to predict but not to use.
        window: (start, end) [s] from each recording's first sample; None takes all.
        formulation: overrides the scene's.

    Returns:
        The problem, and how the scene's settings have it solved.

    Raises:
        IdentificationError: an unknown channel, a window that holds no data, or samples far sparser than the grid.
    """
    settings, scene = scene_file.load(model)
    channels = scene_file.channels(settings)
    unknown = sorted(set(without) - {channel.name for channel in channels})
    if unknown:
        raise IdentificationError(
            f"no channel {', '.join(unknown)} in {model}; it has {', '.join(c.name for c in channels)}"
        )
    channels = [replace(c, weight=0.0) if c.name in without else c for c in channels]
    joints = tuple(scene.nominal.joint(k).name for k in range(scene.nominal.njnt))
    joints = next((c.targets for c in channels if c.model == TORQUE), joints)
    paths = [paths] if isinstance(paths, (str, Path)) else list(paths)
    found, durations = zip(*(_read(path, settings, joints) for path in paths))
    measurements, starts = recordings.follow(found, durations)
    spans = (_span(path, window, duration) for path, duration in zip(paths, durations))
    for path, each in zip(paths, found):
        _check_rate(path, each, settings.grid.coarse)
    grid = [start + _grid(settings.grid, each, *span) for each, start, span in zip(found, starts, spans)]
    std = scene_file.dynamics_std(settings, scene.nominal)
    formulation = formulation or settings.formulation
    if formulation == "forward":
        std = acceleration_std(scene.nominal, std)
    setup = Setup(formulation, settings.velocity)
    return Problem(scene, grid, channels, measurements, std, setup), _plan(settings)


def _plan(settings: scene_file.SceneSettings) -> Plan:
    stages = Stage(settings.remote_distance, settings.softening, 0.05, 3), Stage()
    return Plan(settings.start, stages, (settings.contact[0], settings.contact[1]) if settings.contact else None)


def _read(
    path: Path | str, settings: scene_file.SceneSettings, joints: tuple[str, ...]
) -> tuple[dict[str, Measurement], float]:
    """Measurements of a recording by channel, and its duration [s]."""
    raw, duration = recordings.read(path, {c.source for c in settings.channels}, joints)
    measured = {
        c.name: Measurement(raw[c.source].t, c.scale * raw[c.source].values)
        for c in settings.channels
        if c.source in raw
    }
    return measured, duration


def _span(path: Path | str, window: tuple[float, float] | None, duration: float) -> tuple[float, float]:
    start, end = window or (0.0, duration)
    if not 0.0 <= start < end <= duration + 1e-9:
        raise IdentificationError(
            f"the window {start} to {end} s is not inside the recording {path}; give a START before END, both from 0 "
            f"to {duration:.2f} s after its first sample"
        )
    return start, end


def _check_rate(path: Path | str, measurements: dict[str, Measurement], coarse: float) -> None:
    interval = 1.0 / max(each.rate for each in measurements.values())
    if interval > _MOST_TIMES_PER_SAMPLE * coarse:
        raise IdentificationError(
            f"{path}: its fastest channel has a sample every {interval:.3g} s, but the grid of the scene a time every "
            f"{coarse:.3g} s; times are in s, so divide milliseconds by 1000, or raise grid: coarse in the scene"
        )


def _grid(grid: scene_file.GridSettings, measurements: dict[str, Measurement], start: float, end: float) -> Array:
    if grid.events and grid.events in measurements:
        return around_events(start, end, contact_times(measurements[grid.events]), grid.coarse, grid.fine)
    return uniform(start, end, 1.0 / grid.coarse)


def run(
    problem: Problem, plan: Plan, mode: str = "both", progress: Note | None = None, p: Array | None = None
) -> Solved:
    """Estimate from the sensors' start and read the result out.

    Where channels have a delay, a gain or a bias, the estimate starts once more from the sensors as they correct
    them: contacts that the first start put at wrong times would stay there. The better of the two counts.

    Args:
        problem: what is solved.
        plan: how.
        mode: what is free.
        progress: called at every iteration.
        p: optimiser's parameters at the start (c,); None takes the nominal ones.
    """
    p = problem.scene.parameters.nominal if p is None else p
    found = _from(problem, plan, p, mode, progress)
    if mode != "trajectory" and any(problem.scene.parameters.of_channels(p)):
        again = _from(problem, plan, found.solution.p, mode, progress)
        found = min((found, again), key=lambda each: each.solution.cost)
    return Solved(problem, found, read_out(problem, found, plan.contact))


def trajectory(problem: Problem, plan: Plan, p: Array) -> Estimate:
    """Estimate the trajectory alone, with given optimiser's parameters (c,)."""
    return _from(problem, plan, p, "trajectory", None)


def _from(problem: Problem, plan: Plan, p: Array, mode: str, progress: Note | None) -> Estimate:
    q = initial_trajectory(problem, p, plan.start)
    warm_start = functools.partial(shoot, problem, set(plan.start))
    return estimate(problem, q, p, mode, plan.stages, progress, warm_start)
