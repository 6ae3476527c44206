"""The two experiments that the command line runs: many random surfaces and rough starts, in the plane or in space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.identify.probing import world_planar, world_spatial
from contact_estimation.identify.probing.estimate import Ingredients
from contact_estimation.identify.probing.excitation import ExcitationSettings, first_rotation_end
from contact_estimation.identify.probing.runs import Trace, filter_planar, filter_spatial
from contact_estimation.identify.probing.settings import ProbingSettings

EXAMPLES = ("planar", "spatial")


@dataclass(frozen=True)
class Experiment:
    """What is run: ``example``, number of ``runs``, ``seed``, length [s] and rate [Hz], and both groups of settings.

    ``tips`` [m] are the places of the tips along the tool's x axis (spatial), ``presliding`` [N/m] the tangential
    stiffness of the simulated contact before it slides.
    """

    example: str = "planar"
    runs: int = 100
    seed: int = 0
    seconds: float = 8.0
    rate: float = 25.0
    settings: ProbingSettings = ProbingSettings()
    excitation: ExcitationSettings = ExcitationSettings()
    tips: tuple[float, ...] = (0.0,)
    presliding: float = world_planar.PRESLIDING_STIFFNESS

    @property
    def evaluated_at(self) -> float:
        """Time at which runs are scored [s].

        In the plane the end of the first rotation; in space the probe must have leaned once about each tangent axis.
        """
        end = first_rotation_end(self.excitation)
        return end if self.example == "planar" else end + 2.0 * self.excitation.stroke_time


@dataclass(frozen=True)
class Data:
    """Simulated recording of all runs with rough starts; ``truth`` is that at contact, the recording has its way."""

    truth: object
    guess: object
    recording: object


def simulate(experiment: Experiment) -> Data:
    """Draw surfaces and starts and record the excitation."""
    rng = np.random.default_rng(experiment.seed)
    cfg = experiment.settings
    if experiment.example == "planar":
        world, extra = world_planar, ()
    else:
        world, extra = world_spatial, (experiment.tips,)
    truth, guess = world.draw(cfg, experiment.runs, rng, *extra)
    recording = world.simulate(truth, guess, cfg, experiment.excitation, experiment.seconds, experiment.rate, rng,
                               presliding=experiment.presliding)
    return Data(truth, guess, recording)


def run(
    experiment: Experiment, data: Data, ingredients: Ingredients = Ingredients(), progress=None, sensor=None
) -> list[Trace]:
    """Filter every run of ``data``; ``progress(done)`` is called after each, ``sensor`` is that of
    :func:`filter_spatial`."""
    traces = []
    for r in range(experiment.runs):
        arguments = (data.recording, data.guess, r, experiment.settings, ingredients)
        traces.append(
            filter_planar(*arguments) if experiment.example == "planar" else filter_spatial(*arguments, sensor)
        )
        if progress:
            progress(r + 1)
    return traces
