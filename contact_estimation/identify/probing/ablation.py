"""Ablations: every ingredient taken out in turn, in the paper's experiment and in a harder one.

In the nominal experiment the twist is measured well and forces are used only after a presliding distance, so the sign
of sliding is never in doubt. The ``poor_velocity`` experiment is the one that needs the merge: the twist comes from
differentiated positions, the trigger is the paper's own, on speed alone, and friction is the paper's, without
presliding. ``near_bounds`` is the one in which an unbounded filter leaves the physical range.
"""

from __future__ import annotations

import dataclasses

from contact_estimation.identify.probing.estimate import Ingredients
from contact_estimation.identify.probing.experiment import Experiment, run, simulate
from contact_estimation.identify.probing.score import score
from contact_estimation.settings import replace

VARIANTS = {
    "full": Ingredients(),
    "EKF expectations (linearised, not cubature)": Ingredients(cubature=False),
    "UKF without GPB1": Ingredients(merge=False),
    "time-triggered": Ingredients(event_triggered=False),
    "without reparameterisation": Ingredients(bounded=False),
    "EKF expectations, without reparameterisation": Ingredients(cubature=False, bounded=False),
    "residual taken as white": Ingredients(coloured=False),
    "plain EKF (none of them)": Ingredients(
        cubature=False, merge=False, event_triggered=False, bounded=False, coloured=False
    ),
}

#: Twist noise [m/s, rad/s] of positions differentiated at 25 Hz instead of a tracking camera's.
POOR_TWIST = {"velocity_noise": 0.03, "rate_noise": 0.1}
#: A soft and slippery surface: both dynamic parameters are near zero, a bound, and known to half their value.
NEAR_BOUNDS = {
    "stiffness_start": 2500.0,
    "stiffness_start_std": 1200.0,
    "friction_start": 0.12,
    "friction_start_std": 0.07,
}

#: Scenario -> settings that differ from the experiment's.
SCENARIOS = {"nominal": {}, "near_bounds": NEAR_BOUNDS, "poor_velocity": {**POOR_TWIST, "slide_distance_min": 0.0}}


def scenario(name: str, experiment: Experiment) -> Experiment:
    """``experiment`` under the conditions of a named scenario."""
    coulomb = {"presliding": 1e6} if name == "poor_velocity" else {}
    return dataclasses.replace(experiment, settings=replace(experiment.settings, **SCENARIOS[name]), **coulomb)


def ablate(experiment: Experiment, name: str, progress=None) -> dict[str, dict]:
    """Scores of every variant on the same simulated data of scenario ``name``; variant -> :func:`score`."""
    experiment = scenario(name, experiment)
    data, results = simulate(experiment), {}
    for i, (variant, ingredients) in enumerate(VARIANTS.items()):
        results[variant] = score(run(experiment, data, ingredients), experiment.evaluated_at)
        if progress:
            progress(i + 1)
    return results
