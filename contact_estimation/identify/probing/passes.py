"""Passes of the filter over a recording with each disturbance freed, and with looser settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.stats import chi2

from contact_estimation.identify.probing.disturbances import Samples, candidates
from contact_estimation.identify.probing.innovations import Innovations
from contact_estimation.identify.probing.model import ContactModel, Start
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.trial import Pass, Trial

#: Trials of a larger noise, and the least factor worth one.
_NOISE_TRIALS, _NOISE_LEAST = 4, 1.1
#: Factor on ``slide_distance_min`` with which a recording is tried that the model does not explain.
_LONGER = 3.0
#: Makes a model and its rough start.
MakeStart = Callable[[], tuple[ContactModel, Start]]


def disturbed_passes(data: Samples, make: MakeStart, curved: MakeStart | None, settings: ProbingSettings) -> list[Pass]:
    """Filter a recording with each disturbance freed.

    Args:
        data: the recording.
        make: makes the model and its start.
        curved: makes them for a curved surface; None where there is no such model.
        settings: priors and noise.
    """
    trials = [Trial(*make(), settings, each.name, each.describe, each) for each in candidates(data)]
    if curved:
        trials.append(Trial(*curved(), settings, "curvature", _curvature))
    return [trial.first(data) for trial in trials]


def loosened_passes(data: Samples, make: MakeStart, settings: ProbingSettings, plain: Pass) -> list[Pass]:
    """Filter a recording that the model does not explain with a longer presliding distance, and with more noise.

    Args:
        data: the recording.
        make: makes the model and its start.
        settings: priors and noise.
        plain: the pass that does not explain it; its median innovation tells how much more noise.
    """
    distance = _LONGER * settings.slide_distance_min
    lag = (
        "after a reversal friction follows later than configured; slide_distance_min was taken as "
        f"{1e3 * distance:.0f} mm, "
        "set it in --settings"
    )
    late = Trial(*make(), replace(settings, slide_distance_min=distance), "presliding", _constant(lag))
    passes, factor, noisy = [late.first(data)], 1.0, plain
    for _ in range(_NOISE_TRIALS):  # the median is diluted by what else is uncertain, so one trial falls short
        more = _scatter(noisy.innovations)
        if more < _NOISE_LEAST:
            break
        factor *= more
        told = replace(settings, force_noise=factor * settings.force_noise, torque_noise=factor * settings.torque_noise)
        noise = (
            f"the wrench scatters {factor:.1f} times as much as configured; set force_noise and torque_noise in "
            "--settings"
        )
        noisy = Trial(*make(), told, "noise", _constant(noise)).first(data)
    return passes if noisy is plain else [*passes, noisy]


def _constant(message: str) -> Callable[[np.ndarray], str]:
    """Return a description that does not depend on an estimate."""
    return lambda freed: message


def _scatter(innovations: Innovations) -> float:
    """Return how far the median innovation exceeds that of the noise that was told."""
    size = innovations.whitened.shape[1]
    nis = np.sum(np.square(innovations.whitened), axis=1)
    return float(np.sqrt(np.median(nis) / chi2.median(size))) if len(nis) else 1.0


def _curvature(freed: np.ndarray) -> str:
    """Name the curvature (1,) [1/m] for the user."""
    value = float(freed[0])
    word = "convex" if value > 0.0 else "concave"
    return (
        f"the surface is curved ({word}, radius {1.0 / max(abs(value), 1e-9):.2f} m), which was estimated; "
        "angle and offset are those of the first touch"
    )
