"""A scene file and a recording made into a problem, and solved: what ``identify batch RECORDING --model`` does."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.batch import recording as recordings
from contact_estimation.identify.batch import scene_file
from contact_estimation.identify.batch.channels import Measurement
from contact_estimation.identify.batch.estimate import Estimate, Stage, estimate
from contact_estimation.identify.batch.examples import finger
from contact_estimation.identify.batch.grid import around_events, contact_times, uniform
from contact_estimation.identify.batch.problem import Problem, acceleration_std
from contact_estimation.identify.batch.result import Result, read_out
from contact_estimation.identify.batch.start import initial_trajectory


@dataclasses.dataclass
class Session:
    """A solved recording: the problem, its estimate and the result read out."""

    problem: Problem
    estimate: Estimate
    result: Result


def prepare(
    path: Path | str,
    model: Path | str,
    without: tuple[str, ...] = (),
    window: tuple[float, float] | None = None,
    formulation: str | None = None,
):
    """The problem of a recording in a scene, and the scene's settings.

    Args:
        path: recording; model: scene file.
        without: channels to predict but not to use.
        window: (start, end) [s] from the first sample; None takes all.
        formulation: overrides the scene's.

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
    channels = [dataclasses.replace(c, weight=0.0) if c.name in without else c for c in channels]
    torque = next((c for c in channels if c.model == "torque"), None)
    joints = torque.targets if torque is not None else tuple(
        model_joint.name for model_joint in map(scene.nominal.joint, range(scene.nominal.njnt)))
    raw, duration = recordings.read(path, {c.source for c in settings.channels}, joints)
    measurements = {c.name: Measurement(raw[c.source].t, c.scale * raw[c.source].values)
                    for c in settings.channels if c.source in raw}
    start, end = window or (0.0, duration)
    if not 0.0 <= start < end <= duration + 1e-9:
        raise IdentificationError(f"the window {start} to {end} s is not inside the recording (0 to {duration:.2f} s)")
    grid_settings = settings.grid
    if grid_settings.events and grid_settings.events in measurements:
        events = contact_times(measurements[grid_settings.events])
        times = around_events(start, end, events, grid_settings.coarse, grid_settings.fine)
    else:
        times = uniform(start, end, 1.0 / grid_settings.coarse)
    std = scene_file.dynamics_std(settings, scene.nominal)
    formulation = formulation or settings.formulation
    if formulation == "forward":
        std = acceleration_std(scene.nominal, std)
    problem = Problem(scene, times, channels, measurements, std, formulation=formulation, scheme=settings.velocity)
    return problem, settings


def run(problem: Problem, settings: scene_file.SceneSettings, mode: str = "both", p: np.ndarray | None = None,
        max_iterations: int = 25, progress=None) -> Session:
    """Estimate from the sensors' start and read the result out."""
    p = problem.scene.parameters.nominal if p is None else p
    q = initial_trajectory(problem, p, settings.start)
    stages = (Stage(settings.remote_distance, settings.softening, 0.05, 3), Stage(max_iterations=max_iterations))
    found = estimate(problem, q, p, mode, stages, progress)
    return Session(problem, found, read_out(problem, found, tuple(settings.contact) or None))


def run_finger(
    seed: int, duration: float = 4.0, formulation: str = "inverse", mode: str = "both", progress=None
) -> Session:
    """Simulate one finger recording and estimate it from the nominal parameters."""
    problem = finger.problem(finger.simulate(seed, duration), formulation)
    p = problem.scene.parameters.nominal
    found = estimate(problem, finger.start(problem, p), p, mode, progress=progress)
    return Session(problem, found, read_out(problem, found, (finger.TIP, finger.OBJECT)))
