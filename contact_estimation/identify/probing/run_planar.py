"""Run the planar experiment: simulate, filter, and keep what the figures and scores need."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from contact_estimation.identify.probing.bounded import Bounds, Unbounded
from contact_estimation.identify.probing.filter import Ingredients, ProbingFilter
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings


@dataclass(frozen=True)
class Trace:
    """One filtered run: ``t`` (T,), ``mean`` and ``std`` (T, n_s), ``nees`` (T,) of the free parameters, ``slip`` (T,),
    ``used`` (T,), ``nis`` (T,), ``seconds`` of computing."""

    t: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    nees: np.ndarray
    slip: np.ndarray
    used: np.ndarray
    nis: np.ndarray
    seconds: float


def planar_model(settings: ProbingSettings, ingredients: Ingredients = Ingredients()) -> PlanarModel:
    """Model with the settings' bounds, or without the reparameterisation for the ablation."""
    bounds = Bounds if ingredients.bounded else Unbounded
    return PlanarModel(bounds(0.0, settings.stiffness_max), bounds(0.0, settings.friction_max))


def filter_run(recording, guess, truth, run: int, settings: ProbingSettings,
               ingredients: Ingredients = Ingredients()) -> Trace:
    """Filter run number ``run`` of a planar recording from its rough start; ``truth`` serves the NEES alone."""
    model = planar_model(settings, ingredients)
    estimator = ProbingFilter(model, settings, ingredients, np.random.default_rng(run))
    pose0 = guess.pose[:, run]
    estimator.start(0.0, pose0, *model.start(settings, pose0, guess.tip[:, run], guess.phi[run]))
    planted = truth.parameters()[:, run].copy()
    for i, bounds in model.bounds.items():
        planted[i] = bounds.to_free(planted[i])
    pose, twist, wrench = (np.ascontiguousarray(a[:, :, run]) for a in (recording.pose, recording.twist, recording.wrench))
    stamps = np.concatenate([[0.0], recording.t])
    estimates, seconds = [], 0.0
    for k in range(len(recording.t)):
        begin = time.perf_counter()
        estimator.step(stamps[k + 1] - stamps[k], pose[k], twist[k], wrench[k])
        seconds += time.perf_counter() - begin
        estimates.append(estimator.estimate())
    errors = np.array([e.free - planted for e in estimates])
    nees = np.array([err @ np.linalg.solve(e.free_covariance, err) for err, e in zip(errors, estimates)])
    return Trace(recording.t, np.array([e.mean for e in estimates]), np.array([e.std for e in estimates]), nees,
                 np.array([e.slip[0] for e in estimates]), np.array([e.used for e in estimates]),
                 np.array([e.nis for e in estimates]), seconds)
