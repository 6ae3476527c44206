"""The estimator on simulated runs."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.settings import replace
from contact_estimation.studies.probing.ablation import AblationSwitches
from contact_estimation.studies.probing.experiment import Experiment, filter_run, planar_guess, samples, simulate

CFG = ProbingSettings()


@pytest.fixture(scope="module")
def data():
    experiment = Experiment("planar", 4, seed=7, seconds=4.0)
    return experiment, simulate(experiment)


def started(settings=CFG):
    model = PlanarModel(*settings.bounds())
    estimator = ProbingFilter(model, settings)
    pose = np.array([0.3, 0.5, 0.1])
    estimator.start(0.0, pose, *model.start(settings, pose, np.array([0.0, -0.18]), 0.1))
    return estimator, pose


@pytest.mark.parametrize("run", range(4))
def test_planted_parameters_are_recovered(data, run):
    trace = filter_run(*data, run)
    assert np.all(trace.errors[-1] < [1e-3, 5e-3, 250.0, 3e-3])
    assert np.all(trace.std[-1, :2] < 0.2 * trace.std[0, :2])


def test_intervals_are_honest():
    """The NEES of independent runs is chi-square; its mean over 40 runs lies within the 99.9 % interval once the first
    rotation is complete. In the first second the density is no Gaussian, and some runs are far outside."""
    runs, dof = 40, 6
    experiment = Experiment("planar", runs, seed=7, seconds=4.0)
    data = simulate(experiment)
    traces = [filter_run(experiment, data, r) for r in range(runs)]
    low, high = chi2.ppf([0.0005, 0.9995], runs * dof) / runs
    for k in (80, -1):
        assert low < np.mean([trace.nees[k] for trace in traces]) < high


def test_forces_are_not_used_while_sticking_or_in_the_air():
    estimator, pose = started()
    for wrench in ([0.0, 20.0, 0.0], [0.0, 0.0, 0.0]):
        for _ in range(10):
            estimator.step(0.04, pose, np.zeros(3), np.array(wrench))
            assert not estimator.estimate().used
    before = estimator.estimate()
    estimator.step(0.04, pose, np.zeros(3), np.array([0.0, 20.0, 0.0]))
    assert np.allclose(estimator.estimate().free_covariance, before.free_covariance, rtol=1e-6)


def test_wild_forces_never_make_a_parameter_non_physical():
    rng = np.random.default_rng(3)
    estimator, pose = started()
    for _ in range(200):
        pose = pose + [0.0012, 0.0, 0.0]
        estimator.step(0.04, pose, np.array([0.03, 0.0, 0.0]), rng.uniform(-60.0, 60.0, 3))
        estimate = estimator.estimate()
        assert 0.0 < estimate.mean[4] < CFG.stiffness_max and 0.0 < estimate.mean[5] < CFG.friction_max
        assert np.all(np.linalg.eigvalsh(estimate.free_covariance) > -1e-12)


def test_the_world_offset_does_not_depend_on_the_filters_origin(data):
    experiment, recorded = data
    pose, twist, wrench = samples(experiment, recorded.recording, 1)
    pose0, tip, phi = planar_guess(recorded.guess, 1)
    model = PlanarModel(*CFG.bounds())
    results = []
    for shift in ([0.0, 0.0], [0.01, -0.02]):
        estimator = ProbingFilter(model, CFG)
        s, covariance, origin = model.start(CFG, pose0, tip, phi)
        moved = origin + shift
        s_moved, covariance_moved = model.offset_to_world(s, covariance, -np.array(shift))
        estimator.start(0.0, pose0, s_moved, covariance_moved, moved)
        for k in range(100):
            estimator.step(0.04, pose[k], twist[k], wrench[k])
        results.append(estimator.estimate())
    assert np.all(np.abs(results[0].mean - results[1].mean) < 0.3 * results[0].std)


def test_misuse_is_explained():
    model = PlanarModel(*CFG.bounds())
    with pytest.raises(IdentificationError, match="start"):
        ProbingFilter(model, CFG).step(0.04, np.zeros(3), np.zeros(3), np.zeros(3))
    with pytest.raises(ConfigError, match="shape"):
        ProbingFilter(model, CFG).start(0.0, np.zeros(3), np.zeros(5), np.eye(5), np.zeros(2))
    estimator, pose = started()
    with pytest.raises(IdentificationError, match="positive"):
        estimator.step(0.0, pose, np.zeros(3), np.zeros(3))
    with pytest.raises(IdentificationError, match="not finite"):
        estimator.step(0.04, pose, np.zeros(3), np.array([np.nan, 0.0, 0.0]))
    with pytest.raises(ConfigError, match="wrench has shape"):
        estimator.step(0.04, pose, np.zeros(3), np.zeros(6))
    estimator, pose = started(replace(CFG, torque_bias_std=[1.0, 1.0]))
    with pytest.raises(IdentificationError, match="bias_map"):
        estimator.step(0.04, pose, np.zeros(3), np.zeros(3))


def test_linearised_ablation_is_overconfident(data):
    """An extended Kalman filter on the same data trusts itself far too much within the first second."""
    k, linearised = 24, AblationSwitches(cubature=False)
    cubature = np.mean([filter_run(*data, r).nees[k] for r in range(4)])
    linear = np.mean([filter_run(*data, r, linearised).nees[k] for r in range(4)])
    assert linear > 5.0 * cubature


def test_every_tip_of_a_fork_notes_its_own_sliding():
    """The first tip turns about its place and sticks, the second slides: its distance counts all the same."""
    model = SpatialModel(*CFG.bounds(), [np.eye(3)], (0, 0))
    pose = np.eye(4)
    pose[:3, :3] = np.diag([1.0, -1.0, -1.0])
    estimator = ProbingFilter(model, CFG)
    estimator.start(0.0, pose, *model.start(CFG, pose, [[0.0, 0.0, 0.18], [0.1, 0.0, 0.18]]))
    for k in range(1, 6):
        turned = pose.copy()
        turned[:3, :3] = Rotation.from_rotvec([0.0, 0.0, 0.3 * 0.04 * k]).as_matrix() @ pose[:3, :3]
        estimator.step(0.04, turned, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.3]), np.array([0.0, 0.0, -20.0, 0, 0, 0]))
    first, second = estimator._events
    assert first.since_stop == 0.0 and second.since_stop > 4e-3
