"""A scene file and a recording made into a problem, and solved: what ``identify batch RECORDING --model`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch import recording as recordings, scene_file
from contact_estimation.identify.batch.channels import TORQUE, Measurement
from contact_estimation.identify.batch.estimate import Estimate, Note, Stage, estimate
from contact_estimation.identify.batch.grid import around_events, contact_times, uniform
from contact_estimation.identify.batch.problem import Problem, Setup, acceleration_std
from contact_estimation.identify.batch.result import Result, read_out
from contact_estimation.identify.batch.start import initial_trajectory


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
) -> tuple[Problem, scene_file.SceneSettings]:
    """Make the problem of one or several recordings in a scene.

    Args:
        paths: recording, or several that share all parameters; their times follow one another with gaps between.
        model: scene file.
        without: channels to predict but not to use.
        window: (start, end) [s] from each recording's first sample; None takes all.
        formulation: overrides the scene's.

    Returns:
        The problem and the scene's settings.

    Raises:
        IdentificationError: an unknown channel, or a window that holds no data.
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
    grid = [start + _grid(settings.grid, each, *span) for each, start, span in zip(found, starts, spans)]
    std = scene_file.dynamics_std(settings, scene.nominal)
    formulation = formulation or settings.formulation
    if formulation == "forward":
        std = acceleration_std(scene.nominal, std)
    setup = Setup(formulation, settings.velocity)
    return Problem(scene, grid, channels, measurements, std, setup), settings


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
            f"the window {start} to {end} s is not inside the recording {path} (0 to {duration:.2f} s)"
        )
    return start, end


def _grid(grid: scene_file.GridSettings, measurements: dict[str, Measurement], start: float, end: float) -> Array:
    if grid.events and grid.events in measurements:
        return around_events(start, end, contact_times(measurements[grid.events]), grid.coarse, grid.fine)
    return uniform(start, end, 1.0 / grid.coarse)


def run(
    problem: Problem,
    settings: scene_file.SceneSettings,
    mode: str = "both",
    max_iterations: int = 25,
    progress: Note | None = None,
    p: Array | None = None,
) -> Solved:
    """Estimate from the sensors' start and read the result out.

    Where channels have a delay, a gain or a bias, the estimate starts once more from the sensors as they correct
    them: contacts that the first start put at wrong times would stay there. The better of the two counts.

    Args:
        problem: what is solved.
        settings: of its scene.
        mode: what is free.
        max_iterations: of the last stage.
        progress: called at every iteration.
        p: optimiser's parameters at the start (c,); None takes the nominal ones.
    """
    p = problem.scene.parameters.nominal if p is None else p
    stages = (Stage(settings.remote_distance, settings.softening, 0.05, 3), Stage(max_iterations=max_iterations))
    found = estimate(problem, initial_trajectory(problem, p, settings.start), p, mode, stages, progress)
    if mode != "trajectory" and any(problem.scene.parameters.of_channels(p)):
        p = found.solution.p
        again = estimate(problem, initial_trajectory(problem, p, settings.start), p, mode, stages, progress)
        found = min((found, again), key=lambda each: each.solution.cost)
    bodies = (settings.contact[0], settings.contact[1]) if settings.contact else None
    return Solved(problem, found, read_out(problem, found, bodies))
