"""A scene file and a recording made into a problem, and solved: what ``identify batch RECORDING --model`` does."""

from __future__ import annotations

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
    path: Path | str,
    model: Path | str,
    without: tuple[str, ...] = (),
    window: tuple[float, float] | None = None,
    formulation: str | None = None,
) -> tuple[Problem, scene_file.SceneSettings]:
    """Make the problem of a recording in a scene.

    Args:
        path: recording.
        model: scene file.
        without: channels to predict but not to use.
        window: (start, end) [s] from the first sample; None takes all.
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
    raw, duration = recordings.read(path, {c.source for c in settings.channels}, joints)
    measurements = {
        c.name: Measurement(raw[c.source].t, c.scale * raw[c.source].values)
        for c in settings.channels
        if c.source in raw
    }
    start, end = window or (0.0, duration)
    if not 0.0 <= start < end <= duration + 1e-9:
        raise IdentificationError(f"the window {start} to {end} s is not inside the recording (0 to {duration:.2f} s)")
    std = scene_file.dynamics_std(settings, scene.nominal)
    formulation = formulation or settings.formulation
    if formulation == "forward":
        std = acceleration_std(scene.nominal, std)
    times = _grid(settings.grid, measurements, start, end)
    setup = Setup(formulation, settings.velocity)
    return Problem(scene, times, channels, measurements, std, setup), settings


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
) -> Solved:
    """Estimate from the sensors' start and read the result out.

    Where channels have a delay, a gain or a bias, the estimate starts once more from the sensors as they correct
    them: contacts that the first start put at wrong times would stay there. The better of the two counts.
    """
    p = problem.scene.parameters.nominal
    stages = (Stage(settings.remote_distance, settings.softening, 0.05, 3), Stage(max_iterations=max_iterations))
    found = estimate(problem, initial_trajectory(problem, p, settings.start), p, mode, stages, progress)
    if mode != "trajectory" and any(problem.scene.parameters.of_channels(p)):
        p = found.solution.p
        again = estimate(problem, initial_trajectory(problem, p, settings.start), p, mode, stages, progress)
        found = min((found, again), key=lambda each: each.solution.cost)
    bodies = (settings.contact[0], settings.contact[1]) if settings.contact else None
    return Solved(problem, found, read_out(problem, found, bodies))
