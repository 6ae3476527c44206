"""The experiments of the command line: many random surfaces and rough starts, simulated, filtered and scored."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contact_estimation.identify.probing.excitation import ExcitationSettings, first_rotation_end
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.hypotheses import HypothesisFilter
from contact_estimation.identify.probing.model import ContactModel, Start
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel, homogeneous
from contact_estimation.jobs import Executor, gather
from contact_estimation.jobs.executor import Serial
from contact_estimation.settings import replace
from contact_estimation.studies.probing.ablation import FULL, SCENARIOS, VARIANTS, AblationSwitches
from contact_estimation.studies.probing.score import Trace, score
from contact_estimation.studies.probing.simulated_probe import (
    PRESLIDING_STIFFNESS,
    Guess,
    PlanarProbe,
    Recording,
    SpatialProbe,
    Truth,
)

EXAMPLES = ("planar", "spatial")
#: Axes of twist and wrench in space that the plane has.
PLANE = [0, 1, 5]
#: Called with the number of runs that are done.
Progress = Callable[[int], None]
#: Turns (run, sample, measured pose, measured wrench) into the wrench of a sensor, its covariance and bias map.
Sensor = Callable[[int, int, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Experiment:
    """What is run.

    Attributes:
        example: ``planar`` or ``spatial``.
        runs: number of random surfaces and rough starts.
        seed: of everything random.
        seconds: length [s].
        rate: rate of the samples [Hz].
        settings: priors and noise of probe and filter.
        excitation: shape of the motion.
        tips: places of the tips along the tool's x axis [m] (spatial).
        presliding: tangential stiffness [N/m] of the simulated contact before it slides.
    """

    example: str = "planar"
    runs: int = 100
    seed: int = 0
    seconds: float = 8.0
    rate: float = 25.0
    settings: ProbingSettings = field(default_factory=ProbingSettings)
    excitation: ExcitationSettings = field(default_factory=ExcitationSettings)
    tips: tuple[float, ...] = (0.0,)
    presliding: float = PRESLIDING_STIFFNESS

    @property
    def evaluated_at(self) -> float:
        """Time at which runs are scored [s].

        In the plane the end of the first rotation; in space the probe must have leaned once about each tangent axis.
        """
        end = first_rotation_end(self.excitation)
        return end if self.example == "planar" else end + 2.0 * self.excitation.stroke_time


@dataclass(frozen=True)
class Data:
    """Simulated recording of all runs.

    Attributes:
        truth: planted parameters at contact; the recording has their random walk.
        guess: rough starts.
        recording: samples.
    """

    truth: Truth
    guess: Guess
    recording: Recording


def simulate(experiment: Experiment) -> Data:
    """Draw surfaces and starts and record the excitation."""
    rng, cfg = np.random.default_rng(experiment.seed), experiment.settings
    probe = PlanarProbe(cfg) if experiment.example == "planar" else SpatialProbe(cfg, experiment.tips)
    truth, guess = probe.draw(experiment.runs, rng)
    length, rate, presliding = experiment.seconds, experiment.rate, experiment.presliding
    return Data(truth, guess, probe.simulate(truth, guess, experiment.excitation, length, rate, rng, presliding))


def run(
    experiment: Experiment,
    data: Data,
    switches: AblationSwitches = FULL,
    progress: Progress | None = None,
    sensor: Sensor | None = None,
    executor: Executor | None = None,
) -> list[Trace]:
    """Filter every run of ``data``.

    Args:
        experiment: what is run.
        data: its recording.
        switches: parts of the filter that are in use.
        progress: called with the number of runs that are done.
        sensor: of :func:`filter_run`. Its errors go on from run to run, which keeps the runs in this process.
        executor: where; default this process.
    """
    function = functools.partial(filter_run, experiment, data, switches=switches, sensor=sensor)
    runs = (executor if executor is not None and sensor is None else Serial()).run(function, range(experiment.runs))
    return gather(runs, progress)


def filter_run(
    experiment: Experiment, data: Data, index: int, switches: AblationSwitches = FULL, sensor: Sensor | None = None
) -> Trace:
    """Filter one run from its rough start.

    Args:
        experiment: what is run.
        data: its recording.
        index: number of the run.
        switches: parts of the filter that are in use.
        sensor: turns the measured wrench into that of another sensor; None takes it as it is.

    Returns:
        the estimates and their errors.
    """
    cfg, recording = experiment.settings, data.recording
    pose, twist, wrench = samples(experiment, recording, index)
    extra: list[tuple[np.ndarray, ...]] = [()] * len(pose)
    if sensor is not None:
        sensed = [sensor(index, k, *sample) for k, sample in enumerate(zip(pose, wrench))]
        wrench, extra = np.array([one[0] for one in sensed]), [one[1:] for one in sensed]
    model, pose0, start = _start(experiment, data.guess, index, switches)
    estimator: ProbingFilter | HypothesisFilter
    if isinstance(model, SpatialModel) and model.contacts > 1:
        estimator = HypothesisFilter(model, cfg, switches.filter)
    else:
        estimator = switches.filter(model, cfg)
    estimator.start(0.0, pose0, *start)
    estimates, seconds = [], np.empty(len(pose))
    dt = np.diff(recording.t, prepend=0.0)
    for k in range(len(pose)):
        begin = time.process_time()  # other work on the machine, which interrupts long steps, does not count
        estimator.step(dt[k], pose[k], twist[k], wrench[k], *extra[k])
        seconds[k] = time.process_time() - begin
        estimates.append(estimator.estimate())
    return Trace.of(model, recording.t, estimates, recording.planted[:, index], seconds)


def samples(experiment: Experiment, recording: Recording, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pose, twist and wrench (T, ...) of a run, as the experiment's model has them."""
    poses = np.array([homogeneous(r, p) for r, p in zip(recording.rotation[:, index], recording.position[:, index])])
    twist, wrench = recording.twist[:, index], recording.wrench[:, index]
    if experiment.example == "spatial":
        return poses, twist, wrench
    return np.array([_flat(pose) for pose in poses]), twist[:, PLANE], wrench[:, PLANE]


