"""Two tips: a sum of Gaussians over which of them stands lower."""

import numpy as np
import pytest

from contact_estimation.identify.probing import gpb1, hypotheses
from contact_estimation.identify.probing.hypotheses import HypothesisFilter
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.studies.probing import experiment as experiments
from contact_estimation.studies.probing.experiment import Experiment, filter_run, simulate

CFG = ProbingSettings()


def started():
    model = SpatialModel(*CFG.bounds(), [np.eye(3)], (0, 0))
    pose = np.eye(4)
    pose[:3, :3] = np.diag([1.0, -1.0, -1.0])
    start = model.start(CFG, pose, [[-0.01, 0.0, 0.18], [0.01, 0.0, 0.18]])
    estimator = HypothesisFilter(model, CFG)
    estimator.start(0.0, pose, *start)
    return estimator, start


def test_the_split_keeps_mean_and_covariance_of_the_start():
    estimator, (s, covariance, _) = started()
    locals_ = [one.local() for one in estimator._filters]
    mean, merged = gpb1.merge(
        estimator.probabilities, np.array([x for x, _ in locals_]), np.array([p for _, p in locals_])
    )
    assert np.allclose(mean, s, atol=1e-9)
    deviation = np.sqrt(np.diag(covariance))
    assert np.allclose((merged - covariance) / np.outer(deviation, deviation), 0.0, atol=1e-6)


def test_each_hypothesis_is_narrower_only_in_the_tips_difference_in_height():
    estimator, (_, covariance, _) = started()
    model, narrow = estimator.model, estimator._filters[0].local()[1]
    height = np.zeros(len(model.parameters))
    height[[2, 5]] = 1.0, -1.0  # the tool points down: the further tip is the lower one
    height[6 + 1] = 0.02  # the surface's tilt about y lifts one side
    share = (height @ narrow @ height) / (height @ covariance @ height)
    assert share == pytest.approx(hypotheses._DEVIATION**2, rel=0.02)
    assert narrow[-1, -1] == pytest.approx(covariance[-1, -1])


def test_a_tip_in_the_air_is_recognised(monkeypatch):
    """Run 20 of seed 0: a single filter takes a tip that hangs in the air for pressed, and stays sure of it."""
    experiment = Experiment("spatial", 30, 0, seconds=6.0, tips=(-0.01, 0.01))
    data = simulate(experiment)
    split = filter_run(experiment, data, 20)
    monkeypatch.setattr(experiments, "HypothesisFilter", lambda model, settings, make: make(model, settings))
    single = filter_run(experiment, data, 20)
    assert split.within()[-1] and split.nees[-1] < 30.0
    assert not single.within()[-1] and single.nees[-1] > 300.0


def test_hypotheses_far_behind_are_dropped(monkeypatch):
    estimator, _ = started()
    monkeypatch.setattr(hypotheses, "_DROP", 1.0)
    estimator._score = np.array([0.0, -0.5, -3.0, -2.0, -0.2])
    pose = np.eye(4)
    pose[:3, :3] = np.diag([1.0, -1.0, -1.0])
    estimator.step(0.04, pose, np.zeros(6), np.zeros(6))
    assert len(estimator._filters) == 3 and estimator.probabilities.sum() == pytest.approx(1.0)
