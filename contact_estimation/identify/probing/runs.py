"""Filter simulated recordings run by run and keep what scores and figures need."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from contact_estimation.identify.probing.bounded import Bounds, Unbounded
from contact_estimation.identify.probing.estimate import Ingredients
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.hypotheses import HypothesisFilter
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.identify.probing.world_spatial import homogeneous


@dataclass(frozen=True)
class Trace:
    """One filtered run, every array over its T samples.

    ``t`` [s]; ``mean`` and ``std`` (T, n_s) of the parameters, ``planted`` (T, n_s) their truth; ``tip_error`` [m] (the
    worst tip), ``orientation_error`` [rad] (angle between normals), ``stiffness_error`` [N/m], ``friction_error``;
    ``nees`` of the free parameters; ``slip`` [m/s]; ``used`` whether the wrench was used, ``nis`` its normalised
    innovation squared; ``seconds`` processor time of every step.
    """

    t: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    planted: np.ndarray
    tip_error: np.ndarray
    orientation_error: np.ndarray
    stiffness_error: np.ndarray
    friction_error: np.ndarray
    nees: np.ndarray
    slip: np.ndarray
    used: np.ndarray
    nis: np.ndarray
    seconds: np.ndarray


def bounds(settings: ProbingSettings, bounded: bool = True) -> tuple[Bounds, Bounds]:
    """Intervals of stiffness and friction; without the reparameterisation for the ablation."""
    kind = Bounds if bounded else Unbounded
    return kind(0.0, settings.stiffness_max), kind(0.0, settings.friction_max)


def filter_planar(recording, guess, run: int, settings: ProbingSettings,
                  ingredients: Ingredients = Ingredients()) -> Trace:
    """Filter run number ``run`` of a planar recording from its rough start."""
    model = PlanarModel(*bounds(settings, ingredients.bounded))
    estimator = ProbingFilter(model, settings, ingredients, np.random.default_rng(run))
    pose0 = guess.pose[:, run]
    estimator.start(0.0, pose0, *model.start(settings, pose0, guess.tip[:, run], guess.phi[run]))
    pose, twist, wrench = (
        np.ascontiguousarray(a[:, :, run]) for a in (recording.pose, recording.twist, recording.wrench)
    )
    estimates, seconds = _run(estimator, recording.t, pose, twist, wrench)
    planted = recording.planted[:, :, run]
    mean = np.array([e.mean for e in estimates])
    tip_error = np.hypot(*(mean[:, :2] - planted[:, :2]).T)
    return _trace(model, recording.t, estimates, seconds, planted, tip_error, np.abs(mean[:, 2] - planted[:, 2]))


def filter_spatial(
    recording, guess, run: int, settings: ProbingSettings, ingredients: Ingredients = Ingredients(), sensor=None
) -> Trace:
    """Filter run number ``run`` of a spatial recording.

    ``sensor``, where given, turns (run, sample, true pose, measured wrench) into (wrench, noise, bias map): see
    :mod:`sensorless`.
    """
    tips = guess.tips[run]
    model = SpatialModel(*bounds(settings, ingredients.bounded), [guess.surface[run]], (0,) * len(tips))
    kind = ProbingFilter if model.contacts == 1 else HypothesisFilter
    estimator = kind(model, settings, ingredients, np.random.default_rng(run))
    estimator.start(0.0, guess.pose(run), *model.start(settings, guess.pose(run), tips))
    poses = [homogeneous(r, p) for r, p in zip(recording.rotation[:, run], recording.position[:, run])]
    extra = None if sensor is None else [sensor(run, k, poses[k], recording.wrench[k, run]) for k in range(len(poses))]
    wrench = recording.wrench[:, run] if extra is None else np.array([e[0] for e in extra])
    estimates, seconds = _run(
        estimator,
        recording.t,
        poses,
        recording.twist[:, run],
        wrench,
        None if extra is None else [e[1:] for e in extra],
    )
    planted = recording.planted[:, run]
    mean = np.array([e.mean for e in estimates])
    tip_errors = (mean - planted)[:, : 3 * model.contacts].reshape(len(mean), -1, 3)
    tip_error = np.linalg.norm(tip_errors, axis=2).max(axis=1)
    normals, true = model.normal(mean.T).T, model.normal(planted.T).T
    angle = np.arctan2(np.linalg.norm(np.cross(normals, true), axis=1), np.sum(normals * true, axis=1))
    return _trace(model, recording.t, estimates, seconds, planted, tip_error, angle)


def _run(estimator, t, pose, twist, wrench, extra=None):
    """Estimates after every sample, and the processor time [s] of every step: other work on the machine, which would
    interrupt long steps and not short ones, does not count."""
    estimates, seconds = [], np.empty(len(t))
    dt = np.diff(t, prepend=0.0)
    for k in range(len(t)):
        more = () if extra is None else extra[k]
        begin = time.process_time()
        estimator.step(dt[k], pose[k], twist[k], wrench[k], *more)
        seconds[k] = time.process_time() - begin
        estimates.append(estimator.estimate())
    return estimates, seconds


def _trace(model, t, estimates, seconds, planted, tip_error, orientation_error):
    free = np.array(planted, dtype=float)
    for i, interval in model.bounds.items():
        free[:, i] = interval.to_free(planted[:, i])
    errors = [e.free - true for e, true in zip(estimates, free)]
    mean = np.array([e.mean for e in estimates])
    return Trace(
        t,
        mean,
        np.array([e.std for e in estimates]),
        planted,
        tip_error,
        orientation_error,
        np.abs(mean[:, -2] - planted[:, -2]),
        np.abs(mean[:, -1] - planted[:, -1]),
        np.array([x @ np.linalg.solve(e.free_covariance, x) for x, e in zip(errors, estimates)]),
        np.array([e.slip[0] for e in estimates]),
        np.array([e.used for e in estimates]),
        np.array([e.nis for e in estimates]),
        seconds,
    )