def planar_guess(guess: Guess, index: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return pose (3,) at contact, tip (2,) [m] and surface angle [rad] of a run's guess in the plane."""
    normal = guess.surface[index][:, 2]
    return _flat(guess.pose(index)), guess.tips[index, 0, :2], float(np.arctan2(-normal[0], normal[1]))


def _flat(pose: np.ndarray) -> np.ndarray:
    """Pose (3,) in the plane."""
    return np.array([pose[0, 3], pose[1, 3], np.arctan2(pose[1, 0], pose[0, 0])])


def _start(
    experiment: Experiment, guess: Guess, index: int, switches: AblationSwitches
) -> tuple[ContactModel, np.ndarray, Start]:
    """Model, pose at contact and rough start of a run."""
    cfg = experiment.settings
    if experiment.example == "planar":
        pose, tip, phi = planar_guess(guess, index)
        plane = PlanarModel(*switches.bounds(cfg))
        return plane, pose, plane.start(cfg, pose, tip, phi)
    tips, pose = guess.tips[index], guess.pose(index)
    space = SpatialModel(*switches.bounds(cfg), [guess.surface[index]], (0,) * len(tips))
    return space, pose, space.start(cfg, pose, tips)


def scenario(name: str, experiment: Experiment) -> Experiment:
    """Return the experiment under the conditions of a named scenario."""
    presliding = 1e6 if name == "poor_velocity" else experiment.presliding
    settings = replace(experiment.settings, **SCENARIOS[name])
    return dataclasses.replace(experiment, settings=settings, presliding=presliding)


def ablate(
    experiment: Experiment, name: str, progress: Progress | None = None, executor: Executor | None = None
) -> dict[str, dict[str, Any]]:
    """Score every variant on the same simulated data of scenario ``name``; variant -> scores."""
    experiment = scenario(name, experiment)
    data, results = simulate(experiment), {}
    for i, (variant, switches) in enumerate(VARIANTS.items()):
        results[variant] = score(run(experiment, data, switches, executor=executor), experiment.evaluated_at)
        if progress:
            progress(i + 1)
    return results
